package term

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/ui/chat"
	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	tty "github.com/minibench/mini/cmd/mini/internal/ui/terminal"
	"github.com/minibench/mini/internal/sanitize"
	"github.com/minibench/mini/internal/text"
)

// input is the input field: a few lines, a history, and placeholders for long pastes.
type input struct {
	area    textarea.Model
	history history
	pastes  []string // long pasted texts, for which the field has placeholders

	selected      int    // index of the match selected with Tab; -1 if none
	prefix        string // the text before Tab was pressed
	matchesHidden bool   // the list of matches is hidden until the next edit
	paths         paths
}

const (
	prompt        = "❯ "
	maxInputRows  = 10      // rows of the field
	maxInputChars = 8 << 10 // characters in the field, without pastes
	maxPasteLines = 10      // lines of a paste that is shown in the field
	maxKeyText    = 64      // bytes of text from one key event
)

func newInput(earlier []string) input {
	area := textarea.New()
	area.SetStyles(textarea.Styles{})
	area.SetVirtualCursor(false)
	area.Prompt, area.ShowLineNumbers, area.CharLimit, area.EndOfBufferCharacter = "", false, maxInputChars, ' '
	area.DynamicHeight, area.MinHeight, area.MaxHeight = true, 1, maxInputRows
	area.MaxContentHeight, area.MaxWidth = 1<<20, 0
	// Disable the keys that model.handleKey handles, and the clipboard keys, which would run
	// clipboard programs. Users paste with their terminal.
	for _, binding := range []*key.Binding{
		&area.KeyMap.InsertNewline, &area.KeyMap.Paste, &area.KeyMap.CopySelection,
		&area.KeyMap.TransposeCharacterBackward, &area.KeyMap.SelectAll,
	} {
		binding.SetEnabled(false)
	}
	area.Focus()
	return input{area: area, selected: -1, history: history{lines: earlier}}
}

// resize adapts the field to a terminal of w columns and h rows.
func (in *input) resize(w, h int) {
	in.area.MaxHeight = max(1, min(maxInputRows, h/3))
	in.area.SetWidth(max(1, w-tty.Width(prompt)))
}

// value returns the text with the pasted texts in place of their placeholders.
func (in *input) value() string {
	text := in.area.Value()
	for i, p := range in.pastes {
		text = strings.Replace(text, pastePlaceholder(i, p), p, 1)
	}
	return text
}

func (in *input) newline() {
	in.selected, in.matchesHidden = -1, false
	in.area.InsertRune('\n')
}

// beforeCursor returns the text before the cursor in its line.
func (in *input) beforeCursor() string {
	line := []rune(strings.Split(in.area.Value(), "\n")[in.area.Line()])
	return string(line[:min(in.area.Column(), len(line))])
}

// isAtEnd reports whether the cursor is at the end of the text.
func (in *input) isAtEnd() bool {
	text := in.area.Value()
	last := text[strings.LastIndexByte(text, '\n')+1:]
	return in.area.Line() == in.area.LineCount()-1 && in.area.Column() == len([]rune(last))
}

func (in *input) isEmpty() bool { return in.area.Value() == "" }

func (in *input) reset() {
	in.area.Reset()
	in.pastes, in.selected, in.matchesHidden = nil, -1, false
	in.history.reset()
}

func (in *input) set(text string) {
	in.pastes = nil
	if !fitsInline(text) {
		in.pastes = []string{text}
		text = pastePlaceholder(0, text)
	}
	in.area.SetValue(text)
}

// edit shows a text in the field without a placeholder, whatever its length.
func (in *input) edit(text string) {
	in.reset()
	in.area.SetValue(text)
	in.area, _ = in.area.Update(nil) // scrolls to the cursor
}

