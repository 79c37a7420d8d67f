package suspect

import (
	"fmt"
	"iter"
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/runner/grade/script"
)

// Outcome is what a grader read in a log, be it believed or not.
type Outcome struct {
	// Passed are tests of the row that passed, or failed as they were expected
	// to; Failed are those that the log has as failed, or as ended by an error.
	Passed, Failed int
	// AnyFailed says that some test failed by the log, of the row or not.
	AnyFailed bool
	// ExitCode is what the log says the tests exited with; nil where it does
	// not say.
	ExitCode *int
}

// Log says what is suspicious in the log of an evaluation: text is all that
// evalScript printed.
func Log(text, evalScript string, o Outcome) []Finding {
	var found []Finding
	add := func(flag Flag, format string, args ...any) {
		found = append(found, Finding{Flag: flag, Detail: fmt.Sprintf(format, args...)})
	}
	for _, marker := range []string{script.Start, script.End, script.ExitCode} {
		want, got := printed(evalScript, marker), counted(text, marker)
		if got.all() > want.all() {
			add(MarkerRepeated, "%q is in the log %d times; the script prints it %d times", marker, got.all(), want.all())
		}
		if got.plain > want.plain {
			add(MarkerPrinted, "%q is in the log %d times as plain text; the script prints it so %d times", marker, got.plain, want.plain)
		}
	}
	for _, why := range disagreements(text, evalScript, o) {
		add(ExitDisagrees, "%s", why)
	}
	return found
}

// markerCount is how often a marker is printed: by the shell's trace of a
// command, and otherwise.
type markerCount struct{ traced, plain int }

func (c markerCount) all() int { return c.traced + c.plain }

// counted is how often a marker is in a log. Lines do not matter: what tests
// print need not end with a newline before the trace goes on.
func counted(text, marker string) markerCount {
	var c markerCount
	for _, command := range []string{"+ : '", "+ echo '"} {
		c.traced += strings.Count(text, command+marker)
	}
	c.plain = strings.Count(text, marker) - c.traced
	return c
}

// document finds the beginning of a here-document, and the word that ends it.
var document = lazyregexp.New(`<<-?\s*['"]?(\w+)['"]?\s*$`)

// code are the lines of a script but for its here-documents: those have the
// text of a patch, which nobody runs.
func code(evalScript string) iter.Seq[string] {
	return func(yield func(string) bool) {
		end := ""
		for line := range strings.SplitSeq(evalScript, "\n") {
			if end != "" {
				if line == end {
					end = ""
				}
				continue
			}
			if m := document.FindStringSubmatch(line); m != nil {
				end = m[1]
			}
			if !yield(line) {
				return
			}
		}
	}
}

// printed is how often a script prints a marker. What a command that does
// nothing is given, only the trace shows; echo prints it, and the trace once
// more unless it is switched off.
func printed(evalScript, marker string) markerCount {
	var c markerCount
	trace := false
	for line := range code(evalScript) {
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
