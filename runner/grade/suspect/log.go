package suspect

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/minibench/mini/runner/grade/script"
)

// Outcome is what a grader read in a log.
type Outcome struct {
	// Passed are tests that passed, or failed as they were expected to; Failed
	// are those that failed or ended with an error.
	Passed, Failed int
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
	if o.ExitCode != nil && *o.ExitCode != 0 && o.Passed > 0 && o.Failed == 0 {
		add(ExitDisagrees, "%d tests passed and none failed, but the tests exited with %d", o.Passed, *o.ExitCode)
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
var document = regexp.MustCompile(`<<-?\s*['"]?(\w+)['"]?\s*$`)

// printed is how often a script prints a marker. What a command that does
// nothing is given, only the trace shows; echo prints it, and the trace once
// more unless it is switched off.
func printed(evalScript, marker string) markerCount {
	var c markerCount
	trace, end := false, ""
	for line := range strings.SplitSeq(evalScript, "\n") {
		if end != "" {
			if line == end {
				end = ""
			}
			continue // text of a patch, which nobody runs
		}
		if m := document.FindStringSubmatch(line); m != nil {
			end = m[1]
		}
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
