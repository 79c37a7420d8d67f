package browser

import (
	"fmt"
	"strings"

	"charm.land/bubbles/v2/help"
	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/cmd/mini/internal/ui/terminal"
)

// Numbers of lines on the screen.
const (
	readerMargin   = 3 // around the page of a trajectory: two of the head, one of the foot
	listMargin     = 3 // around the table
	maxMessageRows = 4 // of an error or result
)

// resize sets the size of the screen.
func (m *browser) resize(w, h int) {
	m.width, m.height = w, h
	m.input.SetWidth(m.inputWidth())
	m.list.resize(w, max(1, h-listMargin))
	if m.reader != nil {
		m.reader.resize(w, max(1, h-readerMargin))
	}
	if m.help != nil {
		m.help.SetWidth(w)
		m.help.SetHeight(m.helpHeight())
	}
}

func (m *browser) inputWidth() int { return max(1, m.width-terminal.Width(m.input.Prompt)-2) }
func (m *browser) helpHeight() int { return max(1, m.height-2) }

// View implements tea.Model.
func (m *browser) View() tea.View {
	v := tea.View{AltScreen: true}
	if m.width <= 0 || m.height <= 0 {
		return v
	}
	var title, content string
	switch {
	case m.help != nil:
		title, content = "mini inspect: keys", m.help.View()
	case m.reader != nil:
		name, subtitle := m.reader.title(m.reader.step())
		title, content = name, steps.Faint(" "+subtitle)+"\n"+m.reader.view.View()
	default:
		title = "mini inspect · " + steps.OneLine(m.list.Path)
		content = steps.Faint(" "+steps.OneLine(m.list.summary())) + "\n" + m.list.table.View()
		if len(m.list.visible) == 0 {
			content = steps.Faint(" " + m.list.summary() + "\n\n " + m.list.emptyText())
		}
	}
	position := ""
	if n := len(m.list.visible); n > 0 && m.help == nil {
		position = fmt.Sprintf("%d/%d ", m.list.table.Cursor()+1, n)
	}
	lines := append([]string{steps.Bold(terminal.JoinEnds(" "+title, position, m.width))}, strings.Split(content, "\n")...)
	foot := m.footer()
	for len(lines) < m.height-len(foot) {
		lines = append(lines, "")
	}
	lines = append(lines[:max(0, m.height-len(foot))], foot...)
	for i, line := range lines { // the components count the columns of some characters differently
		lines[i] = terminal.Truncate(strings.TrimRight(line, " "), m.width)
	}
	v.Content = strings.Join(lines, "\n")
	if m.submit != nil {
		if c := m.input.Cursor(); c != nil {
			c.Y, c.X = m.height-1, min(c.X+1, m.width-1)
			v.Cursor = c
		}
	}
	return v
}

// footer returns the lines at the bottom: the result of the last key, and the prompt, or the keys.
func (m *browser) footer() (lines []string) {
	if m.message != "" {
		lines = strings.Split(ansi.WrapWc(m.message, max(4, m.width-2), ""), "\n")
		lines = lines[:min(len(lines), maxMessageRows, max(0, m.height-1))]
		for i, line := range lines {
			lines[i] = steps.Coloured(m.colour, " "+line)
		}
	}
	if m.submit != nil {
		return append(lines, " "+m.input.View())
	}
	if len(lines) > 0 {
		return lines
	}
	if m.help != nil {
		return []string{steps.Faint(" Esc back")}
	}
	left, right := "", ""
	if r := m.reader; r != nil {
		if !r.view.AtTop() || !r.view.AtBottom() {
			right = fmt.Sprintf("%d%% ", int(100*r.view.ScrollPercent()))
		}
		if r.isFollowing() {
			left = "following  "
		}
	}
	left += m.hints(m.width - terminal.Width(left+right) - 2)
	return []string{steps.Faint(terminal.JoinEnds(" "+left, right, m.width))}
}

// hints returns the most important keys.
func (m *browser) hints(width int) string {
	var bindings []key.Binding
	for _, c := range m.commands() {
		if c.hint != "" {
			name, _, _ := strings.Cut(c.Help().Key, " ")
			bindings = append(bindings, key.NewBinding(key.WithKeys(c.Keys()...), key.WithHelp(name, c.hint)))
		}
	}
	h := help.Model{ShortSeparator: "  ", Ellipsis: terminal.Ellipsis}
	h.SetWidth(max(1, width))
	return h.ShortHelpView(bindings)
}
