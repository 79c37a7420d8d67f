package tui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/minibench/mini/cmd/mini/internal/ask"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/control"
)

// Desk takes orders for the run that is shown, and knows what is around it. Its
// methods are safe for concurrent use.
type Desk interface {
	// Do says in a sentence what came of an order.
	Do(o runner.Order) (string, error)
	// Around is quick: what is known by now.
	Around() ([]control.Provider, control.Disk)
	// Journal is where the journal of an attempt is.
	Journal(instance string, attempt int) string
}

// pick is an instance on the screen that keys are about.
type pick struct {
	who, instance string
	attempt       int
	row           int // of its worker; -1 where it has none
}

// picks are the instances that are shown, or could be scrolled to: those at work,
// then those that ended last.
func (b *board) picks(notes int) []pick {
	var all []pick
	for i, w := range b.workers {
		if w.instance != "" {
			all = append(all, pick{w.instance, w.id, w.attempt, i})
		}
	}
	for _, n := range b.shownNotes(notes) {
		if n.id != "" && n.attempt > 0 && !slices.ContainsFunc(all, func(p pick) bool { return p.who == n.instance }) {
			all = append(all, pick{n.instance, n.id, n.attempt, -1})
		}
	}
	return all
}

// choices are the picks, and which of them is the one.
func (m model) choices() ([]pick, int) {
	m.shared.mu.Lock()
	defer m.shared.mu.Unlock()
	b := m.shared.board
	all := b.picks(m.frame.layout(len(b.workers)).notes)
	return all, slices.IndexFunc(all, func(p pick) bool { return p.who == m.frame.picked })
}

// chosen is the instance that keys are about; false where there is none.
func (m model) chosen() (pick, bool) {
	if m.follow != nil {
		return m.follow.pick, true
	}
	all, i := m.choices()
	if i < 0 {
		return pick{}, false
	}
	return all[i], true
}

// choose moves to the next instance, or the one before. It says whether there is one
// to choose.
func (m *model) choose(by, workers int) bool {
	all, at := m.choices()
	if len(all) == 0 {
		return false
	}
	rows := m.frame.layout(workers).rows
	top := m.frame.clamp(m.frame.top, workers)
	visible := func(p pick) bool { return p.row < 0 || p.row >= top && p.row < top+rows }
	switch {
	case at < 0 || !visible(all[at]):
		at = max(0, slices.IndexFunc(all, visible))
	default:
		at = max(0, min(at+by, len(all)-1))
	}
	m.frame.picked = all[at].who
	if row := all[at].row; row >= 0 && row < top {
		m.frame.top = row
	} else if row >= top+rows {
		m.frame.top = row - rows + 1
	}
	return true
}

// followed says what came of an order.
type followedOrder struct{ text string }

// order gives an order, in its own time.
func (m model) order(a runner.Action, who string) tea.Cmd {
	desk := m.desk
	return func() tea.Msg {
		said, err := desk.Do(runner.Order{Action: a, Who: who, By: runner.ByView})
		if err != nil {
			said = err.Error()
		}
		return followedOrder{said}
	}
}

// steer is a key that tells the run what to do; false where it is none.
func (m *model) steer(key string) (tea.Cmd, bool) {
	switch key {
	case "p":
		if m.shared.held() {
			return m.order(runner.Resume, ""), true
		}
		return m.order(runner.Pause, ""), true
	case "D", "shift+d":
		return m.order(runner.Drain, ""), true
	case "K", "shift+k", "R", "shift+r", "f", "enter":
	default:
		return nil, false
	}
	p, ok := m.chosen()
	switch {
	case !ok:
		m.frame.hint = "choose an instance first, with j and k"
		return nil, true
	case (key == "K" || key == "shift+k") && m.shared.ended(p.who):
		m.frame.hint = p.who + " has ended"
		return nil, true
	case key == "K" || key == "shift+k":
		m.asked = p.who
		return nil, true
	case key == "R" || key == "shift+r":
		return m.order(runner.Requeue, p.who), true
	}
	return m.open(p), true
}

// answer takes the answer to whether somebody is to be killed.
func (m *model) answer(key string) tea.Cmd {
	who := m.asked
	m.asked = ""
	if yes, _ := ask.YesNo(strings.TrimPrefix(key, "shift+"), false); yes {
		return m.order(runner.Kill, who)
	}
	m.frame.hint = "it goes on"
	return nil
}

// open shows the attempt of an instance as it grows.
func (m *model) open(p pick) tea.Cmd {
	m.panes++
	m.follow = &follow{pick: p, number: m.panes, tail: tail{path: m.desk.Journal(p.instance, p.attempt)}}
	return m.follow.reads(0)
}

// grew takes in what the followed journal has come to. Where there is a newer
// attempt by then, that is followed.
func (m *model) grew(g grown) tea.Cmd {
	if m.follow == nil || m.follow.number != g.number {
		return nil
	}
	next := m.follow.grow(g)
	if w := m.shared.workerOf(m.follow.pick.who); w != nil && w.attempt > m.follow.pick.attempt {
		m.follow.pick.attempt = w.attempt
		return m.open(m.follow.pick)
	}
	return next
}

// held says that nothing is started, as somebody wishes.
func (s *shared) held() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.board.halted != ""
}

// ended says that an instance has ended, and is not tried again.
func (s *shared) ended(who string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.board.ended[who]
}

// workerOf is the row of an instance at this moment; nil where it has none.
func (s *shared) workerOf(who string) *worker {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i, ok := s.board.at[who]; ok {
		w := s.board.workers[i]
		return &w
	}
	return nil
}
