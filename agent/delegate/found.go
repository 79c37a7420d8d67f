package delegate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// maxCandidates bounds how many pieces of a report are tried.
const maxCandidates = 64

// find is the first piece of a report that is JSON and satisfies the schema: the
// whole of it, a fenced block, or what stands between a brace or a bracket and
// the one that closes it. The error is about the first piece that is JSON.
func (s *schema) find(report string) (string, error) {
	if len(report) > maxReport {
		return "", fmt.Errorf("it has more than %d bytes", maxReport)
	}
	var wrong error
	for _, piece := range pieces(report) {
		var v any
		if json.Unmarshal([]byte(piece), &v) != nil {
			continue
		}
		err := s.check(v)
		if err == nil {
			var b bytes.Buffer
			err = json.Compact(&b, []byte(piece))
			return b.String(), err
		}
		if wrong == nil {
			wrong = err
		}
	}
	if wrong == nil {
		wrong = errors.New("there is no JSON in it")
	}
	return "", wrong
}

var fence = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("(?s)```[A-Za-z]*[ \t]*\n(.*?)\n[ \t]*```")
})

// pieces are the parts of a report that may be JSON, the likeliest first.
func pieces(report string) []string {
	all := []string{strings.TrimSpace(report)}
	for _, m := range fence().FindAllStringSubmatch(report, maxCandidates) {
		all = append(all, m[1])
	}
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
