package inspect

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"github.com/minibench/mini/cmd/mini/internal/screen"
	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/trajectories/filter"
	"github.com/minibench/mini/trajectories/timeline"
)

// asking is what a line is typed for.
type asking int

const (
	nothing asking = iota
	aFilter
	aText // that all trajectories are searched for
	aSearch
	aStep
)

// view is the screen: the list, and the trajectory that is read in front of it.
// Files are read by commands, which run beside it.
type view struct {
	source    *Source
	ctx       context.Context //nolint:containedctx // it is the view's, as long as the screen is taken
	send      func(tea.Msg)
	mu        sync.Mutex // of ctx's end and the beginning of work
	work      sync.WaitGroup
	walks     sync.Mutex // one walk at a time
	suspend   func()
	list      *list
	reader    *reader // nil while the list is seen
	reasoning bool

	width, height int
	input         textinput.Model
	asking        asking
	mistake       string // in what is being typed
	hint          string // what the last key led to
	alarm         bool   // it went wrong
	help          bool
	helpTop       int
	ticks         int
	begun         bool // the only trajectory was opened without a key
	quitting      bool
	colours       bool               // in what a pager is given
	stopWalk      context.CancelFunc // nil before the first
	number        int                // of the walk
}

// Messages of commands.
type (
	found struct {
		Batch
		number int
	}
	walked struct {
		err    error
		number int
	}
	opened struct {
		item *Item
		t    *Trajectory
		err  error
	}
	logged struct {
		item  *Item
		items []*timeline.Item
	}
	ticked struct{}
	paged  struct {
		err  error
		path string
	}
)

// Init implements tea.Model. The screen may have been left while something was read.
func (m *view) Init() tea.Cmd {
	cmds := []tea.Cmd{m.walk(), m.tick()}
	if r := m.reader; r != nil && r.t == nil && r.failed == nil {
		cmds = append(cmds, m.read(r.item))
	}
	return tea.Batch(cmds...)
}

// Update implements tea.Model.
func (m *view) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.resize(msg.Width, msg.Height)
	case tea.KeyPressMsg:
		return m, m.key(msg)
	case tea.PasteMsg:
		if m.asking != nothing {
			return m, m.typed(msg)
		}
	case found:
		if msg.number == m.number {
			m.list.take(msg.Batch)
		}
	case walked:
		if msg.number != m.number {
			break
		}
		m.list.walking, m.list.failed = false, msg.err
		if len(m.list.items) == 0 && !m.list.live { // there is nothing to look at
			return m, m.quit()
		}
		return m, m.begin()
	case opened:
		m.opened(msg)
	case logged:
		if r := m.reader; r != nil && r.item == msg.item && r.sight == theLog {
			r.extra = msg.items
			r.layout()
		}
	case ticked:
		return m, m.ticked()
	case paged:
		_ = os.Remove(msg.path) // it is in the folder for such files
		if msg.err != nil {
			m.say(true, "the pager ended with %s; PAGER names another one", msg.err)
		}
	}
	return m, nil
}

func (m *view) say(alarm bool, format string, args ...any) {
	m.hint, m.alarm = steps.Word(fmt.Sprintf(format, args...)), alarm
}

// do makes a command of something that takes its time; once the view has ended it
// does nothing.
func (m *view) do(f func() tea.Msg) tea.Cmd {
	ctx := m.ctx
	return func() tea.Msg {
		m.mu.Lock()
		if ctx.Err() != nil {
			m.mu.Unlock()
			return nil
		}
		m.work.Add(1)
		m.mu.Unlock()
		defer m.work.Done()
		return f()
	}
}

// end ends what commands do, and waits for it.
func (m *view) end(cancel func()) {
	m.mu.Lock()
	cancel()
	m.mu.Unlock()
	m.work.Wait()
}

// tellEvery bounds how often the view hears of progress.
const tellEvery = 100 * time.Millisecond

// walk walks the source, and tells of what it finds a few times a second. It takes
// the place of a walk that goes on.
func (m *view) walk() tea.Cmd {
	if m.stopWalk != nil {
		m.stopWalk()
	}
	ctx, stop := context.WithCancel(m.ctx)
	m.stopWalk, m.list.walking = stop, true
	m.number++
	number, filter, source, send := m.number, m.list.filter, m.source, m.send
	return m.do(func() tea.Msg {
		m.walks.Lock()
		defer m.walks.Unlock()
		defer stop()
		b := found{number: number}
		var last time.Time
		flush := func() {
			send(b)
			b, last = found{Batch{Live: b.Live}, number}, time.Now()
		}
		err := source.Walk(ctx, filter, func(next Batch) error {
			b.Items, b.Notes = append(b.Items, next.Items...), append(b.Notes, next.Notes...)
			b.Files, b.Live = next.Files, b.Live || next.Live
			if time.Since(last) >= tellEvery {
				flush()
			}
			return nil
		})
		if ctx.Err() != nil {
			return nil
		}
		flush()
		return walked{err, number}
	})
}

func (m *view) read(it *Item) tea.Cmd {
	return m.do(func() tea.Msg {
		t, err := Open(it)
		return opened{it, t, err}
	})
}

