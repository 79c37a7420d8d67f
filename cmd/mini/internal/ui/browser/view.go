package browser

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/cmd/mini/internal/ui/terminal"
)

// View implements tea.Model.
func (m *browser) View() tea.View {
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
	if m.prompt != noPrompt {
		if c := m.input.Cursor(); c != nil {
			c.Y = m.height - 1
			c.X = min(c.X+1, m.width-1)
			v.Cursor = c
		}
	}
	return v
}

// readerHeight returns the number of lines of a page that are visible.
func (m *browser) readerHeight() int { return max(1, m.height-3) }

// listHeight returns the number of entries that are visible.
func (m *browser) listHeight() int { return max(1, m.height-4) }

func (m *browser) resize(w, h int) {
	m.width, m.height = w, h
	m.input.SetWidth(max(1, w-terminal.Width(m.input.Prompt)-2))
	if r := m.reader; r != nil {
		r.width, r.height = w-1, m.readerHeight()
		r.layout()
	}
}

func (m *browser) listView() []string {
	l := m.list
	where := m.source.path
	lines := []string{
		steps.Bold(terminal.JoinEnds(" mini inspect · "+steps.OneLine(where), m.position(), m.width)),
		steps.Faint(terminal.Truncate(" "+steps.OneLine(l.summary()), m.width)),
	}
	cols := l.columns(m.width)
	lines = append(lines, steps.Bold(terminal.Truncate(l.header(cols), m.width)))
	room := m.listHeight()
	l.top = max(0, min(l.top, l.cursor, len(l.visible)-room))
	l.top = max(l.top, l.cursor-room+1)
	for i := l.top; i < min(len(l.visible), l.top+room); i++ {
		lines = append(lines, terminal.Truncate(l.row(l.visible[i], cols, i == l.cursor), m.width))
	}
	if len(l.visible) == 0 {
		lines = append(lines, "", " "+steps.Faint(terminal.Truncate(m.emptyText(), m.width-1)))
	}
	return lines
}

// emptyText explains why the list is empty.
func (m *browser) emptyText() string {
	l := m.list
	switch {
	case l.walkError != nil:
		return steps.OneLine(l.walkError.Error())
	case l.walking && len(l.entries) == 0:
		return "looking for trajectories ..."
	case l.walking && l.filter.Text != "":
		return "searching ..."
	case l.filterText != "":
		return "no match; Esc removes the filter"
	}
	return "no trajectories found: their files end in .json, .jsonl or .traj"
}

func (m *browser) position() string {
	l := m.list
	if len(l.visible) == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d ", l.cursor+1, len(l.visible))
}

func (m *browser) readerView() []string {
	r := m.reader
	name, subtitle := r.title()
	lines := []string{
		steps.Bold(terminal.JoinEnds(" "+name, m.position(), m.width)),
		steps.Faint(terminal.Truncate(" "+steps.OneLine(subtitle), m.width)),
	}
	if r.err != nil {
		for _, line := range steps.HardWrap(steps.OneLine(r.err.Error()), m.width-2) {
			lines = append(lines, " "+steps.Coloured(ansi.Red, line))
		}
	}
	for _, line := range r.lines[r.top:min(r.top+r.height, len(r.lines))] {
		lines = append(lines, " "+line.Text)
	}
	return lines
}

// footer returns the lines at the bottom: the prompt, the result of the last key, or the key
// hints. Errors and results that are too long for one line take several.
func (m *browser) footer() []string {
	switch {
	case m.prompt != noPrompt && m.promptError != "":
		line := " " + m.input.View()
		return append(m.hintLines(ansi.Red, m.promptError), line)
	case m.prompt != noPrompt:
		return []string{" " + m.input.View()}
	case m.hint != "" && m.hintIsError:
		return m.hintLines(ansi.Red, m.hint)
	case m.hint != "":
		return m.hintLines(ansi.Yellow, m.hint)
	case m.help:
		return []string{steps.Faint(terminal.Truncate(" ? Esc: back", m.width))}
	case m.reader != nil:
		return []string{steps.Faint(terminal.JoinEnds(" "+m.readerKeyHints(), m.reader.scrollText(), m.width))}
	}
	keys := "Enter read  / search  f filter  s sort  a attempts  ? help  q quit"
	if m.list.filterText != "" {
		keys = "filter: " + steps.OneLine(m.list.filterText) + "   Esc shows all   ? help"
	}
	return []string{steps.Faint(terminal.Truncate(" "+keys, m.width))}
}

// maxHintLines is the maximum number of lines of an error or result.
const maxHintLines = 4

func (m *browser) hintLines(c ansi.Color, text string) []string {
	var out []string
	for _, line := range strings.Split(ansi.WrapWc(steps.OneLine(text), max(4, m.width-2), ""), "\n") {
		if out = append(out, steps.Coloured(c, " "+line)); len(out) == min(maxHintLines, m.height-1) {
			break
		}
	}
	return out
}

func (m *browser) readerKeyHints() string {
	r := m.reader
	if r.mode != modeSteps {
		return "Esc steps  j/k scroll  d patch  t test log  ? help  q quit"
	}
	keys := "h/l step  j/k scroll  d patch  t log  x error  / search  Esc list  ? help"
	if r.hasHiddenReasoning() {
		keys = "r reasoning  " + keys
	}
	if r.trajectory != nil && r.trajectory.Outcome == nil && (r.follow || r.isLastPage()) {
		keys = "following  " + keys
	}
	return keys
}

// scrollText describes the scroll position.
func (r *reader) scrollText() string {
	switch end := r.maxTop(); {
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
   j k  up down  PgUp PgDn    move          Enter l    open the trajectory
   s S                        sort by the next column; reverse the order
   f                          filter: status:limit verdict:unresolved cost>1
                              cost<5 text:"no such file" django
   /                          search all trajectories; Esc clears
   a                          show or hide superseded attempts
   e E                        open the trajectory in $PAGER
   R                          reload         ! show a read error
 Reading
   l right  h left            next step, previous step
   0 $                        first page (prompts), last page
   g                          go to a step
   j k down up                scroll 15 lines      PgDn PgUp space   a screen
   Ctrl-E Ctrl-Y              one line             Home End          top, end
   L H                        next trajectory, previous one
   x X                        next step with an error, previous one
   / n N                      search here, next match, previous one
   r                          show or hide reasoning
   o                          unfold or fold long outputs
   d                          patch                t   test log
   e E                        open the step, or the trajectory, in $PAGER
   R F                        reload; follow a running attempt
   Esc                        back to the list
 Ctrl-Z suspends, fg returns; q quits. A search ignores case unless it
 contains a capital letter.`

func helpLines() []string { return strings.Split(helpText, "\n") }

func (m *browser) helpView() []string {
	lines := []string{steps.Bold(terminal.Truncate(" mini inspect: keys", m.width))}
	for _, line := range helpLines()[min(m.helpTop, len(helpLines())-1):] {
		lines = append(lines, terminal.Truncate(line, m.width))
	}
	return lines[:min(len(lines), max(1, m.height-1))]
}
