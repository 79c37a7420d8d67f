package logs

import (
	"iter"
	"strings"
	"sync"

	"github.com/minibench/mini/internal/lazyregexp"
)

// PythonPattern compiles a pattern of the official harness. \s, \S, \d and \w have the same
// meaning as in Python.
func PythonPattern(pattern string) *lazyregexp.Regexp {
	return lazyregexp.NewFunc(func() string { return pythonClasses().Replace(pattern) })
}

var pythonClasses = sync.OnceValue(func() *strings.Replacer {
	return strings.NewReplacer(
		`[^\S\r\n]`, `[\t\v\f \x1c-\x1f\x{85}\p{Z}]`,
		`\s`, `[\t-\r\x1c-\x20\x{85}\p{Z}]`, `\S`, `[^\t-\r\x1c-\x20\x{85}\p{Z}]`,
		`\d`, `\p{Nd}`, `\w`, `[\p{L}\p{N}_]`,
	)
})

// matchGroups yields a group of every match. The pattern must not begin with ^, because
// matchGroups searches the rest of the text after each match.
func matchGroups(pattern *lazyregexp.Regexp, group int, text string) iter.Seq[string] {
	return matches(pattern, group, text, func(_ string, end int) int { return end })
}

// matchLineGroups yields the first group of every match of a pattern that begins with (?m)^.
// It continues in the line after a match.
func matchLineGroups(pattern *lazyregexp.Regexp, text string) iter.Seq[string] {
	return matches(pattern, 1, text, func(text string, end int) int {
		if text[end-1] == '\n' {
			return end
		}
		return min(end+endOfLine(text[end:])+1, len(text))
	})
}

// matches yields a group of every match. next returns the offset at which the search
// continues, given the end of a match.
func matches(pattern *lazyregexp.Regexp, group int, text string, next func(text string, end int) int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for text != "" {
			m := pattern.FindStringSubmatchIndex(text)
			if m == nil || !yield(text[m[2*group]:m[2*group+1]]) {
				return
			}
			text = text[next(text, m[1]):]
		}
	}
}

// statusWords maps the words and marks of test runners to statuses.
var statusWords = map[string]Status{
	"ok": Passed, "OK": Passed, "pass": Passed, "passed": Passed, "PASS": Passed, "PASSED": Passed, "SUCCESS": Passed,
	".": Passed, "✓": Passed, "✔": Passed,
	"err": Failed, "ERR": Failed, "FAIL": Failed, "failed": Failed, "FAILED": Failed, "FAILURE": Failed, "not ok": Failed,
	"E": Failed, "F": Failed, "✕": Failed, "×": Failed, "✖": Failed, "✘": Failed,
	"skip": Skipped, "SKIP": Skipped, "ignore": Skipped, "O": Skipped, "○": Skipped, "↓": Skipped, "↩": Skipped,
}

// parserFor returns a parser that matches each line, without the white space around it, with
// a pattern. Two groups of the pattern are the name of a test and one of statusWords.
func parserFor(pattern string, nameGroup, statusGroup int) parser {
	re := PythonPattern(pattern)
	return perStripped(func(line string) (string, Status, bool) {
		m := re.FindStringSubmatch(line)
		if m == nil {
			return noTest()
		}
		return m[nameGroup], statusWords[m[statusGroup]], true
	})
}

// ansi matches terminal escape sequences (ECMA-48).
var ansi = lazyregexp.New(`\x1B(?:[@-Z\\-_]|\[[0-?]*[ -/]*[@-~])`)

func dropANSI(s string) string { return ansi.ReplaceAllString(s, "") }

// partsAfter yields the text after each occurrence of command, up to the next occurrence.
func partsAfter(text, command string) iter.Seq[string] {
	return func(yield func(string) bool) {
		first := true
		for part := range strings.SplitSeq(text, command) {
			if !first && !yield(part) {
				return
			}
			first = false
		}
	}
}

// afterLast returns the text after the last occurrence of sep, or the whole text if there is
// none.
func afterLast(text, sep string) string {
	if i := strings.LastIndex(text, sep); i >= 0 {
		return text[i+len(sep):]
	}
	return text
}

// beforeLast returns the text before the last occurrence of sep, or the whole text if there is
// none.
func beforeLast(text, sep string) string {
	if i := strings.LastIndex(text, sep); i >= 0 {
		return text[:i]
	}
	return text
}

// beforeMatch returns the text before the first match of a pattern, or the whole text if there
// is none.
func beforeMatch(text string, pattern *lazyregexp.Regexp) string {
	if loc := pattern.FindStringIndex(text); loc != nil {
		return text[:loc[0]]
	}
	return text
}

// endOfLine returns the length of the first line of s.
func endOfLine(s string) int {
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		return i
	}
	return len(s)
}
