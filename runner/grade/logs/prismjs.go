package logs

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

const prismCommand = "./node_modules/.bin/mocha tests/run.js --reporter json"

// prismJS reads mocha's JSON after each run of its command.
func prismJS(t *Tests, text string, _ Subject) error {
	for run := range after(text, prismCommand) {
		if i := strings.IndexByte(run, '{'); i >= 0 {
			run = run[i+1:]
		}
		var report map[string]json.RawMessage // a struct would not tell "Passes" from "passes"
		if err := json.Unmarshal([]byte("{"+finite(beforeLast(run, "}"))+"}"), &report); err != nil {
			return fmt.Errorf("no JSON is after a run of mocha: %w", err)
		}
		for _, list := range [...]struct {
			key string
			s   Status
		}{{"failures", Failed}, {"passes", Passed}} {
			if err := prismList(t, report, list.key, list.s); err != nil {
				return err
			}
		}
	}
	return nil
}

// finite is JSON with a zero for what Python writes and reads of numbers that
// are none: NaN, Infinity and -Infinity.
func finite(text string) string {
	if !strings.Contains(text, "NaN") && !strings.Contains(text, "Infinity") {
		return text
	}
	var b strings.Builder
	before := byte(',') // the last that was neither a space nor in a string
	for i := 0; i < len(text); {
		n, c := 1, text[i]
		switch word := text[i:]; {
		case c == '"':
			n = stringLength(word)
		case strings.HasPrefix(word, "NaN") && strings.IndexByte(":[,", before) >= 0:
			n = len("NaN")
		case strings.HasPrefix(word, "Infinity") && strings.IndexByte(":[,-", before) >= 0:
			n = len("Infinity")
		}
		if n > 1 && c != '"' {
			b.WriteByte('0')
		} else {
			b.WriteString(text[i : i+n])
		}
		if strings.IndexByte(" \t\n", c) < 0 {
			before = c
		}
		i += n
	}
	return b.String()
}

// stringLength is how long the string is that text begins with.
func stringLength(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

func prismList(t *Tests, report map[string]json.RawMessage, key string, s Status) error {
	var tests []map[string]json.RawMessage
	raw, ok := report[key]
	if !ok {
		return fmt.Errorf("mocha's JSON has no %s", key)
	}
	if string(raw) == "null" {
		return fmt.Errorf("the %s of mocha's JSON are null", key)
	}
	if string(raw) == "{}" || string(raw) == `""` {
		return nil // empty to Python as well
	}
	if err := json.Unmarshal(raw, &tests); err != nil {
		return fmt.Errorf("the %s of mocha's JSON are no list of tests: %w", key, err)
	}
	for _, test := range tests {
		title, ok := test["fullTitle"]
		if !ok {
			return errors.New("a test in mocha's JSON has no fullTitle")
		}
		name, err := prismName(title)
		if err != nil {
			return err
		}
		t.Set(name, s)
	}
	return nil
}

// prismName is a title. Python takes every value but lists and objects for one.
func prismName(title json.RawMessage) (string, error) {
	switch title[0] {
	case '[', '{':
		return "", errors.New("the fullTitle of a test in mocha's JSON is no text")
	case '"':
		var name string
		err := json.Unmarshal(title, &name)
		return name, err
	}
	return string(title), nil
}
