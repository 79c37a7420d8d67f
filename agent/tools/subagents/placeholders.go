package subagents

import (
	"errors"
	"fmt"
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
)

// maxReports bounds the bytes that earlier reports add to the task of a step or
// to its passed texts.
const maxReports = 2 * maxReport

var placeholderPattern = lazyregexp.New(`^\s*\.([A-Za-z0-9_.-]+)\s*$`)

// fillReports replaces each {{.NAME}} in a text by a report. Reports are not
// expanded themselves. The size is checked before each replacement, because a
// report may be used more than once.
func fillReports(text string, reports map[string]string, limit int) (string, error) {
	var b strings.Builder
	for {
		before, rest, more := strings.Cut(text, "{{")
		name, after, closed := strings.Cut(rest, "}}")
		add := before
		switch m := placeholderPattern.FindStringSubmatch(name); {
		case !more:
		case !closed || strings.Contains(name, "{{"):
			return "", errors.New("a {{ has no }}; {{.previous}} and {{.results.NAME}} stand for reports, and a text that has {{ in it is passed as a file")
		case m == nil:
			add += "{{" + name + "}}"
		default:
			report, ok := reports[m[1]]
			if !ok {
				return "", fmt.Errorf("{{.%s}} is no report of a step before", m[1])
			}
			add += report
		}
		if b.Len()+len(add) > limit {
			return "", fmt.Errorf("it has more than %d bytes with the reports in it", limit)
		}
		if b.WriteString(add); !more {
			return b.String(), nil
		}
		text = after
	}
}

// fillTemplates inserts the earlier reports into the task and its passed texts.
func (o *childTask) fillTemplates(known map[string]string) (err error) {
	if o.task, err = fillReports(o.task, known, maxTask+maxReports); err != nil {
		return fmt.Errorf("the task: %w", err)
	}
	left := maxPassed + maxReports
	for i, p := range o.passed {
		if p.file == "" {
			if o.passed[i].text, err = fillReports(p.text, known, left); err != nil {
				return fmt.Errorf("what is passed: %w", err)
			}
		}
		left -= len(o.passed[i].text)
	}
	return nil
}
