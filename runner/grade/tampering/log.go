package tampering

import (
	"fmt"
	"iter"
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/runner/grade/script"
)

// LogResult holds the test results in a log, even if the verdict does not use
// them.
type LogResult struct {
	// Passed counts the row's tests that passed or failed as expected, Failed
	// those with the status failed or error.
	Passed, Failed int
	// AnyFailed reports whether any test failed, including tests that are not
	// in the row.
	AnyFailed bool
	// ExitCode is the exit code of the tests according to the log; nil if there
	// is none.
	ExitCode *int
}

// CheckLog finds suspicious parts of an evaluation log. text is the output of
// evalScript.
func CheckLog(text, evalScript string, o LogResult) []Finding {
	var found []Finding
	add := func(flag Flag, format string, args ...any) {
		found = append(found, Finding{Flag: flag, Detail: fmt.Sprintf(format, args...)})
	}
	for _, marker := range []string{script.StartMarker, script.EndMarker, script.ExitCodeMarker} {
		want, got := countPrinted(evalScript, marker), countInLog(text, marker)
		if got.all() > want.all() {
			add(MarkerRepeated, "the log has %q %d times; the script prints it %d times", marker, got.all(), want.all())
		}
		if got.plain > want.plain {
			add(MarkerPrinted, "the log has %q %d times outside the shell trace; the script prints it there %d times",
				marker, got.plain, want.plain)
		}
	}
	for _, why := range exitContradictions(text, evalScript, o) {
		add(ExitDisagrees, "%s", why)
	}
	return found
}

// markerCount counts the occurrences of a marker in the shell's trace and
// elsewhere.
type markerCount struct{ traced, plain int }

func (c markerCount) all() int { return c.traced + c.plain }

// countInLog counts a marker in a log. It ignores lines, because the output of
// tests need not end with a newline.
func countInLog(text, marker string) markerCount {
	var c markerCount
	for _, command := range []string{"+ : '", "+ echo '"} {
		c.traced += strings.Count(text, command+marker)
	}
	c.plain = strings.Count(text, marker) - c.traced
	return c
}

// heredoc matches the start of a here-document and its delimiter.
var heredoc = lazyregexp.New(`<<-?\s*['"]?(\w+)['"]?\s*$`)

// codeLines yields the lines of a script without its here-documents, which hold
// a patch.
func codeLines(evalScript string) iter.Seq[string] {
	return func(yield func(string) bool) {
		end := ""
		for line := range strings.SplitSeq(evalScript, "\n") {
			if end != "" {
				if line == end {
					end = ""
				}
				continue
			}
			if m := heredoc.FindStringSubmatch(line); m != nil {
				end = m[1]
			}
			if !yield(line) {
				return
			}
		}
	}
}

// countPrinted returns how often a script prints a marker. A command without
// effect prints it in the trace only; echo prints it, and also in the trace
// unless tracing is off.
func countPrinted(evalScript, marker string) markerCount {
	var c markerCount
	trace := false
	for line := range codeLines(evalScript) {
		switch {
		case strings.Contains(line, "set +x"):
			trace = false
		case strings.HasPrefix(line, "set -") && strings.Contains(strings.Fields(line)[1], "x"):
			trace = true
		}
		if !strings.Contains(line, marker) {
			continue
		}
		if trace {
			c.traced++
		}
		if !strings.HasPrefix(line, ": ") {
			c.plain++
		}
	}
	return c
}
