package screen

import (
	"fmt"
	"slices"
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"

	"github.com/minibench/mini/cmd/mini/internal/chat"
	"github.com/minibench/mini/cmd/mini/internal/safe"
	tty "github.com/minibench/mini/cmd/mini/internal/screen"
	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
)

// input is where people write: a few lines, a history, long pastes as one sign.
type input struct {
	area    textarea.Model
	history history
	pastes  []string // long texts; a mark in the input stands for each

	picked int    // of the matches, after Tab; -1 none
	stem   string // what was typed before Tab
	closed bool   // the matches are not shown until something is typed
}

const (
	prompt    = "❯ "
	maxInput  = 10 // rows
	maxTyped  = 8 << 10
	longPaste = 10 // lines
	maxKey    = 64 // bytes of what one key writes
)

func newInput(old []string) input {
	area := textarea.New()
	area.SetStyles(textarea.Styles{})
	area.SetVirtualCursor(false)
	area.Prompt, area.ShowLineNumbers, area.CharLimit, area.EndOfBufferCharacter = "", false, maxTyped, ' '
	area.DynamicHeight, area.MinHeight, area.MaxHeight, area.MaxContentHeight, area.MaxWidth = true, 1, maxInput, 1<<20, 0
	// Other keys have their own meaning here, and what asks programs for the
	// clipboard is none of ours: terminals paste.
	for _, b := range []*key.Binding{
		&area.KeyMap.InsertNewline, &area.KeyMap.Paste, &area.KeyMap.CopySelection,
		&area.KeyMap.TransposeCharacterBackward, &area.KeyMap.SelectAll,
	} {
		b.SetEnabled(false)
	}
	area.Focus()
	return input{area: area, picked: -1, history: history{lines: old}}
}

// resize for a terminal.
func (in *input) resize(w, h int) {
	in.area.MaxHeight = max(1, min(maxInput, h/3))
	in.area.SetWidth(max(1, w-tty.Width(prompt)))
}

// value is the text, with the long pastes in it.
func (in *input) value() string {
	text := in.area.Value()
	for i, p := range in.pastes {
		text = strings.Replace(text, pasteMark(i, p), p, 1)
	}
	return text
}

func (in *input) newline() {
	in.picked, in.closed = -1, false
	in.area.InsertRune('\n')
}

// atEnd says that the cursor is behind the last sign.
func (in *input) atEnd() bool {
	text := in.area.Value()
	last := text[strings.LastIndexByte(text, '\n')+1:]
	return in.area.Line() == in.area.LineCount()-1 && in.area.Column() == len([]rune(last))
}

func (in *input) empty() bool { return in.area.Value() == "" }

func (in *input) reset() {
	in.area.Reset()
	in.pastes, in.picked, in.closed = nil, -1, false
	in.history.leave()
}

func (in *input) set(text string) {
	in.pastes = nil
	if !fits(text) {
		in.pastes = []string{text}
		text = pasteMark(0, text)
	}
	in.area.SetValue(text)
}

// paste is one input, whatever line ends it has. Long ones, and such as cannot be
// shown as they are, are one sign.
func (in *input) paste(text string) {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	in.picked, in.closed = -1, false
	if fits(text) {
		in.area.InsertString(text)
		return
	}
	in.pastes = append(in.pastes, text)
	in.area.InsertString(pasteMark(len(in.pastes)-1, text))
}

// fits says that a text may stand in the input itself.
func fits(text string) bool {
	return len(text) <= maxTyped/8 && strings.Count(text, "\n") < longPaste && safe.Shown(text)
}

func pasteMark(i int, text string) string {
	return fmt.Sprintf("[pasted %d: %s]", i+1, pasteSize(text))
}

func pasteSize(text string) string {
	if n := strings.Count(strings.TrimRight(text, "\n"), "\n"); n > 0 {
		return count(n+1, "line")
	}
	return count(len([]rune(text)), "sign")
}

// typed gives a key to the text.
func (in *input) typed(msg tea.KeyPressMsg) {
	in.picked, in.closed = -1, false
	if msg.Text != "" && (len(msg.Text) > maxKey || !safe.Shown(msg.Text)) {
		msg.Text = safe.Line(bounded(msg.Text, maxKey))
	}
	in.area, _ = in.area.Update(msg) // its commands are of the clipboard and of blinking
}

