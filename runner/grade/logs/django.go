package logs

import (
	"errors"
	"strings"
)

var errNoName = errors.New("a line FAIL: or ERROR: names no test")

// django reads what Django's test runner prints, "test_x (app.Tests) ... ok",
// where a test's own output may push the result to a later line.
func django(t *Tests, text string, _ Subject) error {
	d := djangoLog{tests: t}
	for line := range lines(text) {
		if err := d.read(strip(line)); err != nil {
			return err
		}
	}
	for _, in := range djangoInterruptions {
		in.read(t, text)
	}
	return nil
}

// djangoLog is the state between lines: the last test that was announced.
type djangoLog struct {
	tests  *Tests
	last   string
	known  bool // that there was one
	lastAt int  // its place in tests, or -1
}

const dots = " ... "

// The runner's line of this test begins with the output of a migration.
const (
	djangoVersion   = "--version is equivalent to version"
	djangoMigration = "Applying sites.0002_alter_domain_unique...test_no_migrations"
)

func (d *djangoLog) read(line string) error {
	if strings.Contains(line, djangoVersion) {
		d.tests.Set(djangoVersion, Passed)
	}
	if strings.Contains(line, " ...") {
		line = d.result(line)
	}
	if err := d.heading(line, "FAIL:", Failed); err != nil {
		return err
	}
	if name, ok := cutAtEnd(line, " ... ERROR"); ok {
		d.tests.Set(name, Error)
	}
	if err := d.heading(line, "ERROR:", Error); err != nil {
		return err
	}
	if strings.HasPrefix(line, "ok") && d.known {
		d.pass()
	}
	return nil
}

// result reads a line with dots. It returns the line as the rules after it see
// it.
func (d *djangoLog) result(line string) string {
	if name, _, ok := strings.Cut(line, dots); ok {
		d.last, d.known, d.lastAt = name, true, -1
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

// pass records the last test announced. Many lines may say "ok", and the name
// be long: it is looked up once.
func (d *djangoLog) pass() {
	if d.lastAt < 0 {
		d.lastAt = d.tests.place(d.last)
	}
	d.tests.entries[d.lastAt].status = Passed
}

// heading reads the head of a traceback, whose second word is the method's bare
// name.
func (d *djangoLog) heading(line, head string, s Status) error {
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

// cutAtEnd is, for a line that ends with suffix, what is before the first place
// where the suffix is.
func cutAtEnd(line, suffix string) (string, bool) {
	if !strings.HasSuffix(line, suffix) {
		return line, false
	}
	name, _, _ := strings.Cut(line, suffix)
	return name, true
}
