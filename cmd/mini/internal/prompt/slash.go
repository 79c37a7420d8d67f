package prompt

import (
	"slices"
	"strings"
)

// Commands are the names of what a person says with a slash, without it: "diff".
type Commands []string

// Complete is what the beginning of a line may become.
func (c Commands) Complete(line string) []string {
	word, slash := strings.CutPrefix(line, "/")
	if !slash || strings.ContainsAny(word, " \t\n/") {
		return nil
	}
	var lines []string
	for _, known := range c {
		if strings.HasPrefix(known, strings.ToLower(word)) {
			lines = append(lines, "/"+known)
		}
	}
	slices.Sort(lines)
	return lines
}

// Continued says whether a line goes on after its end: its last sign is a
// backslash that no other one takes. The text is without it.
func Continued(line string) (text string, more bool) {
	trimmed := strings.TrimRight(line, `\`)
	if (len(line)-len(trimmed))%2 == 0 {
		return line, false
	}
	return line[:len(line)-1], true
}

// Fold is what a person typed or pasted as text: line ends are LF, and what is
// no text is marked.
func Fold(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(ends.Replace(s), "\ufffd"), "\x00", "\ufffd")
}

var ends = strings.NewReplacer("\r\n", "\n", "\r", "\n")
