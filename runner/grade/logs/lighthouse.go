package logs

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// lighthouse parses one of three formats, depending on the version.
func lighthouse(t *Tests, text string, of InstanceInfo) error {
	switch of.Version {
	case "9.5", "10.0", "10.2":
		return lighthouseMocha(t, text)
	}
	version, err := pythonFloat(of.Version)
	if err != nil {
		return fmt.Errorf("version %.100q is not a number", of.Version)
	}
	if version >= 3 {
		return perLine(carbon)(t, text, of)
	}
	return lighthouseJSON(t, text)
}

// pythonFloat converts as Python's float(): it rejects hexadecimal and returns
// infinity for a large number.
func pythonFloat(s string) (float64, error) {
	s = strip(s)
	if strings.ContainsAny(s, "xX") {
		return 0, strconv.ErrSyntax
	}
	f, err := strconv.ParseFloat(s, 64)
	if errors.Is(err, strconv.ErrRange) {
		return f, nil
	}
	return f, err
}

var fullTitle = PythonPattern(`"fullTitle":\s"(.*)",\n`)

// lighthouseJSON extracts the titles from mocha's JSON as text: first those of
// the last list of passes, then those of the last list of failures.
func lighthouseJSON(t *Tests, text string) error {
	for run := range partsAfter(text, "./node_modules/.bin/mocha --reporter json") {
		for name := range matchGroups(fullTitle, 1, beforeLast(afterLast(run, `"passes": [`), "]")) {
			t.Set(name, Passed)
		}
		for name := range matchGroups(fullTitle, 1, beforeLast(afterLast(run, `"failures": [`), "],")) {
			t.Set(name, Failed)
		}
	}
	return nil
}

var (
	lighthouseRun     = PythonPattern(`running\s\d+\stest\sfiles`)
	lighthousePassing = PythonPattern(`\d+\spassing`)
	lighthouseTest    = PythonPattern(`^(✔|\d+\))\s(?:(.*)\s\(\d+m+s\)|(.*))`)
)

// lighthouseMocha parses mocha's marks in each run, up to its summary.
func lighthouseMocha(t *Tests, text string) error {
	for at := lighthouseRun.FindStringIndex(text); at != nil; at = lighthouseRun.FindStringIndex(text) {
		text = text[at[1]:]
		run := beforeMatch(text, lighthouseRun)
		if err := lighthouseSuites(t, strip(beforeMatch(run, lighthousePassing))); err != nil {
			return err
		}
	}
	return nil
}

// lighthouseSuites parses "✔ name (12ms)" and "1) name".
func lighthouseSuites(t *Tests, run string) error {
	var above headings
	for line := range lines(run) {
		m := lighthouseTest.FindStringSubmatch(strip(line))
		if m == nil {
			above.add(line)
			continue
		}
		s := Failed
		if m[1] == "✔" {
			s = Passed
		}
		if err := t.join(s, dash, above.with(m[2]+m[3])...); err != nil {
			return err
		}
	}
	return nil
}