func (m *view) tick() tea.Cmd {
	ctx := m.ctx
	return m.do(func() tea.Msg {
		timer := time.NewTimer(time.Second)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
			return ticked{}
		}
	})
}

// ticked looks once a second at what may have grown, and every other second for
// what is new in a run at work.
func (m *view) ticked() tea.Cmd {
	m.ticks++
	cmds := []tea.Cmd{m.tick()}
	if r := m.reader; r != nil && r.t != nil && r.t.Outcome == nil && (r.follow || r.last()) {
		was, it := r.t, r.item
		cmds = append(cmds, m.do(func() tea.Msg {
			if !was.changed() {
				return nil
			}
			t, err := Open(it)
			return opened{it, t, err}
		}))
	}
	if m.list.live && !m.list.walking && m.ticks%2 == 0 {
		cmds = append(cmds, m.walk())
	}
	return tea.Batch(cmds...)
}

// begin reads a source of one trajectory as soon as it is known.
func (m *view) begin() tea.Cmd {
	if m.begun || m.reader != nil || len(m.list.visible) != 1 || !m.source.Single() {
		return nil
	}
	m.begun = true
	return m.open(m.list.visible[0])
}

// open begins to read. What is searched for is kept.
func (m *view) open(it *Item) tea.Cmd {
	text := m.list.filter.Text
	if m.reader != nil && m.reader.text != "" {
		text = m.reader.text
	}
	m.list.moved = true
	m.reader = &reader{item: it, reasoning: m.reasoning, text: text, hit: -1, width: m.width - 1, height: m.room()}
	return m.read(it)
}

func (m *view) opened(msg opened) {
	r := m.reader
	if r == nil || r.item.key() != msg.item.key() {
		return // it was left before it was read
	}
	if msg.err != nil {
		if r.t == nil {
			r.failed = msg.err
		}
		m.say(true, "%s", msg.err)
		return
	}
	if it := m.list.items[msg.item.key()]; it != nil {
		r.item, msg.t.Item = it, it
	}
	r.take(msg.t)
}

// ask opens the line at the bottom.
func (m *view) ask(what asking, prompt, value string) tea.Cmd {
	in := textinput.New()
	in.Prompt = prompt
	in.SetVirtualCursor(false)
	in.KeyMap.Paste.SetEnabled(false) // it would run another program; the terminal pastes
	in.CharLimit = 500
	in.SetWidth(max(1, m.width-screen.Width(prompt)-2))
	in.SetValue(value)
	in.CursorEnd()
	m.input, m.asking, m.mistake = in, what, ""
	return m.input.Focus()
}

// typed takes a key for the line.
func (m *view) typed(msg tea.Msg) tea.Cmd {
	if key, ok := msg.(tea.KeyPressMsg); ok {
		switch pressed := key.String(); {
		case pressed == "enter":
			return m.answered()
		case pressed == "esc", pressed == "ctrl+c", pressed == "backspace" && m.input.Value() == "":
			m.asking, m.mistake = nothing, ""
			return nil
		}
	}
	var cmd tea.Cmd
	m.input, cmd = m.input.Update(msg)
	m.mistake = ""
	return cmd
}

// answered does what was asked for.
func (m *view) answered() tea.Cmd {
	value := m.input.Value()
	switch m.asking {
	case aFilter:
		f, err := filter.Parse(value)
		if err != nil {
			m.mistake = err.Error()
			return nil
		}
		m.asking = nothing
		return m.filter(f, value)
	case aText:
		m.asking = nothing
		if value == "" {
			return m.filter(filter.Filter{}, "")
		}
		return m.filter(filter.Filter{Text: value}, `text:"`+value+`"`)
	case aSearch:
		m.asking = nothing
		m.reader.text, m.reader.hit = value, -1
		m.reader.layout()
		if value != "" {
			m.seek(1)
		}
	case aStep:
		n, err := strconv.Atoi(strings.TrimSpace(value))
		if replies := m.reader.t.Replies(); err != nil || n < 0 || n > replies {
			m.mistake = fmt.Sprintf("there is no step %.20q: it has %d", value, replies)
			return nil
		}
		m.asking = nothing
		m.reader.turn(n)
	}
	return nil
}

// filter shows what meets conditions. Where a text in them is another one, all
// trajectories are searched for it.
func (m *view) filter(f filter.Filter, line string) tea.Cmd {
	had := m.list.filter.Text
	m.list.filter, m.list.line = f, strings.TrimSpace(line)
	if f.Text == had {
		m.list.arrange()
		return nil
	}
	m.list.items, m.list.moved = map[string]*Item{}, false
	m.list.arrange()
	return m.walk()
}

// seek looks for the next match in what is read.
func (m *view) seek(by int) {
	r := m.reader
	switch {
	case r.text == "":
		m.say(true, "nothing is searched for; / does that")
	case r.seek(by):
		m.say(false, "%q", r.text)
	default:
		where := [...]string{theSteps: "this trajectory", thePatch: "the patch", theLog: "this log"}[r.sight]
		m.say(true, "%q is not in %s", r.text, where)
	}
}
