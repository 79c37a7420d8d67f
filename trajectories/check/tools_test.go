package check_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTools has calls of tools between a reply and the execution of its command.
func TestTools(t *testing.T) {
	lines := strings.SplitAfter(strings.TrimSuffix(good, "\n"), "\n")
	call := `"type":"tool","time":"2026-03-01T12:00:02Z","data":{"name":"note","args":["x"],"output":"1","returncode":0,"start":"2026-03-01T12:00:02Z","duration":0.1}}` + "\n"
	for name, c := range map[string]struct {
		at   int // the line before which calls are put
		data string
		cut  int // a line that is left out
		want []string
	}{
		"good":          {at: 4, data: call},
		"after":         {at: 5, data: call, want: []string{"6: the tool was called by a command, and no execution follows"}},
		"no execution":  {at: 4, data: call, cut: 4, want: []string{"5: the tool was called by a command, and no execution follows", "6: data.cause: an observation tells of an execution, and there is none before it"}},
		"missing":       {at: 4, data: strings.Replace(call, `"name":"note",`, "", 1), want: []string{"5: data.name: required field is missing"}},
		"another type":  {at: 4, data: strings.Replace(call, `["x"]`, `"x"`, 1), want: []string{"5: data.args: a list is needed, this is a string"}},
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
			if diff := cmp.Diff(c.want, said(journal(text.String()))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
