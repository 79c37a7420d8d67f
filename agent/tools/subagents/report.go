package subagents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/minibench/mini/agent/tools"
)

// maxCandidates bounds the substrings of a report that are tried.
const maxCandidates = 64

// findReport returns the first part of a report that is JSON and satisfies the
// schema. The error is about the first part that is JSON.
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

// jsonCandidates returns the parts of a report that may be JSON: all of it, and
// each JSON value that begins with a brace or bracket.
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
