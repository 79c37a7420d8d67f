package tampering

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
)

// runnerSummary describes the lines in which a test runner counts its results.
type runnerSummary struct {
	command string             // a part of the test command
	word    string             // a part of such a line, to find it fast
	line    *lazyregexp.Regexp // matches at the start of the line
	// always means that every run ends with such a line, unless its process ended before.
	always bool
	// repeats means that a run may have several, which add up. Otherwise the last one counts,
	// because tests may print others before.
	repeats bool
	// counts means that the line has the numbers of tests.
	counts bool
}

var runnerSummaries = []runnerSummary{
	{"pytest", " in ", pytestLine, true, false, true},
	{"tox ", " in ", pytestLine, true, false, true},
	{"runtests.py", "Ran ", lazyregexp.New(`^Ran \d+ tests? in [\d.]+s\n+(?:OK|FAILED).*`), true, false, true},
	{"bin/test", "tests finished: ", lazyregexp.New(`^[= ]*tests finished: (?s:.*?)in [\d.]+ seconds`), true, false, true},
	{"cargo test", "test result: ", lazyregexp.New(`^test result: .*`), true, true, true},
	{"go test", "\t", lazyregexp.New(`^(?:ok|FAIL)\s+\S+\s+(?:[\d.]+s|\(cached\)|\[).*`), true, true, false},
	{"phpunit", "ssertions", lazyregexp.New(`^(?:OK \(|Tests: )\d+.*`), false, false, true},
	{"vitest", "Tests ", jestLine, false, true, true},
	{"jest", "Tests:", jestLine, false, true, true},
}

var (
	pytestLine = lazyregexp.New(`^(?:=+ )?(?:no tests ran|\d+ [a-z ]+(?:, \d+ [a-z ]+)*) in [\d.]+ ?s.*`)
	jestLine   = lazyregexp.New(`^\s*Tests:?\s+\d+ [a-z]+.*`)
	// colour matches the escape sequences of colours.
	colour = lazyregexp.New(`\x1b\[[\d;]*m`)
	// count matches a number of tests in a summary, before or after its word.
	count = lazyregexp.New(`(\d+) (tests?|passed|skipped|xfailed|xpassed|ignored|todo|expected|failed|failures?|errors?|exceptions?)\b|` +
		`\b(Tests|[Ff]ailures|[Ee]rrors)[=:] ?(\d+)`)
)

// maxSummary limits the length of a summary, in bytes.
const maxSummary = 1000

// checkSummary describes how the results of a log disagree with the test runner's own summary. It
// returns "" if they agree, or if the summary is not known.
func checkSummary(text, evalScript string, result LogResult) string {
	if result.Overwritten != "" {
		return fmt.Sprintf("the log has %.200q first as failed and then as passed", result.Overwritten)
	}
	commands := strings.Join(testCommands(evalScript), "\n")
	for _, s := range runnerSummaries {
		if strings.Contains(commands, s.command) {
			return s.check(text, result)
		}
	}
	return ""
}

func (s runnerSummary) check(text string, result LogResult) string {
	lines, passed, failed := 0, 0, 0
	for rest := text; lines == 0 || s.repeats; {
		i := strings.LastIndex(rest, s.word)
		if i < 0 {
			break
		}
		start := strings.LastIndexByte(rest[:i], '\n') + 1
		if found := s.find(text[start:]); found != "" {
			p, f := countTests(found)
			lines, passed, failed = lines+1, passed+p, failed+f
		}
		rest = rest[:start]
	}
	switch {
	case lines == 0 && s.always && result.Listed > 0:
		return fmt.Sprintf("%d tests passed, but the test runner did not print its summary", result.Listed)
	case lines > 0 && s.counts && result.Listed > passed:
		return fmt.Sprintf("%d tests passed, but the test runner counts %d", result.Listed, passed)
	case failed > 0 && result.Listed > 0 && !result.AnyFailed:
		return fmt.Sprintf("no test failed, but the test runner counts %d", failed)
	}
	return ""
}

// find returns the summary at the start of a text, without colours, or "".
func (s runnerSummary) find(text string) string {
	text = text[:min(len(text), maxSummary)]
	if strings.Contains(text, "\x1b") {
		text = colour.ReplaceAllString(text, "")
	}
	return s.line.FindString(text)
}

// countTests returns how many tests did not fail, at most, and how many failed, according to a
// summary.
func countTests(summary string) (passed, failed int) {
	total := 0
	// An expected failure is no failure of a test.
	for _, m := range count.FindAllSubmatch([]byte(strings.ReplaceAll(summary, "expected failures", "")), -1) {
		n, _ := strconv.Atoi(string(m[1]) + string(m[4])) // one of them is empty; clamped if it is too large
		switch word := strings.ToLower(string(m[2]) + string(m[3])); word {
		case "test", "tests":
			total += n
		case "passed", "skipped", "xfailed", "xpassed", "ignored", "todo", "expected":
			passed += n
		default:
			failed += n
		}
	}
	if total > 0 {
		// One test may have several failures.
		passed = max(total-min(failed, 1), passed)
	}
	return passed, failed
}
