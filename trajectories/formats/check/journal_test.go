package check_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/trajectories/formats/check"
)

// good is a valid journal.
const good = `{"id":1,"parent_id":0,"type":"header","time":"2026-03-01T12:00:00Z","data":{"format":"mini-1","instance_id":"a","attempt":1}}
{"id":2,"parent_id":1,"type":"message","time":"2026-03-01T12:00:01Z","data":{"role":"system","content":"s","cause":"prompt"}}
{"id":3,"parent_id":2,"type":"call","time":"2026-03-01T12:00:02Z","data":{"usage":{"prompt_tokens":5,"completion_tokens":2},"cost":0.25,"start":"2026-03-01T12:00:01Z","duration":1,"tries":1}}
{"id":4,"parent_id":3,"type":"message","time":"2026-03-01T12:00:02Z","data":{"role":"assistant","content":"","cause":"reply","actions":["ls"],"tool_calls":[{"id":"c1","type":"function","function":{"name":"bash","arguments":"{}"}}]}}
{"id":5,"parent_id":4,"type":"execution","time":"2026-03-01T12:00:03Z","data":{"command":"ls","output":{"base64":"/w=="},"bytes":1,"chars":1,"returncode":0,"start":"2026-03-01T12:00:03Z","duration":0.5}}
{"id":6,"parent_id":5,"type":"message","time":"2026-03-01T12:00:03Z","data":{"role":"tool","content":"x","tool_call_id":"c1","cause":"observation"}}
{"id":7,"parent_id":6,"type":"outcome","time":"2026-03-01T12:00:04Z","data":{"class":"submitted","exit_status":"Submitted","submission":"diff","steps":1,"usage":{"prompt_tokens":5,"completion_tokens":2},"cost":0.25,"start":"2026-03-01T12:00:00Z","end":"2026-03-01T12:00:04Z"}}
`

// reportLines returns the problems and notes of a report as lines.
func reportLines(r *check.Report) []string {
	var all []string
	for _, p := range r.Problems {
		all = append(all, fmt.Sprintf("%d: %s", p.Line, p))
	}
	for _, p := range r.Notes {
		all = append(all, fmt.Sprintf("%d: note: %s", p.Line, p))
	}
	return all
}

// journal checks a journal.
func journal(text string) *check.Report {
	return check.Read("journal.jsonl", strings.NewReader(text), check.Options{})
}

