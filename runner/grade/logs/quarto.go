package logs

import (
	"strconv"
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
)

var (
	quartoFile   = lazyregexp.New(`/tmp/[\p{L}\p{N}_]+\.qmd`)
	quartoFolder = lazyregexp.New(`/tmp/[\p{L}\p{N}_]+/`)
)

// quarto reads the coloured output of Deno's tests, up to its errors. Random
// names of temporary files are numbered, so that they are the same in each log.
func quarto(t *Tests, text string, _ Subject) error {
	t.others = nil // a rule below asks which tests were seen
	numbers := map[string]string{}
	for line := range lines(text) {
		if strings.Contains(line, "ERRORS") || strings.Contains(line, "failures:") {
			return nil
		}
		if strings.Contains(line, "[smoke]") || strings.Contains(line, "[unit]") {
			quartoLine(t, numbers, line)
		}
	}
	return nil
}

func quartoLine(t *Tests, numbers map[string]string, line string) {
	for _, temporary := range [...]*lazyregexp.Regexp{quartoFile, quartoFolder} {
		path := temporary.FindString(line)
		if path == "" {
			continue
		}
		if numbers[path] == "" {
			numbers[strings.Clone(path)] = "/tmp/" + strconv.Itoa(len(numbers))
		}
		line = temporary.ReplaceAllLiteralString(line, numbers[path])
	}
	if strings.HasPrefix(line, "test result:") || strings.Contains(line, "34mINFO") ||
		strings.Contains(line, "passed") && strings.Contains(line, "failed") && strings.Contains(line, "steps") {
		return
	}
	name, _, _ := strings.Cut(line, "...")
	name = strip(name)
	switch _, seen := t.Get(name); {
	case strings.Contains(line, "32mok"):
		t.Set(name, Passed)
	case strings.Contains(line, "31mFAILED"), !seen:
		t.Set(name, Failed)
	}
}
