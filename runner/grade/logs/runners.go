package logs

import (
	"fmt"
	"strings"
)

var (
	redisLine     = PythonPattern(`^\[(ok|err|skip|ignore)\]:\s(.+?)(?:\s\((\d+\s*m?s)\))?$`)
	redisLocation = PythonPattern(`\s+in\s+\S+$`)
)

// redis parses a line such as "[ok]: name (3 ms)". It removes the location from a failure such
// as "[err]: name in tests/unit/x.tcl".
func redis(line string) (string, Status, bool) {
	m := redisLine.FindStringSubmatch(line)
	if m == nil {
		return noTest()
	}
	if s := statusWords[m[1]]; s != Failed {
		return m[2], s, true
	}
	return redisLocation.ReplaceAllString(m[2], ""), Failed, true
}

var (
	mavenTest   = PythonPattern(`^.*-Dtest=(\S+)`)
	mavenResult = PythonPattern(`^.*BUILD (SUCCESS|FAILURE)$`)
)

// maven parses the trace of the script's commands, each of which runs one test, and the results
// of the builds. The results have the order of the commands, but a result may precede or follow
// its command.
func maven(t *Tests, text string, _ InstanceInfo) error {
	var tests []string   // whose results have not been read
	var results []Status // whose tests have not been read
	for line := range lines(text) {
		line = strip(line)
		if m := mavenTest.FindStringSubmatch(line); m != nil {
			tests = append(tests, m[1])
		}
		m := mavenResult.FindStringSubmatch(line)
		switch {
		case m == nil:
		case len(tests) == 0:
			results = append(results, statusWords[m[1]])
		default:
			t.Set(tests[0], statusWords[m[1]])
			tests = tests[1:]
		}
	}
	for i := range min(len(tests), len(results)) {
		t.Set(tests[i], results[i])
	}
	return nil
}

var (
	gradleResult = PythonPattern(`^([^>].+)\s+(PASSED|FAILED)$`)
	gradleTest   = PythonPattern(`^[^>]\S*\s+>\s+\S+$`)
)

// gradle parses lines such as "Class > test PASSED", which a test listener prints that the
// images add to the build. The result may be on a later line, after output of other processes.
func gradle(t *Tests, text string, _ InstanceInfo) error {
	pending := ""
	for line := range lines(text) {
		line = strip(line)
		m := gradleResult.FindStringSubmatch(line)
		switch {
		case m != nil:
			t.Set(m[1], statusWords[m[2]])
			pending = ""
		case gradleTest.MatchString(line):
			pending = line
		case pending != "" && (line == string(Passed) || line == string(Failed)):
			t.Set(pending, statusWords[line])
			pending = ""
		}
	}
	return nil
}

var (
	phpSuite = PythonPattern(`^(\w.+) \(.+\)$`)
	phpTest  = PythonPattern(`^\s*([✔✘↩])\s*(.*)$`)
)

// phpunit parses PHPUnit's testdox output: a suite such as "Name (Namespace\Name)", followed by
// lines with a mark and a test name. A test before the first suite belongs to "None". As in the
// official parser, other lines such as "OK (3 tests, 3 assertions)" may count as suites.
func phpunit(t *Tests, text string, _ InstanceInfo) error {
	suite := "None"
	for line := range lines(text) {
		if m := phpSuite.FindStringSubmatch(line); m != nil {
			suite = m[1]
		} else if m := phpTest.FindStringSubmatch(line); m != nil {
			if err := t.join(statusWords[m[1]], " > ", suite, m[2]); err != nil {
				return err
			}
		}
	}
	return nil
}

var (
	minitest = parserFor(`^(.+)\. .*=.*(\.|F|E)`, 1, 2)
	cucumber = parserFor(`^(.*) \.+(\.|F)`, 1, 2)
)

var rubyOutcome = PythonPattern(`^(?:test: )?(.+):\s+(\.|[EFO](?:[^\p{L}\p{N}_]|$))`)

// rubyUnit parses a line such as "test: name:    .: (0.001)". The prefix "test: " is optional.
func rubyUnit(line string) (string, Status, bool) {
	m := rubyOutcome.FindStringSubmatch(line)
	if m == nil {
		return noTest()
	}
	return m[1], statusWords[m[2][:1]], true
}

// jekyll parses one of two formats. The pull request number selects the format.
func jekyll(t *Tests, text string, info InstanceInfo) error {
	parts := strings.SplitN(info.InstanceID, "-", 3)
	if len(parts) < 2 {
		return fmt.Errorf("no pull request number in instance id %.100q", info.InstanceID)
	}
	switch parts[1] {
	case "9141", "8047", "8167":
		return minitest(t, text, info)
	case "8761", "8771":
		return cucumber(t, text, info)
	}
	return fmt.Errorf("unknown log format for instance %.100q", info.InstanceID)
}
