package check_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTools checks journals with tool requests.
func TestTools(t *testing.T) {
	lines := strings.SplitAfter(strings.TrimSuffix(good, "\n"), "\n")
	call := `"type":"tool","time":"2026-03-01T12:00:02Z","data":{"name":"note","args":["x"],"output":"1","returncode":0,"start":"2026-03-01T12:00:02Z","duration":0.1}}` + "\n"
	for name, c := range map[string]struct {
		at   int // the line before which requests are inserted
		data string
		cut  int // a line to remove
		want []string
	}{
		"good":          {at: 4, data: call},
		"after":         {at: 5, data: call, want: []string{"6: the tool request is not followed by the execution of its command"}},
		"no execution":  {at: 4, data: call, cut: 4, want: []string{"5: the tool request is not followed by the execution of its command", "6: data.cause: the observation has no preceding execution"}},
		"missing":       {at: 4, data: strings.Replace(call, `"name":"note",`, "", 1), want: []string{"5: data.name: required field is missing"}},
		"another type":  {at: 4, data: strings.Replace(call, `["x"]`, `"x"`, 1), want: []string{"5: data.args: a list expected, got a string"}},
		"nothing asked": {at: 4, data: strings.Replace(call, `"note"`, `""`, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			var text strings.Builder
			n := 0
			put := func(rest string) {
				n++
				fmt.Fprintf(&text, `{"id":%d,"parent_id":%d,%s`, n, n-1, rest)
			}
			for i, line := range lines {
				if i == c.at {
					put(c.data)
				}
				_, rest, _ := strings.Cut(line, `,"type"`)
				if c.cut == 0 || i != c.cut {
					put(`"type"` + rest)
				}
			}
			if diff := cmp.Diff(c.want, reportLines(journal(text.String()))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
