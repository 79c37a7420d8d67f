package logs

import (
	"errors"
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
)

var errNoName = errors.New("a FAIL: or ERROR: line has no test name")

// django parses the output of Django's test runner, such as "test_x (app.Tests) ...
// ok". The result may be on a later line, after output of the test.
func django(t *Tests, text string, _ InstanceInfo) error {
	d := djangoLog{tests: t}
	for line := range lines(text) {
		if err := d.addLine(strip(line)); err != nil {
			return err
		}
	}
	// Some messages separate a test's name from its "ok". Set these tests to Passed, even
	// if the rules above have set another status.
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

// djangoLog is the parser state between lines.
type djangoLog struct {
	tests     *Tests
	last      string // name of the last test with dots after its name
	hasLast   bool   // whether last is set
	lastIndex int    // index of last in tests, or -1
}

const dots = " ... "

// djangoVersion is the name of a test without dots. djangoMigration is the start of the
// line of test_no_migrations, which begins with the output of a migration.
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

// parseResult parses a line with dots and returns it for the remaining rules, without
// the output of a migration.
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

// passLast sets the last test to Passed. It looks up the test only once, because a log
// may have many "ok" lines.
func (d *djangoLog) passLast() {
	if d.lastIndex < 0 {
		d.lastIndex = d.tests.index(d.last)
	}
	d.tests.entries[d.lastIndex].status = Passed
}

// parseTraceback parses the first line of a traceback if it starts with head. The second
// word of the line is the name of the method.
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

// cutAtEnd returns the text before the first occurrence of suffix, and true, if line ends
// with suffix.
func cutAtEnd(line, suffix string) (string, bool) {
	if !strings.HasSuffix(line, suffix) {
		return line, false
	}
	name, _, _ := strings.Cut(line, suffix)
	return name, true
}
