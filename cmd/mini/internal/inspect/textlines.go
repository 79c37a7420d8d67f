package inspect

import (
	"strings"
	"unicode/utf8"

	"github.com/minibench/mini/cmd/mini/internal/safe"
)

// Texts are found in lines at once, and made fit for the terminal line by line
// when they are shown: an output may have megabytes.

// maxLine is the longest piece of a line that is made at once, in bytes.
const maxLine = 4 << 10

// span is a line of a text, or a piece of one that is very long.
type span struct {
	start, end int
	pen        string // the colours that earlier lines have left on
}

// linesOf takes a text apart. Of a long line that was written over again and
// again, as progress bars are, what came last is left. Colours go on from line
// to line where the text is an output.
func linesOf(text string, colours bool) []span {
	lines := make([]span, 0, strings.Count(text, "\n")+1)
	pen := ""
	for start := 0; start < len(text); {
		end, next := len(text), len(text)
		if i := strings.IndexByte(text[start:], '\n'); i >= 0 {
			end, next = start+i, start+i+1
		}
		if colours && end-start > maxLine {
			line := strings.TrimRight(text[start:end], "\r")
			start += strings.LastIndexByte(line, '\r') + 1
		}
		for {
			piece := cutAt(text[start:end])
			lines = append(lines, span{start, start + piece, pen})
			if colours {
				pen = penAfter(pen, text[start:start+piece])
			}
			if start += piece; start >= end {
				break
			}
		}
		start = next
	}
	return lines
}

// cutAt is how much of a line is one piece: no character or sequence is cut.
func cutAt(line string) int {
	if len(line) <= maxLine {
		return len(line)
	}
	end := maxLine
	for end > maxLine-utf8.UTFMax && !utf8.RuneStart(line[end]) {
		end--
	}
	const longest = 64
	if i := strings.LastIndexByte(line[end-longest:end], '\x1b'); i >= 0 && !complete(line[end-longest+i:end]) {
		end = end - longest + i
	}
	return end
}

// complete says whether a control sequence has its last letter.
func complete(sequence string) bool {
	return strings.ContainsFunc(sequence[min(2, len(sequence)):], func(r rune) bool { return r >= '@' && r <= '~' })
}

// maxPen bounds the colours that are carried on, in bytes.
const maxPen = 256

// penAfter is what is on after a line.
func penAfter(pen, line string) string {
	for {
		i := strings.Index(line, "\x1b[")
		if i < 0 {
			return pen
		}
		line = line[i+2:]
		n := strings.IndexFunc(line, func(r rune) bool { return (r < '0' || r > '9') && r != ';' && r != ':' })
		if n < 0 {
			return pen
		}
		if line[n] != 'm' {
			continue
		}
		if args := line[:n]; strings.Trim(args, "0") == "" {
			pen = ""
		} else if pen += "\x1b[" + args + "m"; len(pen) > maxPen {
			pen = pen[strings.Index(pen[len(pen)-maxPen:], "\x1b")+len(pen)-maxPen:]
		}
	}
}

// fit makes a line fit for the terminal, which may make several of it.
func (s span) fit(text string, colours bool) []string {
	line := text[s.start:s.end]
	if colours {
		return strings.Split(strings.TrimSuffix(safe.Colours(s.pen+line), "\n"), "\n")
	}
	return strings.Split(safe.Text(strings.TrimSuffix(line, "\r")), "\n")
}
