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

// exitContradictions describes contradictions between the test results in a log and
// the exit code of the tests.
func exitContradictions(text, evalScript string, o LogResult) (found []string) {
	add := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	codes := exitCodes(text)
	if o.ExitCode != nil && !slices.Contains(codes, strconv.Itoa(*o.ExitCode)) {
		codes = append(codes, strconv.Itoa(*o.ExitCode))
	}
	if len(codes) > 1 {
		add("the log has different exit codes of the tests: %s", strings.Join(codes[:min(len(codes), 5)], ", "))
	}
	switch {
	case o.ExitCode == nil:
		// A truncated log has no end marker either.
		if countPrinted(evalScript, script.ExitCodeMarker).all() > 0 && strings.Contains(text, script.EndMarker) {
			add("the script prints the exit code of the tests, but the log does not have it")
		}
	case *o.ExitCode != 0 && o.Passed > 0 && !o.AnyFailed:
		add("%d tests passed and none failed, but the tests exited with %d", o.Passed, *o.ExitCode)
	case *o.ExitCode == 0 && o.Failed > 0 && exitCodeShowsFailures(evalScript):
		add("%d tests failed, but the tests exited with 0", o.Failed)
	}
	return found
}

// exitCodes returns the distinct exit codes of the tests in a log, in order.
func exitCodes(text string) (codes []string) {
	for _, before := range []string{script.ExitCodeMarker, exitVariable} {
		for rest := text; ; {
			var ok bool
			if _, rest, ok = strings.Cut(rest, before); !ok {
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

// exitCodeShowsFailures reports whether the exit code of the script's tests is
// zero only if all pass. The exit code of a command list is that of the last
// command, and some test runners have options to ignore failures.
func exitCodeShowsFailures(evalScript string) bool {
	commands := testCommands(evalScript)
	return len(commands) == 1 && !strings.ContainsAny(commands[0], ";") &&
		!strings.Contains(commands[0], "||") && !strings.Contains(commands[0], "--force")
}

// testCommands returns the lines of a script between its markers, without the
// one that saves the exit code.
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
