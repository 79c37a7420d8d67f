package inspect

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// wrap breaks a line that is fit for the terminal into pieces of so many columns.
// Each begins and ends its colours by itself, since any of them may be the first
// that is shown.
func wrap(line string, width int) []string {
	width = max(2, width)
	if len(line) <= width { // no sign is wider than its bytes
		return []string{line}
	}
	var out []string
	var piece strings.Builder
	pen, used := "", 0
	end := func() {
		if pen != "" {
			piece.WriteString(ansi.ResetStyle)
		}
		out = append(out, piece.String())
		piece.Reset()
		piece.WriteString(pen)
		used = 0
	}
	var state byte
	for len(line) > 0 {
		seq, w, n, next := ansi.DecodeSequenceWc(line, state, nil)
		line, state = line[n:], next
		if w == 0 && strings.HasPrefix(seq, "\x1b") {
			piece.WriteString(seq)
			if pen += seq; seq == ansi.ResetStyle {
				pen = ""
			}
			continue
		}
		if used+w > width {
			end()
		}
		piece.WriteString(seq)
		used += w
	}
	if used > 0 || len(out) == 0 {
		end()
	}
	return out
}

// marked shows where a line has what is searched for. Its colours give way.
func marked(line string, m *matcher) string {
	if m == nil {
		return line
	}
	plain := ansi.Strip(line)
	var b strings.Builder
	rest := plain
	for {
		at, n := m.find(rest)
		if at < 0 {
			break
		}
		b.WriteString(rest[:at] + ansi.NewStyle().Reverse(true).Styled(rest[at:at+n]))
		rest = rest[at+n:]
	}
	if b.Len() == 0 {
		return line
	}
	return b.String() + rest
}
