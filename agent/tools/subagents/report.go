package subagents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/minibench/mini/agent/tools"
)

// maxCandidates bounds the number of places in a report where jsonCandidates
// tries to parse JSON.
const maxCandidates = 64

// findReport returns the first part of a report that is JSON and satisfies the
// schema, in compact form. If there is none, the error says what is wrong with
// the first part that is JSON, or that no part is.
func (s *schema) findReport(report string) (string, error) {
	if len(report) > maxReport {
		return "", fmt.Errorf("it has more than %d bytes", maxReport)
	}
	var firstErr error
	for _, candidate := range jsonCandidates(report) {
		var v any
		if json.Unmarshal([]byte(candidate), &v) != nil {
			continue
		}
		err := s.resolved.Validate(v)
		if err == nil {
			var b bytes.Buffer
			err = json.Compact(&b, []byte(candidate))
			return b.String(), err
		}
		if firstErr == nil {
			firstErr = fmt.Errorf("it does not satisfy the schema: %s", tools.Clip(err.Error(), 1<<10))
		}
	}
	if firstErr == nil {
		firstErr = errors.New("there is no JSON in it")
	}
	return "", firstErr
}

// jsonCandidates returns the parts of a report that may be JSON: the whole
// report, and each outermost object and array in it, from at most maxCandidates
// places.
func jsonCandidates(report string) []string {
	all := []string{report}
	for at, tries := 0, 0; at < len(report) && tries < maxCandidates; tries++ {
		open := strings.IndexAny(report[at:], "{[")
		if open < 0 {
			break
		}
		at += open
		var v json.RawMessage
		d := json.NewDecoder(strings.NewReader(report[at:]))
		if d.Decode(&v) == nil {
			all = append(all, string(v))
			at += len(v)
		} else {
			at++
		}
	}
	return all
}
