package logs

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
)

// lighthouse has three runners, as the version says.
func lighthouse(t *Tests, text string, of Subject) error {
	switch of.Version {
	case "9.5", "10.0", "10.2":
		return lighthouseMocha(t, text)
	}
	version, err := pythonFloat(of.Version)
	if err != nil {
		return fmt.Errorf("the version %.100q is no number", of.Version)
	}
	if version >= 3 {
		return perLine(carbon)(t, text, of)
	}
	return lighthouseJSON(t, text)
}

// pythonFloat is float(): no hexadecimal, and what is too large is infinite.
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

var fullTitle = lazyregexp.New(`"fullTitle":` + anySpace + `"(.*)",\n`)

// lighthouseJSON reads the titles out of mocha's JSON, as text: those of the
// last list of passes, and then those of the last list of failures.
func lighthouseJSON(t *Tests, text string) error {
	for run := range after(text, "./node_modules/.bin/mocha --reporter json") {
		for name := range groups(fullTitle, beforeLast(afterLast(run, `"passes": [`), "]")) {
			t.Set(name, Passed)
		}
		for name := range groups(fullTitle, beforeLast(afterLast(run, `"failures": [`), "],")) {
			t.Set(name, Failed)
		}
	}
	return nil
}

var lighthouseRun = lazyregexp.New(`running` + anySpace + `\p{Nd}+` + anySpace + `test` + anySpace + `files`)

// lighthouseMocha reads mocha's marks in each run, before its summary.
func lighthouseMocha(t *Tests, text string) error {
	at := lighthouseRun.FindStringIndex(text)
	for at != nil {
		text = text[at[1]:]
		run := text
		if at = lighthouseRun.FindStringIndex(text); at != nil {
			run = text[:at[0]]
		}
		if err := lighthouseSuites(t, strip(beforePassing(run))); err != nil {
			return err
		}
	}
	return nil
}

func lighthouseSuites(t *Tests, run string) error {
	var above suites
	for line := range lines(run) {
		name, s := lighthouseTest(strip(line))
		if s == "" {
			above.add(line)
			continue
		}
		if err := t.join(s, dash, above.with(name)...); err != nil {
			return err
		}
	}
	return nil
}

// lighthouseTest reads "✔ name (12ms)" or "1) name".
func lighthouseTest(line string) (name string, s Status) {
	rest, ok := strings.CutPrefix(line, "✔")
	s = Passed
	if !ok {
		s = Failed
		rest, ok = cutNumber(line)
	}
	name, space := cutSpace(rest)
	if !ok || !space {
		return "", ""
	}
	name, _ = cutTiming(name, func(s string) bool {
		rest, ok := cutDigits(s)
		unit := strings.TrimLeft(rest, "m")
		return ok && len(unit) < len(rest) && strings.HasPrefix(unit, "s)")
	})
	return name, s
}

// beforePassing is the text before the first "12 passing", wherever it is.
func beforePassing(text string) string {
	const passing = "passing"
	for at := 0; ; {
		i := strings.Index(text[at:], passing)
		if i < 0 {
			return text
		}
		if before, ok := cutSpaceEnd(text[:at+i]); ok {
			if before, ok = cutDigitsEnd(before); ok {
				return before
			}
		}
		at += i + len(passing)
	}
}
