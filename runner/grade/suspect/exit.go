package suspect

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/minibench/mini/runner/grade/script"
)

// exitVariable is how the shell's trace shows what the tests exited with, before
// the script prints it.
const exitVariable = "+ SWEBENCH_TEST_EXIT_CODE="

// disagreements are the ways in which what a log claims of its tests, and what
// it says they exited with, cannot both be true.
func disagreements(text, evalScript string, o Outcome) (found []string) {
	add := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	codes := exitCodes(text)
	if o.ExitCode != nil && !slices.Contains(codes, strconv.Itoa(*o.ExitCode)) {
		codes = append(codes, strconv.Itoa(*o.ExitCode))
	}
	if len(codes) > 1 {
		add("it says more than once what the tests exited with, and not the same: %s", strings.Join(codes[:min(len(codes), 5)], ", "))
	}
	switch {
	case o.ExitCode == nil:
		// A log that breaks off before has no end marker either.
		if printed(evalScript, script.ExitCode).all() > 0 && strings.Contains(text, script.End) {
			add("the script prints what the tests exited with, and the log does not have it")
		}
	case *o.ExitCode != 0 && o.Passed > 0 && !o.AnyFailed:
		add("%d tests passed and none failed, but the tests exited with %d", o.Passed, *o.ExitCode)
	case *o.ExitCode == 0 && o.Failed > 0 && tells(evalScript):
		add("%d tests failed, but the tests exited with 0", o.Failed)
	}
	return found
}

// exitCodes are the different numbers that a log has for what the tests exited
// with, in order.
func exitCodes(text string) (codes []string) {
	for _, before := range []string{script.ExitCode, exitVariable} {
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

// tells says whether the exit code of a script's tests is zero only when they
// passed. That of a list of commands is the last one's, and some runners are
// told to keep silent.
func tells(evalScript string) bool {
	commands := testCommands(evalScript)
	return len(commands) == 1 && !strings.ContainsAny(commands[0], ";") &&
		!strings.Contains(commands[0], "||") && !strings.Contains(commands[0], "--force")
}

// testCommands are the lines of a script between its markers, but for what
// keeps the exit code.
func testCommands(evalScript string) []string {
	var commands []string
	begun := false
	for line := range code(evalScript) {
		switch {
		case !begun:
			begun = strings.Contains(line, script.Start)
		case strings.Contains(line, script.End):
			return commands
		case !strings.HasPrefix(line, "SWEBENCH_TEST_EXIT_CODE="):
			commands = append(commands, line)
		}
	}
	return commands
}
