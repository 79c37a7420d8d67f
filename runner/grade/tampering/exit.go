package tampering

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/minibench/mini/runner/grade/script"
)

// exitVariable precedes the exit code of the tests in the shell's trace.
const exitVariable = "+ SWEBENCH_TEST_EXIT_CODE="

// exitContradictions describes the contradictions between the test results in a log
// and the exit code of the tests.
func exitContradictions(text, evalScript string, result LogResult) (details []string) {
	add := func(format string, args ...any) { details = append(details, fmt.Sprintf(format, args...)) }
	codes := exitCodes(text)
	if result.ExitCode != nil && !slices.Contains(codes, strconv.Itoa(*result.ExitCode)) {
		codes = append(codes, strconv.Itoa(*result.ExitCode))
	}
	if len(codes) > 1 {
		add("the log has different exit codes of the tests: %s", strings.Join(codes[:min(len(codes), 5)], ", "))
	}
	switch {
	case result.ExitCode == nil:
		// A truncated log has no end marker either.
		if countPrinted(evalScript, script.ExitCodeMarker).total() > 0 && strings.Contains(text, script.EndMarker) {
			add("the script prints the exit code of the tests, but the log does not have it")
		}
	case *result.ExitCode != 0 && result.Passed > 0 && !result.AnyFailed:
		add("%d tests passed and none failed, but the tests exited with %d", result.Passed, *result.ExitCode)
	case *result.ExitCode == 0 && result.Failed > 0 && exitCodeShowsFailures(evalScript):
		add("%d tests failed, but the tests exited with 0", result.Failed)
	}
	return details
}

// exitCodes returns the distinct exit codes of the tests in a log: first those
// after the exit marker, then those in the shell's trace.
func exitCodes(text string) (codes []string) {
	for _, prefix := range []string{script.ExitCodeMarker, exitVariable} {
		for rest := text; ; {
			var ok bool
			if _, rest, ok = strings.Cut(rest, prefix); !ok {
				break
			}
			number := strings.TrimLeft(rest[:min(len(rest), 32)], " \t\r\n")
			digits := strings.TrimPrefix(number, "-")
			end := len(number) - len(strings.TrimLeft(digits, "0123456789"))
			if n, err := strconv.Atoi(number[:end]); err == nil && !slices.Contains(codes, strconv.Itoa(n)) {
				codes = append(codes, strconv.Itoa(n))
			}
		}
	}
	return codes
}

// exitCodeShowsFailures reports whether a failed test makes the exit code of the
// script's tests non-zero. It is false if there are several commands, because the
// exit code is that of the last one, or if an option ignores failures.
func exitCodeShowsFailures(evalScript string) bool {
	commands := testCommands(evalScript)
	return len(commands) == 1 && !strings.ContainsAny(commands[0], ";") &&
		!strings.Contains(commands[0], "||") && !strings.Contains(commands[0], "--force")
}

// testCommands returns the lines between the markers of a script, without the line
// that saves the exit code.
func testCommands(evalScript string) []string {
	var commands []string
	started := false
	for line := range codeLines(evalScript) {
		switch {
		case !started:
			started = strings.Contains(line, script.StartMarker)
		case strings.Contains(line, script.EndMarker):
			return commands
		case !strings.HasPrefix(line, "SWEBENCH_TEST_EXIT_CODE="):
			commands = append(commands, line)
		}
	}
	return commands
}
