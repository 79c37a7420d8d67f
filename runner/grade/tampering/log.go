package tampering

import (
	"fmt"
	"iter"
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/runner/grade/script"
)

// LogResult holds the test results in a log. The verdict does not use them if
// the exit code contradicts them.
type LogResult struct {
	// Passed counts the row's tests that count as a success, Failed those with
	// the status failed or error.
	Passed, Failed int
	// AnyFailed reports whether any test failed, including tests that are not
	// in the row.
	AnyFailed bool
	// Listed counts the names of the row's tests that the log has as passed.
	Listed int
	// Overwritten is the name of a test of the row that the log has first as failed
	// and then as passed; empty if there is none.
	Overwritten string
	// ExitCode is the exit code of the tests according to the log; nil if there
	// is none.
	ExitCode *int
}

// CheckLog finds suspicious parts of an evaluation log. text is the output of
// evalScript.
func CheckLog(text, evalScript string, result LogResult) []Finding {
	var findings []Finding
	add := func(flag Flag, format string, args ...any) {
		findings = append(findings, Finding{Flag: flag, Detail: fmt.Sprintf(format, args...)})
	}
	for _, marker := range []string{script.StartMarker, script.EndMarker, script.ExitCodeMarker} {
		want, got := countPrinted(evalScript, marker), countInLog(text, marker)
		if got.total() > want.total() {
			add(MarkerRepeated, "the log has %q %d times; the script prints it %d times", marker, got.total(), want.total())
		}
		if got.untraced > want.untraced {
			add(MarkerPrinted, "the log has %q %d times outside the shell trace; the script prints it there %d times",
				marker, got.untraced, want.untraced)
		}
	}
	for _, detail := range exitContradictions(text, evalScript, result) {
		add(ExitDisagrees, "%s", detail)
	}
	if detail := checkSummary(text, evalScript, result); detail != "" {
		add(SummaryDisagrees, "%s", detail)
	}
	return findings
}

// markerCount counts the occurrences of a marker inside and outside the shell's
// trace.
type markerCount struct{ traced, untraced int }

func (c markerCount) total() int { return c.traced + c.untraced }

// countInLog counts a marker in a log. A marker need not start a line, because the
// output of tests may not end with a newline.
func countInLog(text, marker string) markerCount {
	var c markerCount
	for _, command := range []string{"+ : '", "+ echo '"} {
		c.traced += strings.Count(text, command+marker)
	}
	c.untraced = strings.Count(text, marker) - c.traced
	return c
}

// heredoc matches the start of a here-document and its delimiter.
var heredoc = lazyregexp.New(`<<-?\s*['"]?(\w+)['"]?\s*$`)

// codeLines yields the lines of a script without the contents of its here-documents,
// which are patches.
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

// countPrinted counts how often a script prints a marker. The null command (:) prints
// it only in the trace. echo prints it, and also in the trace if tracing is on.
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
			c.untraced++
		}
	}
	return c
}
