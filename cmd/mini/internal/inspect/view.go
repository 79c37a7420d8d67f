package inspect

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/screen"
	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
)

// View implements tea.Model.
func (m *view) View() tea.View {
	v := tea.View{AltScreen: true}
	if m.width <= 0 || m.height <= 0 || m.quitting {
		return v
	}
	var lines []string
	switch {
	case m.help:
		lines = m.helpView()
	case m.reader != nil:
		lines = m.readerView()
	default:
		lines = m.listView()
	}
	foot := m.footer()
	for len(lines) < m.height-len(foot) {
		lines = append(lines, "")
	}
	lines = append(lines[:max(0, m.height-len(foot))], foot...)
	v.Content = strings.Join(lines, "\n")
	if m.asking != nothing {
		if c := m.input.Cursor(); c != nil {
			c.Y = m.height - 1
			c.X = min(c.X+1, m.width-1)
			v.Cursor = c
		}
	}
	return v
}

// room is how many lines a trajectory has.
func (m *view) room() int { return max(1, m.height-3) }

// listRoom is how many rows the list has.
func (m *view) listRoom() int { return max(1, m.height-4) }

func (m *view) resize(w, h int) {
	m.width, m.height = w, h
	m.input.SetWidth(max(1, w-screen.Width(m.input.Prompt)-2))
	if r := m.reader; r != nil {
		r.width, r.height = w-1, m.room()
		r.layout()
	}
}

func (m *view) listView() []string {
	l := m.list
	where := m.source.path
	lines := []string{
		steps.Bold(screen.Beside(" mini inspect · "+steps.Word(where), m.position(), m.width)),
		steps.Faint(screen.Cut(" "+steps.Word(l.counts()), m.width)),
	}
	cols := l.columns(m.width)
	lines = append(lines, steps.Bold(screen.Cut(l.head(cols), m.width)))
	room := m.listRoom()
	l.top = max(0, min(l.top, l.cursor, len(l.visible)-room))
	l.top = max(l.top, l.cursor-room+1)
	for i := l.top; i < min(len(l.visible), l.top+room); i++ {
		lines = append(lines, screen.Cut(l.row(l.visible[i], cols, i == l.cursor), m.width))
	}
	if len(l.visible) == 0 {
		lines = append(lines, "", " "+steps.Faint(screen.Cut(m.empty(), m.width-1)))
	}
	return lines
}

// empty says why there is nothing.
func (m *view) empty() string {
	l := m.list
	switch {
	case l.failed != nil:
		return steps.Word(l.failed.Error())
	case l.walking && len(l.items) == 0:
		return "looking for trajectories ..."
	case l.walking && l.filter.Text != "":
		return "searching ..."
	case l.line != "":
		return "nothing fits; Esc takes the filter away"
	}
	return "no trajectories here: files of trajectories end in .json, .jsonl or .traj"
}

func (m *view) position() string {
	l := m.list
	if len(l.visible) == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d ", l.cursor+1, len(l.visible))
}

func (m *view) readerView() []string {
	r := m.reader
	name, facts := r.title()
	lines := []string{
		steps.Bold(screen.Beside(" "+name, m.position(), m.width)),
		steps.Faint(screen.Cut(" "+steps.Word(facts), m.width)),
	}
	if r.failed != nil {
		for _, line := range steps.Wrap(steps.Word(r.failed.Error()), m.width-2) {
			lines = append(lines, " "+steps.Coloured(ansi.Red, line))
		}
	}
	for _, line := range r.lines[r.top:min(r.top+r.height, len(r.lines))] {
		lines = append(lines, " "+line.Text)
	}
	return lines
}

// footer is what is at the bottom: what is typed, what the last key led to, or
// what keys there are. It is one line, but for what is too long for it and to be
// read, or copied.
func (m *view) footer() []string {
	switch {
	case m.asking != nothing && m.mistake != "":
		line := " " + m.input.View()
		return append(m.lines(ansi.Red, m.mistake), line)
	case m.asking != nothing:
		return []string{" " + m.input.View()}
	case m.hint != "" && m.alarm:
		return m.lines(ansi.Red, m.hint)
	case m.hint != "":
		return m.lines(ansi.Yellow, m.hint)
	case m.help:
		return []string{steps.Faint(screen.Cut(" ? Esc: back", m.width))}
	case m.reader != nil:
		return []string{steps.Faint(screen.Beside(" "+m.readerKeys(), m.reader.scrolled(), m.width))}
	}
	keys := "Enter read  / search  f filter  s sort  a attempts  ? help  q quit"
	if m.list.line != "" {
		keys = "filter: " + steps.Word(m.list.line) + "   Esc shows all   ? help"
	}
	return []string{steps.Faint(screen.Cut(" "+keys, m.width))}
}

// maxFoot bounds the lines of a hint.
const maxFoot = 4

func (m *view) lines(c ansi.Color, text string) []string {
	var out []string
	for _, line := range strings.Split(ansi.WrapWc(steps.Word(text), max(4, m.width-2), ""), "\n") {
		if out = append(out, steps.Coloured(c, " "+line)); len(out) == min(maxFoot, m.height-1) {
			break
		}
	}
	return out
}

func (m *view) readerKeys() string {
	r := m.reader
	if r.sight != theSteps {
		return "Esc steps  j/k scroll  d patch  t test log  ? help  q quit"
	}
	keys := "h/l step  j/k scroll  d patch  t log  x error  / search  Esc list  ? help"
	if r.hidden() {
		keys = "r reasoning  " + keys
	}
	if r.t != nil && r.t.Outcome == nil && (r.follow || r.last()) {
		keys = "following  " + keys
	}
	return keys
}

// scrolled says how far down it is.
func (r *reader) scrolled() string {
	switch end := r.end(); {
	case end == 0:
		return ""
	case r.top == 0:
		return "top "
	case r.top == end:
		return "end "
	default:
		return fmt.Sprintf("%d%% ", min(99, 100*r.top/end))
	}
}

const helpText = ` The list
   j k  up down  PgUp PgDn    move          Enter l    read the trajectory
   s S                        sort by the next column; reverse the order
   f                          filter: status:limit verdict:unresolved cost>1
                              cost<5 text:"no such file" django
   /                          search in all; Esc shows all again
   a                          other attempts at the instances too
   e E                        the trajectory in $PAGER
   R                          look again      ! what could not be read
 Reading
   l right  h left            next step, the one before
   0 $                        the prompts, the end
   g                          go to a step
   j k down up                scroll 15 lines      PgDn PgUp space   a screen
   Ctrl-E Ctrl-Y              one line             Home End          top, end
   L H                        next trajectory, the one before
   x X                        next step with an error, the one before
   / n N                      search here, next match, the one before
   r                          show or hide reasoning
   o                          show long outputs whole, or fold them
   d                          the patch            t   log of the tests
   e E                        the step, or the trajectory, in $PAGER
   R F                        read again; follow an attempt that goes on
   Esc                        back to the list
 Ctrl-Z leaves to the shell, fg comes back; q quits. A search finds any case,
 unless it has a capital letter.`

func helpLines() []string { return strings.Split(helpText, "\n") }

func (m *view) helpView() []string {
	lines := []string{steps.Bold(screen.Cut(" mini inspect: keys", m.width))}
	for _, line := range helpLines()[min(m.helpTop, len(helpLines())-1):] {
		lines = append(lines, screen.Cut(line, m.width))
	}
	return lines[:min(len(lines), max(1, m.height-1))]
}
