package inspect

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/screen"
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

// look is how a trajectory is drawn.
func (m *view) look() look {
	l := look{width: max(4, m.width-1)}
	if m.reader != nil {
		l.mark = m.reader.match
	}
	return l
}

func (m *view) resize(w, h int) {
	m.width, m.height = w, h
	m.input.SetWidth(max(1, w-widthOf(m.input.Prompt)-2))
	if r := m.reader; r != nil && r.body != nil {
		r.at = r.body.clamp(r.at, m.room(), m.look())
	}
}

func (m *view) listView() []string {
	l := m.list
	where := m.works.source.path
	lines := []string{
		bold(screen.Beside(" mini inspect · "+oneLine(where), m.position(), m.width)),
		faint(screen.Cut(" "+oneLine(l.counts()), m.width)),
	}
	cols := l.columns(m.width)
	lines = append(lines, bold(screen.Cut(l.head(cols), m.width)))
	room := m.listRoom()
	l.top = max(0, min(l.top, l.cursor, len(l.visible)-room))
	l.top = max(l.top, l.cursor-room+1)
	for i := l.top; i < min(len(l.visible), l.top+room); i++ {
		lines = append(lines, screen.Cut(l.row(l.visible[i], cols, i == l.cursor), m.width))
	}
	if len(l.visible) == 0 {
		lines = append(lines, "", " "+faint(screen.Cut(m.empty(), m.width-1)))
	}
	return lines
}

// empty says why there is nothing.
func (m *view) empty() string {
	l := m.list
	switch {
	case l.failed != nil:
		return oneLine(l.failed.Error())
	case l.search.running:
		return "searching ..."
	case l.walking && len(l.items) == 0:
		return "looking for trajectories ..."
	case l.search.match != nil || l.line != "":
		return "nothing fits; Esc takes the search or the filter away"
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
		bold(screen.Beside(" "+name, m.position(), m.width)),
		faint(screen.Cut(" "+oneLine(facts), m.width)),
	}
	if r.failed != nil {
		for _, line := range wrap(oneLine(r.failed.Error()), m.width-2) {
			lines = append(lines, " "+coloured(ansi.Red, line))
		}
		return lines
	}
	if r.body == nil {
		return lines
	}
	for _, line := range r.body.window(r.at, m.room(), m.look()) {
		lines = append(lines, " "+line)
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
		return []string{faint(screen.Cut(" ? Esc: back", m.width))}
	case m.reader != nil:
		return []string{faint(screen.Beside(" "+m.readerKeys(), m.scrolled(), m.width))}
	}
	keys := "Enter read  / search  f filter  s sort  a attempts  ? help  q quit"
	if m.list.line != "" {
		keys = "filter: " + oneLine(m.list.line) + "   Esc shows all   ? help"
	}
	return []string{faint(screen.Cut(" "+keys, m.width))}
}

// maxFoot bounds the lines of a hint.
const maxFoot = 4

func (m *view) lines(c ansi.Color, text string) []string {
	var out []string
	for _, line := range strings.Split(ansi.WrapWc(oneLine(text), max(4, m.width-2), ""), "\n") {
		if out = append(out, coloured(c, " "+line)); len(out) == min(maxFoot, m.height-1) {
			break
		}
	}
	return out
}

func (m *view) readerKeys() string {
	r := m.reader
	if r.sight != steps {
		return "Esc steps  j/k scroll  d patch  t test log  ? help  q quit"
	}
	keys := "h/l step  j/k scroll  d patch  t log  x error  / search  Esc list  ? help"
	if r.hidden() {
		keys = "r reasoning  " + keys
	}
	if r.t != nil && !r.t.ended && (r.follow || r.last()) {
		keys = "following  " + keys
	}
	return keys
}

// scrolled says how far down it is.
func (m *view) scrolled() string {
	r := m.reader
	if r.body == nil || len(r.body.rows) == 0 {
		return ""
	}
	end := r.body.end(m.room(), m.look())
	switch {
	case end == place{}:
		return ""
	case r.at == place{}:
		return "top "
	case r.at == end:
		return "end "
	}
	return fmt.Sprintf("%d%% ", min(99, 100*r.at.row/max(1, end.row)))
}
