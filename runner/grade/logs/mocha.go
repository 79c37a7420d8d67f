package logs

import (
	"strings"
	"unicode/utf8"
)

// eslint reads mocha's list of failures, "  1) suite name: Error ...": from a
// number, anywhere, to the first space that has "Error" behind it on the line.
func eslint(t *Tests, text string, _ Subject) error {
	const end = "Error"
	text = throughLast(text, end)
	for at := 0; ; {
		i := strings.IndexByte(text[at:], ')')
		if i < 0 {
			return nil
		}
		begun := isFailureNumber(text[at : at+i])
		at += i + 1
		if !begun {
			continue
		}
		name, n := beforeError(text[at:])
		if n == 0 {
			return nil
		}
		t.Set(collapse(name), Failed)
		at += n
	}
}

// isFailureNumber finds two spaces and a number at the end of s.
func isFailureNumber(s string) bool {
	s, ok := cutDigitsEnd(s)
	if !ok {
		return false
	}
	for range 2 {
		if s, ok = cutSpaceEnd(s); !ok {
			return false
		}
	}
	return true
}

// beforeError is the text up to the first run of spaces that has "Error" behind
// it on the line where the run ends; n is how far the last "Error" of that line
// is, or 0.
func beforeError(s string) (name string, n int) {
	const end = "Error"
	for from := 0; ; {
		i := strings.Index(s[from:], end)
		if i < 0 {
			return "", 0
		}
		i += from
		gap := gapBefore(s[from:i])
		if gap < 0 {
			from = i + len(end)
			continue
		}
		name = stripRight(s[:from+gap])
		last := strings.LastIndex(s[i:i+endOfLine(s[i:])], end)
		return name, i + last + len(end)
	}
}

// gapBefore is where the first space on the last line of s is, or the end of the
// line above it; or -1.
func gapBefore(s string) int {
	line := max(strings.LastIndexByte(s, '\n'), 0)
	if i := strings.IndexFunc(s[line:], isSpace); i >= 0 {
		return line + i
	}
	return -1
}

// highlightJS reads mocha's marks before its summary. Only the nearest heading
// counts.
func highlightJS(t *Tests, text string, _ Subject) error {
	var above []string
	for line := range lines(beforeSummary(text)) {
		stripped := strip(line)
		var name string
		s := Passed
		switch {
		case strings.HasPrefix(stripped, "✓"), strings.HasPrefix(stripped, "✔"):
			_, size := utf8.DecodeRuneInString(stripped)
			name = stripped[size:]
		case isNumbered(stripped):
			_, name, _ = strings.Cut(stripped, ")")
			s = Failed
		case strings.HasPrefix(line, "  "):
			above = []string{stripped}
			continue
		default:
			continue
		}
		name = strip(dropTimings(name))
		if err := t.join(s, ".", append(above[:len(above):len(above)], name)...); err != nil {
			return err
		}
	}
	return nil
}

func isNumbered(s string) bool {
	_, ok := cutNumber(s)
	return ok
}

// beforeSummary is the text before the line "12 passing", which may be indented
// but is not the first.
func beforeSummary(text string) string {
	const summary = " passing"
	for at := 0; ; {
		i := strings.Index(text[at:], summary)
		if i < 0 {
			return text
		}
		at += i
		if before, ok := cutDigitsEnd(text[:at]); ok {
			before = strings.TrimRight(before, " \t")
			if before, ok = strings.CutSuffix(before, "\n"); ok {
				return before
			}
		}
		at += len(summary)
	}
}