// paste inserts a pasted text, with any kind of line ends. It inserts a placeholder for a long
// text, and for a text that cannot be shown unchanged.
func (in *input) paste(text string) {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	in.selected, in.matchesHidden = -1, false
	if fitsInline(text) {
		in.area.InsertString(text)
		return
	}
	in.pastes = append(in.pastes, text)
	in.area.InsertString(pastePlaceholder(len(in.pastes)-1, text))
}

// fitsInline reports whether the field can show a text without a placeholder.
func fitsInline(text string) bool {
	return len(text) <= maxInputChars/8 && strings.Count(text, "\n") < maxPasteLines && sanitize.IsUnchanged(text)
}

func pastePlaceholder(i int, text string) string {
	return fmt.Sprintf("[pasted %d: %s]", i+1, pasteSize(text))
}

func pasteSize(pasted string) string {
	if n := strings.Count(strings.TrimRight(pasted, "\n"), "\n"); n > 0 {
		return text.Count(n+1, "line")
	}
	return text.Count(len([]rune(pasted)), "character")
}

// handleKey passes a key to the text field. A key that deletes before the cursor deletes a whole
// placeholder.
func (in *input) handleKey(msg tea.KeyPressMsg) {
	in.selected, in.matchesHidden = -1, false
	if slices.Contains([]string{"backspace", "ctrl+h", "ctrl+w", "alt+backspace"}, msg.String()) {
		before := in.beforeCursor()
		for i, p := range in.pastes {
			if mark := pastePlaceholder(i, p); strings.HasSuffix(before, mark) {
				for range []rune(mark) {
					in.area, _ = in.area.Update(tea.KeyPressMsg{Code: tea.KeyBackspace})
				}
				return
			}
		}
	}
	if msg.Text != "" && (len(msg.Text) > maxKeyText || !sanitize.IsUnchanged(msg.Text)) {
		msg.Text = sanitize.Line(text.Clip(msg.Text, maxKeyText))
	}
	in.area, _ = in.area.Update(msg) // the dropped commands are for the clipboard and blinking
}

// match is a completion of the input.
type match struct {
	text               string // the input after the completion
	label, description string
}

// stem returns the input as it was before Tab.
func (in *input) stem() string {
	if in.selected >= 0 {
		return in.prefix
	}
	return in.area.Value()
}

// matches returns the slash commands that begin with the input, or the paths for its last word.
func (in *input) matches() []match {
	stem := in.stem()
	if word := in.pathWord(); word != "" && !in.matchesHidden {
		var found []match
		for _, path := range in.paths.matching(word[1:]) {
			found = append(found, match{text: strings.TrimSuffix(stem, word) + "@" + path, label: "@" + path})
		}
		return found
	}
	if in.matchesHidden || !strings.HasPrefix(stem, "/") || strings.ContainsAny(stem, " \n") {
		return nil
	}
	var found []match
	for _, c := range chat.SlashCommands() {
		if strings.HasPrefix(c.Name, stem) || strings.HasPrefix(c.LongName, stem) {
			found = append(found, match{cmp.Or(c.LongName, c.Name), slashNames(c), c.Description})
		}
	}
	return found
}

// complete handles Tab. It replaces the input by the first match or, if Tab was pressed before, by
// the match that is step further in the list. If nothing matches, and the input is empty
// or one of answers, answers are the matches, the one after the input first.
func (in *input) complete(answers []string, step int) {
	matches := in.matches()
	names := make([]string, 0, len(matches))
	for _, c := range matches {
		names = append(names, c.text)
	}
	if len(names) == 0 && (in.isEmpty() || slices.Contains(answers, in.area.Value())) {
		names = answers
	}
	if len(names) == 0 {
		return
	}
	if in.selected < 0 {
		in.prefix, in.selected = in.area.Value(), min(step, 0)+len(names)
		in.selected %= len(names)
		if i := slices.Index(answers, in.prefix); i >= 0 {
			in.selected = (i + 1) % len(answers)
		}
	} else {
		in.selected = (in.selected + step + len(names)) % len(names)
	}
	in.area.SetValue(names[in.selected%len(names)])
}