func TestJournal(t *testing.T) {
	for name, c := range map[string]struct {
		old, new string
		cut      int // number of lines to remove at the end
		want     []string
	}{
		"good": {},
		"ids that jump": {
			old: `{"id":5,"parent_id":4`, new: `{"id":8,"parent_id":4`,
			want: []string{"5: id: 5 expected after 4, got 8", "6: id: 6 is not greater than the preceding id 8", "6: parent_id: no record 5", "7: id: 7 is not greater than the preceding id 8", "7: parent_id: no record 6"},
		},
		"an id twice": {old: `{"id":7,`, new: `{"id":6,`, want: []string{"7: id: 6 is not greater than the preceding id 6", "7: parent_id: 6 is the record itself"}},
		"a cycle":     {old: `"id":5,"parent_id":4`, new: `"id":5,"parent_id":6`, want: []string{"5: parent_id: 6 is a later record; a parent must be an earlier one"}},
		"itself":      {old: `"id":5,"parent_id":4`, new: `"id":5,"parent_id":5`, want: []string{"5: parent_id: 5 is the record itself"}},
		"no parent":   {old: `"id":5,"parent_id":4`, new: `"id":5,"parent_id":-1`, want: []string{"5: parent_id: no record -1"}},
		"two roots":   {old: `"id":5,"parent_id":4`, new: `"id":5,"parent_id":0`, want: []string{"5: parent_id: only the first record may have no parent"}},
		"a branch":    {old: `"id":5,"parent_id":4`, new: `"id":5,"parent_id":2`, want: []string{"5: parent_id: 2 is not the preceding record; only a resume record may follow another one"}},
		"a version":   {old: `"mini-1"`, new: `"mini-2"`, want: []string{`1: data.format: unknown format "mini-2", want "mini-1"`}},
		"no header":   {old: `"type":"header"`, new: `"type":"diff"`, want: []string{`1: type: the first record must be the header, got "diff"`, "1: data.patch: required field is missing"}},
		"two headers": {old: `"type":"message","time":"2026-03-01T12:00:01Z","data":{"role":"system","content":"s","cause":"prompt"}`, new: `"type":"header","time":"2026-03-01T12:00:01Z","data":{"format":"mini-1","instance_id":"a","attempt":1}`, want: []string{"2: type: only the first record may be a header"}},
		"a time":      {old: `"2026-03-01T12:00:01Z","data"`, new: `"noon","data"`, want: []string{"2: time: a time of RFC 3339 expected, got a string"}},
		"no time":     {old: `"time":"2026-03-01T12:00:01Z",`, want: []string{"2: time: required field is missing"}},
		"types":       {old: `{"id":2,"parent_id":1,"type":"message"`, new: `{"id":"2","parent_id":null,"type":4`, want: []string{"2: id: a whole number expected, got a string", "2: parent_id: a whole number expected, got null", "2: type: a string expected, got a number"}},
		"deep types": {old: `"prompt_tokens":5,"completion_tokens":2},"cost":0.25,"start"`, new: `"prompt_tokens":"5","completion_tokens":2},"cost":[],"start"`, want: []string{
			"3: data.usage.prompt_tokens: a whole number expected, got a string", "3: data.cost: a number expected, got a list",
			"7: note: data.usage: differs from the sum of the calls, which is {\"prompt_tokens\":0,\"completion_tokens\":2}", "7: note: data.cost: 0.25, but the sum of the calls is 0",
		}},
		"no data":         {old: `"data":{"role":"system","content":"s","cause":"prompt"}`, new: `"data":null`, want: []string{"2: data: an object expected, got null"}},
		"missing":         {old: `"command":"ls","output"`, new: `"output"`, want: []string{"5: data.command: required field is missing"}},
		"base64":          {old: `"/w=="`, new: `"/w=!"`, want: []string{"5: data.output: bytes: illegal base64 data at input byte 2"}},
		"a role":          {old: `"role":"system"`, new: `"role":"narrator"`, want: []string{`2: data.role: one of system, user, assistant, tool expected, got "narrator"`}},
		"role and cause":  {old: `"role":"system"`, new: `"role":"tool"`, want: []string{`2: data.role: "tool" is not allowed for the cause "prompt"`}},
		"a cause":         {old: `"cause":"prompt"`, new: `"cause":"whim"`, want: []string{`2: note: data.cause: unknown cause "whim"`}},
		"another's call":  {old: `"tool_call_id":"c1"`, new: `"tool_call_id":"c2"`, want: []string{`6: data.tool_call_id: "c2" is not a call of the last reply`}},
		"no call":         {old: `"type":"call"`, new: `"type":"guess"`, want: []string{"4: the reply has no preceding call", "7: data.steps: 1, but there are 0 calls", "7: data.usage: differs from the sum of the calls, which is {\"prompt_tokens\":0,\"completion_tokens\":0}", "7: data.cost: 0.25, but the sum of the calls is 0", `3: note: type: unknown record type "guess" (1)`}},
		"another command": {old: `"command":"ls"`, new: `"command":"rm"`, want: []string{"5: data.command: action 1 of the reply in line 4 is a different command"}},
		"no execution":    {old: `"type":"execution"`, new: `"type":"daydream"`, want: []string{"6: data.cause: the observation has no preceding execution", `5: note: type: unknown record type "daydream" (1)`}},
		"a sum":           {old: `"cost":0.25,"start":"2026-03-01T12:00:00Z","end"`, new: `"cost":0.5,"start":"2026-03-01T12:00:00Z","end"`, want: []string{"7: data.cost: 0.5, but the sum of the calls is 0.25"}},
		"a class":         {old: `"class":"submitted"`, new: `"class":"tired"`, want: []string{`7: data.class: "tired" is not an outcome class`, `7: data.submission: an attempt of class "tired" must not have one`}},
		"a key twice":     {old: `"content":"s"`, new: `"content":"s","content":"t"`, want: []string{"2: data.content: duplicate key"}},
		"no UTF-8":        {old: `"content":"s"`, new: "\"content\":\"\xff\"", want: []string{"2: not UTF-8"}},
		"no end":          {cut: 1, want: []string{"0: note: no outcome: the attempt has not ended or was killed"}},
		"a bad line": {
			old: `{"id":5,"parent_id":4,"type":"execution"`, new: `{"id":5,"parent`,
			want: []string{"5: not a record: invalid character 't'"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			text := good
			if c.old != "" {
				if text = strings.Replace(good, c.old, c.new, 1); text == good {
					t.Fatalf("%q is not in the journal", c.old)
				}
			}
			all := strings.SplitAfter(text, "\n")
			got := reportLines(journal(strings.Join(all[:len(all)-1-c.cut], "")))
			if name == "a bad line" && len(got) > 0 {
				got[0], _, _ = strings.Cut(got[0], " in ")
				got[0], _, _ = strings.Cut(got[0], " after object")
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAfterTheOutcome checks that only a resume record may follow the outcome.
func TestAfterTheOutcome(t *testing.T) {
	more := `{"id":8,"parent_id":7,"type":"message","time":"2026-03-01T12:00:01Z","data":{"role":"user","content":"s","cause":"prompt"}}` + "\n"
	want := []string{"8: type: the outcome in line 7 must be the last record, unless the attempt was resumed"}
	if diff := cmp.Diff(want, reportLines(journal(good+more))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	more = `{"id":8,"parent_id":7,"type":"resume","time":"2026-03-01T12:00:01Z","data":{"mini_version":"1","record":6}}` + "\n"
	want = []string{"0: note: no outcome: the attempt has not ended or was killed"}
	if diff := cmp.Diff(want, reportLines(journal(good+more))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	more = strings.Replace(more, `"record":6`, `"record":8`, 1)
	if got := reportLines(journal(good + more)); len(got) == 0 || got[0] != "8: data.record: no earlier record 8" {
		t.Errorf("%q", got)
	}
}

// TestTotalsAfterResume checks that the totals of a resumed attempt include all calls, and
// the cost of a fork only its own calls.
func TestTotalsAfterResume(t *testing.T) {
	resume := `{"id":8,"parent_id":6,"type":"resume","time":"2026-03-01T12:00:01Z","data":{"mini_version":"1","record":6}}` + "\n"
	last := good[strings.LastIndex(strings.TrimSuffix(good, "\n"), "\n")+1:]
	ended := strings.Replace(last, `"id":7,"parent_id":6`, `"id":9,"parent_id":8`, 1)
	branch := strings.Replace(good, `"instance_id":`, `"origin":{"sha256":"ab","record":6,"step":1},"instance_id":`, 1)
	unpaid := strings.NewReplacer(`"cost":0.25,"start":"2026-03-01T12:00:00Z","end"`, `"cost":0,"start":"2026-03-01T12:00:00Z","end"`).Replace(branch)
	for name, c := range map[string]struct {
		text, want string
	}{
		"resumed":                {good + resume + ended, ""},
		"resumed, and lost some": {good + resume + strings.Replace(ended, `"cost":0.25`, `"cost":0.5`, 1), "9: data.cost: 0.5, but the sum of the calls is 0.25"},
		"a branch that pays":     {branch, "7: data.cost: 0.25, but the sum of the calls is 0"},
		"a branch that does not": {unpaid, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var problems []string
			for _, p := range reportLines(journal(c.text)) {
				if !strings.Contains(p, "note:") && !strings.Contains(p, "usage") {
					problems = append(problems, p)
				}
			}
			if got := strings.Join(problems, "\n"); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// TestTruncatedAtEveryByte checks that a truncated journal is valid if its header is
// complete.
func TestTruncatedAtEveryByte(t *testing.T) {
	header := strings.Index(good, "\n")
	for n := 0; n < len(good)-1; n++ {
		r := journal(good[:n])
		if isValid := len(r.Problems) == 0; isValid != (n >= header) {
			t.Fatalf("%d bytes: %q", n, reportLines(r))
		}
	}
}

// endlessLine is a reader of one long line of the given number of bytes.
type endlessLine struct{ left int }

func (e *endlessLine) Read(p []byte) (int, error) {
	if e.left <= 0 {
		return 0, io.EOF
	}
	n := min(len(p), e.left)
	for i := range p[:n] {
		p[i] = 'x'
	}
	e.left -= n
	return n, nil
}

// TestLongLine checks that a long line is refused without reading it into memory.
func TestLongLine(t *testing.T) {
	first, rest, _ := strings.Cut(good, "\n")
	text := io.MultiReader(strings.NewReader(first+"\n"), &endlessLine{600 << 20}, strings.NewReader("\n"+rest))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := check.Read("journal.jsonl", text, check.Options{})
	runtime.ReadMemStats(&after)
	if got := reportLines(r); len(got) == 0 || got[0] != "2: line of more than 67108864 bytes" {
		t.Errorf("%q", got)
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 400<<20 {
		t.Errorf("%d bytes of memory", allocated)
	}
}

func TestManyProblems(t *testing.T) {
	r := journal(strings.Repeat("{}\n", 5000))
	if n := len(r.Problems); n != 1001 || r.Problems[n-1].Reason != "more than 1000 problems; the rest is not listed" {
		t.Errorf("%d problems", n)
	}
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.json")
	for name, c := range map[string]struct{ text, want string }{
		"empty":        {"", "the file is empty"},
		"nothing":      {"{}", "unknown format: not a journal, a .traj.json of mini-swe-agent, or ATIF"},
		"no JSON":      {"hello", "not JSON: line 1: invalid character 'h' looking for beginning of value"},
		"NaN":          {`{"messages":[],` + "\n" + `"info":NaN}`, "not JSON: line 2: invalid character 'N' looking for beginning of value"},
		"an ATIF":      {`{"schema_version":"ATIF-v1.9","agent":{"name":"a","version":"1"},"steps":[{"step_id":1,"source":"user","message":""}]}`, `trajectory.schema_version: ATIF-v1.0 to ATIF-v1.8 expected, got "ATIF-v1.9"`},
		"a traj":       {`{"trajectory_format":"mini-swe-agent-9","messages":[]}`, `trajectory_format: unknown format "mini-swe-agent-9", want mini-swe-agent-1 or mini-swe-agent-1.1`},
		"the messages": {`[{"role":"user"}]`, "messages.0.content: required field is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			r := check.File(path, check.Options{})
			if len(r.Problems) == 0 || r.Problems[0].String() != c.want {
				t.Errorf("%v, want %q", r.Problems, c.want)
			}
		})
	}
	if r := check.File(dir, check.Options{}); r.Problems[0].Reason != "not a regular file" {
		t.Errorf("%v", r.Problems)
	}
	if r := check.File(filepath.Join(dir, "b"), check.Options{}); len(r.Problems) != 1 || strings.Contains(r.Problems[0].Reason, dir) {
		t.Errorf("%v", r.Problems)
	}
}

func FuzzReader(f *testing.F) {
	f.Add("journal.jsonl", []byte(good))
	f.Add("a.traj.json", []byte(v2))
	f.Add("a.json", []byte(`{"schema_version":"ATIF-v1.7","agent":{"name":"a","version":"1"},"steps":[{"step_id":1,"source":"user","message":""}]}`))
	f.Add("a.json", []byte(`[{"role":"tool","content":[{}]}]`))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		r := check.Read(name, bytes.NewReader(data), check.Options{})
		if len(r.Problems) > 1001 || len(r.Notes) > 1001 {
			t.Errorf("%d problems, %d notes", len(r.Problems), len(r.Notes))
		}
		for _, p := range r.Problems {
			if len(p.String()) > 4<<10 {
				t.Errorf("%d bytes: %.200s", len(p.String()), p)
			}
		}
	})
}
