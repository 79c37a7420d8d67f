package web

import (
	"strings"

	"github.com/minibench/mini/trajectories/timeline"
)

// addedLine is a line that the final patch adds, with the steps whose commands contain it. It is
// found by exact text: a line that a program wrote has no step.
type addedLine struct {
	Text        string
	First, Last string // names of steps; "" if no command contains the line
}

// Limits of the search for added lines.
const (
	minAdded = 12  // characters of a line; shorter ones are found anywhere
	maxAdded = 200 // lines
)

// findAdded finds the lines that a patch adds in the commands of an attempt. more is the number of
// lines beyond the limit.
func findAdded(t *timeline.Timeline, patch string) (lines []addedLine, more int) {
	for line := range strings.SplitSeq(patch, "\n") {
		added, ok := strings.CutPrefix(line, "+")
		added = strings.TrimSpace(added)
		if !ok || strings.HasPrefix(line, "+++ ") || len(added) < minAdded {
			continue
		}
		if len(lines) == maxAdded {
			more++
			continue
		}
		lines = append(lines, addedLine{Text: added})
	}
	for _, s := range t.Steps {
		for _, item := range s.Items {
			if item.Kind != timeline.Command {
				continue
			}
			for i := range lines {
				if strings.Contains(item.Text, lines[i].Text) {
					setFirst(&lines[i].First, stepName(s))
					lines[i].Last = stepName(s)
				}
			}
		}
	}
	return lines, more
}

// testSteps is a failing test with the steps whose commands name it.
type testSteps struct {
	Name  string
	Steps []string
}

// maxTestSteps is the number of steps that are listed for a test.
const maxTestSteps = 10

// findTests finds failing tests in the commands of an attempt.
func findTests(t *timeline.Timeline, tests []string) []testSteps {
	var all []testSteps
	for _, name := range tests[:min(len(tests), maxAdded)] {
		found := testSteps{Name: name}
		parts, files := testNames([]string{name})
		parts = append(parts, files...)
		for _, s := range t.Steps {
			for _, item := range s.Items {
				if item.Kind == timeline.Command && len(found.Steps) < maxTestSteps && containsAny(item.Text, parts) {
					found.Steps = append(found.Steps, stepName(s))
					break
				}
			}
		}
		all = append(all, found)
	}
	return all
}