// hasMenu reports whether the list of matches is shown for a text that is not from the history.
func (in *input) hasMenu() bool { return in.history.position == 0 && len(in.matches()) > 0 }

// older moves the cursor up. In the first row it shows the previous input of the history
// instead. In the list of matches it selects the match before.
func (in *input) older() {
	if in.hasMenu() {
		in.complete(nil, -1)
		return
	}
	if in.row() == 0 {
		in.selected = -1
		if text, ok := in.history.older(in.value()); ok {
			in.set(text)
		}
		return
	}
	in.area.CursorUp()
}

// newer moves the cursor down. In the last row it shows the next input of the history instead. In
// the list of matches it selects the next match.
func (in *input) newer() {
	if in.hasMenu() {
		in.complete(nil, 1)
		return
	}
	if in.row() == in.rows()-1 {
		in.selected = -1
		if text, ok := in.history.newer(); ok {
			in.set(text)
		}
		return
	}
	in.area.CursorDown()
}

// row returns the row of the cursor among all rows of the text.
func (in *input) row() int { return in.area.ScrollYOffset() + in.area.Cursor().Y }

// rows returns the number of rows of the text. It is only a lower bound if the cursor is not in
// the last line, which suffices for newer.
func (in *input) rows() int {
	if in.area.Line() < in.area.LineCount()-1 {
		return in.row() + 2
	}
	info := in.area.LineInfo()
	return in.row() + info.Height - info.RowOffset
}

// view returns the rows of the field and the cursor position.
func (in *input) view(hint string, secret bool, w int) (rows []string, x, y int) {
	marker := steps.BoldColoured(ansi.Cyan, strings.TrimRight(prompt, " ")) + " "
	indent := tty.Width(prompt)
	switch {
	case in.isEmpty():
		return []string{marker + steps.Faint(tty.Truncate(hint, max(0, w-indent)))}, indent, 0
	case secret:
		n := min(len([]rune(in.area.Value())), max(0, w-indent-1))
		return []string{marker + strings.Repeat("•", n)}, indent + n, 0
	}
	visible := strings.Split(in.area.View(), "\n")
	cursorRow := min(in.area.Cursor().Y, len(visible)-1)
	for i, row := range visible {
		if i == cursorRow {
			chars := []rune(row)
			before := steps.HardWrap(sanitize.Line(string(chars[:min(in.area.LineInfo().ColumnOffset, len(chars))])), w-indent)
			x, y = tty.Width(before[len(before)-1]), len(rows)+len(before)-1
		}
		// Wrap again: joined emoji are wider here than the text area assumes.
		rows = append(rows, steps.HardWrap(sanitize.Line(strings.TrimRight(row, " ")), w-indent)...)
	}
	return steps.Indent(marker, rows), min(x+indent, max(0, w)), y
}

// history is the inputs of this and earlier sessions, oldest first.
type history struct {
	lines    []string
	position int    // 1 is the newest entry, 2 the one before it; 0 is the draft
	draft    string // the text that was in the field before the first older
}

// maxHistory is the maximum number of entries.
const maxHistory = 1000

func (h *history) add(text string) {
	h.reset()
	if text == "" || len(h.lines) > 0 && h.lines[len(h.lines)-1] == text {
		return
	}
	h.lines = append(h.lines, text)
	if len(h.lines) > maxHistory {
		h.lines = slices.Clone(h.lines[len(h.lines)-maxHistory:])
	}
}

func (h *history) reset() { h.position, h.draft = 0, "" }

func (h *history) older(current string) (string, bool) {
	if h.position == len(h.lines) {
		return "", false
	}
	if h.position == 0 {
		h.draft = current
	}
	h.position++
	return h.lines[len(h.lines)-h.position], true
}

func (h *history) newer() (string, bool) {
	if h.position == 0 {
		return "", false
	}
	if h.position--; h.position == 0 {
		return h.draft, true
	}
	return h.lines[len(h.lines)-h.position], true
}
