package logs

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// lighthouse parses one of three formats. The version selects the format.
func lighthouse(t *Tests, text string, info InstanceInfo) error {
	switch info.Version {
	case "9.5", "10.0", "10.2":
		return lighthouseMocha(t, text)
	}
	version, err := pythonFloat(info.Version)
	if err != nil {
		return fmt.Errorf("version %.100q is not a number", info.Version)
	}
	if version >= 3 {
		return perLine(carbon)(t, text, info)
	}
	return lighthouseJSON(t, text)
}

// pythonFloat converts a number as Python's float() does: it rejects hexadecimal numbers and
// returns infinity for a large number.
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

// lighthouseJSON extracts the titles from the text of mocha's JSON. In each run it uses the
// last list of passes and the last list of failures.
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

// lighthouseMocha parses the lines with mocha's marks before the summary of each run.
func lighthouseMocha(t *Tests, text string) error {
	for loc := lighthouseRun.FindStringIndex(text); loc != nil; loc = lighthouseRun.FindStringIndex(text) {
		text = text[loc[1]:]
		run := beforeMatch(text, lighthouseRun)
		if err := lighthouseSuites(t, strip(beforeMatch(run, lighthousePassing))); err != nil {
			return err
		}
	}
	return nil
}

// lighthouseSuites parses tests such as "✔ name (12ms)" and "1) name" below their headings.
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
