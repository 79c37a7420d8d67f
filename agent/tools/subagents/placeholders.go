package subagents

import (
	"errors"
	"fmt"
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
)

// maxReports is how many bytes a task may have beyond maxTask once earlier reports
// are inserted, and the passed texts together beyond maxPassed.
const maxReports = 2 * maxReport

var placeholderPattern = lazyregexp.New(`^\s*\.([A-Za-z0-9_.-]+)\s*$`)

// fillReports replaces each {{.NAME}} in a text by a report. It does not
// replace placeholders inside reports. It checks the size before each
// replacement, because a text may use a report more than once.
func fillReports(text string, reports map[string]string, limit int) (string, error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "{{")
		name, after, closed := strings.Cut(rest, "}}")
		addition := before
		switch m := placeholderPattern.FindStringSubmatch(name); {
		case !found:
		case !closed || strings.Contains(name, "{{"):
			return "", errors.New("a {{ has no }}; {{.previous}} and {{.results.NAME}} stand for reports, and a text that has {{ in it is passed as a file")
		case m == nil:
			addition += "{{" + name + "}}"
		default:
			report, ok := reports[m[1]]
			if !ok {
				return "", fmt.Errorf("{{.%s}} is no report of a step before", m[1])
			}
			addition += report
		}
		if b.Len()+len(addition) > limit {
			return "", fmt.Errorf("it has more than %d bytes with the reports in it", limit)
		}
		if b.WriteString(addition); !found {
			return b.String(), nil
		}
		text = after
	}
}

// fillTemplates inserts the earlier reports into the task and into its passed
// texts that are not files.
func (t *childTask) fillTemplates(reports map[string]string) (err error) {
	if t.text, err = fillReports(t.text, reports, maxTask+maxReports); err != nil {
		return fmt.Errorf("the task: %w", err)
	}
	remaining := maxPassed + maxReports
	for i, p := range t.passed {
		if p.file == "" {
			if t.passed[i].text, err = fillReports(p.text, reports, remaining); err != nil {
				return fmt.Errorf("what is passed: %w", err)
			}
		}
		remaining -= len(t.passed[i].text)
	}
	return nil
}
