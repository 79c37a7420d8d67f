package delegate

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// maxReports bounds what the reports before add to the task of a step, or to all
// that is passed to it, in bytes.
const maxReports = 2 * maxReport

var place = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\{\{\s*\.([A-Za-z0-9_.-]+)\s*\}\}`)
})

// unknown is the first name in a text that stands for nothing.
func unknown(text string, known map[string]string) string {
	for _, m := range place().FindAllStringSubmatch(text, -1) {
		if _, ok := known[m[1]]; !ok {
			return m[1]
		}
	}
	return ""
}

// filled puts reports where their names stand. What stands in a report is left as
// it is.
func filled(text string, known map[string]string) string {
	return place().ReplaceAllStringFunc(text, func(found string) string {
		name := place().FindStringSubmatch(found)[1]
		return known[name]
	})
}

// filledSize is how long a text is when it is filled, in bytes.
func filledSize(text string, known map[string]string) int {
	n := len(text)
	for _, m := range place().FindAllStringSubmatch(text, -1) {
		n += len(known[m[1]]) - len(m[0])
	}
	return n
}

// unclosed says that a place begins and does not end.
func unclosed(text string) bool {
	for i, part := range strings.Split(text, "{{") {
		if i > 0 && !strings.Contains(part, "}}") {
			return true
		}
	}
	return false
}

// fill puts the reports before into an order. They may stand there more than once:
// what they make is measured before it is made.
func (o *order) fill(known map[string]string) error {
	if n := filledSize(o.task, known); n > maxTask+maxReports {
		return fmt.Errorf("the task has %d bytes with the reports in it, and %d are allowed", n, maxTask+maxReports)
	}
	sum := 0
	for _, p := range o.passed {
		n := len(p.text)
		if p.file == "" {
			n = filledSize(p.text, known)
		}
		sum += n
	}
	if sum > maxPassed+maxReports {
		return fmt.Errorf("what is passed has %d bytes with the reports in it, and %d are allowed", sum, maxPassed+maxReports)
	}
	o.task = filled(o.task, known)
	for i, p := range o.passed {
		if p.file == "" {
			o.passed[i].text = filled(p.text, known)
		}
	}
	return nil
}