// matches are the slash commands that begin like the input.
func (in *input) matches() []chat.Slash {
	stem := in.area.Value()
	if in.picked >= 0 {
		stem = in.stem
	}
	if in.closed || !strings.HasPrefix(stem, "/") || strings.ContainsAny(stem, " \n") {
		return nil
	}
	var found []chat.Slash
	for _, c := range chat.Slashes() {
		if strings.HasPrefix(c.Name, stem) || strings.HasPrefix(c.Long, stem) {
			found = append(found, c)
		}
	}
	return found
}

// complete is the Tab key: the first match, then the next. words are the answers
// to choose from.
func (in *input) complete(words []string, back int) {
	matches := in.matches()
	names := make([]string, 0, len(matches))
	for _, c := range matches {
		names = append(names, c.Long)
		if c.Long == "" {
			names[len(names)-1] = c.Name
		}
	}
	if len(names) == 0 && (in.empty() || slices.Contains(words, in.area.Value())) {
		names = words
	}
	if len(names) == 0 {
		return
	}
	if in.picked < 0 {
		in.stem, in.picked = in.area.Value(), 0
		if i := slices.Index(words, in.stem); i >= 0 {
			in.picked = (i + 1) % len(words)
		}
	} else {
		in.picked = (in.picked + back + len(names)) % len(names)
	}
	in.area.SetValue(names[in.picked%len(names)])
}

// older and newer go through the history, where the cursor is in the first or
// last row of the input.
func (in *input) older() {
	if in.row() == 0 {
		in.picked = -1
		if text, ok := in.history.older(in.value()); ok {
			in.set(text)
		}
		return
	}
	in.area.CursorUp()
}

func (in *input) newer() {
	if in.row() == in.rows()-1 {
		in.picked = -1
		if text, ok := in.history.newer(); ok {
			in.set(text)
		}
		return
	}
	in.area.CursorDown()
}

// row is that of the cursor, among all rows of the text.
func (in *input) row() int { return in.area.ScrollYOffset() + in.area.Cursor().Y }

func (in *input) rows() int {
	if in.area.Line() < in.area.LineCount()-1 {
		return in.row() + 2 // at least
	}
	info := in.area.LineInfo()
	return in.row() + info.Height - info.RowOffset
}

// view is the input in rows, and where the cursor is.
func (in *input) view(hint string, secret bool, w int) (rows []string, x, y int) {
	mark := strong(cyan, strings.TrimRight(prompt, " ")) + " "
	indent := tty.Width(prompt)
	switch {
	case in.empty():
		return []string{mark + faint(tty.Cut(hint, max(0, w-indent)))}, indent, 0
	case secret:
		n := min(len([]rune(in.area.Value())), max(0, w-indent-1))
		return []string{mark + strings.Repeat("•", n)}, indent + n, 0
	}
	all := strings.Split(in.area.View(), "\n")
	at := min(in.area.Cursor().Y, len(all)-1)
	for i, row := range all {
		if i == at {
			signs := []rune(row)
			before := steps.Wrap(safe.Line(string(signs[:min(in.area.LineInfo().ColumnOffset, len(signs))])), w-indent)
			x, y = tty.Width(before[len(before)-1]), len(rows)+len(before)-1
		}
		// Joined emoji are wider here than the area takes them for.
		rows = append(rows, steps.Wrap(safe.Line(strings.TrimRight(row, " ")), w-indent)...)
	}
	return indented(mark, rows), min(x+indent, max(0, w)), y
}

// history of what was sent, oldest first.
type history struct {
	lines []string
	at    int // how many back; 0 is the draft
	draft string
}

// maxHistory is how many are kept.
const maxHistory = 1000

func (h *history) add(text string) {
	h.leave()
	if text == "" || len(h.lines) > 0 && h.lines[len(h.lines)-1] == text {
		return
	}
	h.lines = append(h.lines, text)
	if len(h.lines) > maxHistory {
		h.lines = slices.Clone(h.lines[len(h.lines)-maxHistory:])
	}
}

func (h *history) leave() { h.at, h.draft = 0, "" }

func (h *history) older(now string) (string, bool) {
	if h.at == len(h.lines) {
		return "", false
	}
	if h.at == 0 {
		h.draft = now
	}
	h.at++
	return h.lines[len(h.lines)-h.at], true
}

func (h *history) newer() (string, bool) {
	if h.at == 0 {
		return "", false
	}
	if h.at--; h.at == 0 {
		return h.draft, true
	}
	return h.lines[len(h.lines)-h.at], true
}
