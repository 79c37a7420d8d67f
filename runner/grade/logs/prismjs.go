package logs

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

const prismCommand = "./node_modules/.bin/mocha tests/run.js --reporter json"

// prismJS parses mocha's JSON after each run of mocha's command.
func prismJS(t *Tests, text string, _ InstanceInfo) error {
	for run := range partsAfter(text, prismCommand) {
		if i := strings.IndexByte(run, '{'); i >= 0 {
			run = run[i+1:]
		}
		var report map[string]json.RawMessage // not a struct, which would also match "Passes"
		if err := json.Unmarshal([]byte("{"+beforeLast(run, "}")+"}"), &report); err != nil {
			return fmt.Errorf("no JSON after a run of mocha: %w", err)
		}
		if err := prismList(t, report["failures"], Failed); err != nil {
			return err
		}
		if err := prismList(t, report["passes"], Passed); err != nil {
			return err
		}
	}
	return nil
}

func prismList(t *Tests, list json.RawMessage, s Status) error {
	var tests []struct {
		FullTitle *string `json:"fullTitle"`
	}
	if err := json.Unmarshal(list, &tests); err != nil {
		return fmt.Errorf("mocha's JSON has no list of tests: %w", err)
	}
	for _, test := range tests {
		if test.FullTitle == nil {
			return errors.New("a test in mocha's JSON has no fullTitle")
		}
		t.Set(*test.FullTitle, s)
	}
	return nil
}
