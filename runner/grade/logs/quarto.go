package logs

import (
	"strconv"
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
)

var (
	quartoFile   = PythonPattern(`/tmp/\w+\.qmd`)
	quartoFolder = PythonPattern(`/tmp/\w+/`)
)

// quarto parses the colored output of Deno's tests, up to the list of errors. It replaces the
// random names of temporary files by numbers, so that test names are the same in each log.
func quarto(t *Tests, text string, _ InstanceInfo) error {
	t.others = nil // quartoLine looks up earlier tests
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
