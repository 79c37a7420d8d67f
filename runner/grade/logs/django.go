package logs

import (
	"errors"
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
)

var errNoName = errors.New("a FAIL: or ERROR: line has no test name")

// django parses the output of Django's test runner, "test_x (app.Tests) ...
// ok". Output of a test may push its result to a later line.
func django(t *Tests, text string, _ InstanceInfo) error {
	d := djangoLog{tests: t}
	for line := range lines(text) {
		if err := d.addLine(strip(line)); err != nil {
			return err
		}
	}
	// Some messages separate a test's name from its "ok". These tests passed,
	// whatever status they have so far.
	for _, interrupted := range [...]*lazyregexp.Regexp{djangoTesting, djangoServerError, djangoCheck} {
		for name := range matchLineGroups(interrupted, text) {
			t.Set(name, Passed)
		}
	}
	return nil
}

var (
	djangoTesting     = PythonPattern(`(?m)^(.*?)\s\.\.\.\sTesting against Django installed in (?s:.*?) silenced\)\.\nok$`)
	djangoServerError = PythonPattern(`(?m)^(.*?)\s\.\.\.\sInternal Server Error: /.*/\nok$`)
	djangoCheck       = PythonPattern(`(?m)^(.*?)\s\.\.\.\sSystem check identified no issues \(0 silenced\)\nok$`)
)

// djangoLog is the parser state between lines: the last test with dots after
// its name.
type djangoLog struct {
	tests     *Tests
	last      string
	hasLast   bool // there was such a test
	lastIndex int  // its index in tests, or -1
}

const dots = " ... "

// The line of test_no_migrations begins with the output of a migration.
const (
	djangoVersion   = "--version is equivalent to version"
	djangoMigration = "Applying sites.0002_alter_domain_unique...test_no_migrations"
)

func (d *djangoLog) addLine(line string) error {
	if strings.Contains(line, djangoVersion) {
		d.tests.Set(djangoVersion, Passed)
	}
	if strings.Contains(line, " ...") {
		line = d.parseResult(line)
	}
	if err := d.parseTraceback(line, "FAIL:", Failed); err != nil {
		return err
	}
	if name, ok := cutAtEnd(line, " ... ERROR"); ok {
		d.tests.Set(name, Error)
	}
	if err := d.parseTraceback(line, "ERROR:", Error); err != nil {
		return err
	}
	if strings.HasPrefix(line, "ok") && d.hasLast {
		d.passLast()
	}
	return nil
}

// parseResult parses a line with dots. It returns the line for the remaining rules.
func (d *djangoLog) parseResult(line string) string {
	if name, _, ok := strings.Cut(line, dots); ok {
		d.last, d.hasLast, d.lastIndex = name, true, -1
	}
	for _, suffix := range [...]string{" ... ok", " ... OK", " ...  OK"} {
		if !strings.HasSuffix(line, suffix) {
			continue
		}
		if strings.HasPrefix(line, djangoMigration) {
			_, line, _ = strings.Cut(line, "...")
			line = strip(line)
		}
		d.tests.Set(strings.TrimSuffix(line, suffix), Passed)
		break
	}
	if name, _, ok := strings.Cut(line, " ... skipped"); ok {
		d.tests.Set(name, Skipped)
	}
	if name, ok := cutAtEnd(line, " ... FAIL"); ok {
		d.tests.Set(name, Failed)
	}
	return line
}

// passLast records the last test as passed. A log may have many "ok" lines, so the
// test is looked up once.
func (d *djangoLog) passLast() {
	if d.lastIndex < 0 {
		d.lastIndex = d.tests.index(d.last)
	}
	d.tests.entries[d.lastIndex].status = Passed
}

// parseTraceback parses the first line of a traceback. Its second word is the method
// name.
func (d *djangoLog) parseTraceback(line, head string, s Status) error {
	if !strings.HasPrefix(line, head) {
		return nil
	}
	_, rest := cutField(line)
	name, _ := cutField(rest)
	if name == "" {
		return errNoName
	}
	d.tests.Set(name, s)
	return nil
}

// cutAtEnd returns the text before the first occurrence of suffix, if line ends
// with suffix.
func cutAtEnd(line, suffix string) (string, bool) {
	if !strings.HasSuffix(line, suffix) {
		return line, false
	}
	name, _, _ := strings.Cut(line, suffix)
	return name, true
}
