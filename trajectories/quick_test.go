package trajectories

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/model"
)

// quickMessages are data of messages; quick says which the fast way takes.
var quickMessages = []struct {
	data  string
	quick bool
}{
	{`{"role":"user","content":"a \"b\" \\ \n\t ü → \/","cause":"observation"}`, true},
	{`{"role":"assistant","content":"","reasoning_content":"r","tool_calls":[{"id":"c","type":"function","function":{"name":"bash","arguments":"{\"command\":\"}]\"}"}}],"cause":"reply","actions":["}]"]}`, true},
	{`{"role":"tool","content":"x","tool_call_id":"c","images":[{"media_type":"image/png","data":"cG5n"}],"kept":{"a":[1,2]},"cause":"observation"}`, true},
	{`{"role":"user","content":"\u0000\u2028\ud83d\ude00 and \\","cause":"prompt"}`, true},
	{`{"content":"\u001b[31mred\u001b[0m \ud83d \ude00\ud83d \ud83d\u0041 \uD83D\uDE00","cause":"prompt"}`, true},
	{`{"tool_calls":[{"function":{"arguments":"a"},"id":"1"},{"function":{}},{}],"actions":[]}`, true},
	{`{"tool_calls":[],"actions":["a","\"b\\"]}`, true},
	{`{}`, true},
	{`{"tool_calls":null}`, false},
	{`{"tool_calls":[{"ID":"1"}]}`, false},
	{`{"tool_calls":[{"function":{"name":1}}]}`, false},
	{`{"actions":["a",]}`, false},
	{`{"actions":["a" ]}`, false},
	{`{"actions":["a",null]}`, false},
	{`{"actions":["a"]]}`, false},
	{`{"content":"\u00"}`, false},
	{`{"content":"\u00g0"}`, false},
	{`{"content":"\ud83d\u00"}`, false},
	{`{"role":"user","content":"a","new":1}`, false},
	{`{"role": "user"}`, false},
	{`{"role":"user","content":null}`, false},
	{`{"role":"user","content":"a` + "\x01" + `"}`, false},
	{"{\"role\":\"user\",\"content\":\"\xff\"}", false},
	{`{"role":"user","content":"a\"}`, false},
	{`{"role":"user","content":"a"`, false},
	{`{"role":"user","content":"\x"}`, false},
	{`{"role":"user",}`, false},
	{`{"role"}`, false},
	{`{"role":"user","kept":{]}`, false},
	{`{"kept":{}`, false},
	{`{"content":"\00000"}`, false},
	{`[]`, false},
	{``, false},
}

func TestQuickMessage(t *testing.T) {
	for _, tt := range quickMessages {
		var m Message
		if got := m.quick([]byte(tt.data)); got != tt.quick {
			t.Errorf("%s: the fast way takes it: %v", tt.data, got)
		}
		sameMessage(t, []byte(tt.data))
	}
}

// FuzzQuickMessage holds the fast way against encoding/json.
func FuzzQuickMessage(f *testing.F) {
	for _, tt := range quickMessages {
		f.Add([]byte(tt.data))
	}
	f.Fuzz(func(t *testing.T, data []byte) { sameMessage(t, data) })
}

func sameMessage(t *testing.T, data []byte) {
	t.Helper()
	var quick, slow Message
	if !quick.quick(data) {
		return
	}
	if err := json.Unmarshal(data, &slow); err != nil {
		t.Fatalf("%q is taken, and is %v", data, err)
	}
	if diff := cmp.Diff(slow, quick); diff != "" {
		t.Fatalf("%q (-encoding/json +quick):\n%s", data, diff)
	}
}

// quickCalls are data of calls; quick says which the fast way takes.
var quickCalls = []struct {
	data  string
	quick bool
}{
	{`{"usage":{"prompt_tokens":2785,"completion_tokens":300,"cached_tokens":0,"cache_write_tokens":1,"reasoning_tokens":7},"cost":0.01,"finish_reason":"tool_calls","model":"m","start":"1970-01-01T00:00:00.5Z","duration":1.25,"waited":0.000000001,"tries":1,"raw":{"a":[1]}}`, true},
	{`{"usage":{},"cost":0,"duration":123456789.5}`, true},
	{`{}`, true},
	{`{"cost":1e-7}`, false},
	{`{"cost":-1}`, false},
	{`{"cost":01}`, false},
	{`{"cost":1.}`, false},
	{`{"cost":.5}`, false},
	{`{"cost":""}`, false},
	{`{"tries":1.5}`, false},
	{`{"tries":12345678901234567890}`, false},
	{`{"usage":{"unpriced_calls":1}}`, false},
	{`{"usage":null}`, false},
	{`{"start":"now"}`, false},
	{`{"start":1}`, false},
	{`{"attempts":[]}`, false},
	{`{"error":"503"}`, false},
	{`{"raw":{]}`, false},
}

func TestQuickCall(t *testing.T) {
	for _, tt := range quickCalls {
		var c Call
		if got := c.quick([]byte(tt.data)); got != tt.quick {
			t.Errorf("%s: the fast way takes it: %v", tt.data, got)
		}
		sameCall(t, []byte(tt.data))
	}
}

// FuzzQuickCall holds the fast way against encoding/json.
func FuzzQuickCall(f *testing.F) {
	for _, tt := range quickCalls {
		f.Add([]byte(tt.data))
	}
	f.Fuzz(func(t *testing.T, data []byte) { sameCall(t, data) })
}

func sameCall(t *testing.T, data []byte) {
	t.Helper()
	var quick, slow Call
	if !quick.quick(data) {
		return
	}
	if err := json.Unmarshal(data, &slow); err != nil {
		t.Fatalf("%q is taken, and is %v", data, err)
	}
	if diff := cmp.Diff(slow, quick); diff != "" {
		t.Fatalf("%q (-encoding/json +quick):\n%s", data, diff)
	}
}

// TestVerbatim tries every byte in every place of a text that is longer than what
// is looked at in one go.
func TestVerbatim(t *testing.T) {
	for b := range 256 {
		c := byte(b)
		same := c >= ' ' && c < 0x80 && c != '"' && c != '\\'
		for at := range 20 {
			text := []byte("all of this is as it is, ~!#[]^_")[:20]
			text[at] = c
			want := at
			if same {
				want = len(text)
			}
			if got := Verbatim(text); got != want || Verbatim(string(text)) != want {
				t.Errorf("%q: %d and %d, want %d", text, got, Verbatim(string(text)), want)
			}
		}
	}
}

func TestLean(t *testing.T) {
	for data, want := range map[string]string{
		`{"cost":1,"raw":{"a":"}","b":[{}]},"error":"x"}`: `{"cost":1,"error":"x"}`,
		`{"raw":null}`:       `{}`,
		`{"cost":1}`:         `{"cost":1}`,
		`{"raw": {"odd":1}}`: `{"raw": {"odd":1}}`,
	} {
		if got := string(Lean(json.RawMessage(data))); got != want {
			t.Errorf("%s: %s, want %s", data, got, want)
		}
	}
}

// TestSkim: what Scan gives, for the types that are asked for, whatever the form
// of a line.
func TestSkim(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	j, err := Create(path, Header{InstanceID: "a"})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", strings.Repeat("long ", 40_000), `"},"type":"call"`} {
		for typ, data := range map[Type]any{TypeMessage: Message{Message: model.Message{Content: text}}, TypeExecution: Execution{Command: text}} {
			if _, err := j.Append(typ, data); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data = append(data, `{ "type": "message", "id": 40, "time": "2026-01-02T03:04:05Z", "data": {"content":"by hand"} }`+"\n"...)
	for name, journal := range map[string][]byte{
		"whole": data, "torn": append(bytes.Clone(data), `{"id":41,"parent_id":40,"type":"message","ti`...),
		"no line feed": bytes.TrimSuffix(data, []byte("\n")), "nothing": nil,
		"nonsense": append(bytes.Clone(data), "nonsense\n"...), "no journal": []byte(`{"id":1,"type":"message"}` + "\n"),
	} {
		t.Run(name, func(t *testing.T) {
			var want, got []Record
			var wantErr, gotErr error
			for r, err := range Scan("j", bytes.NewReader(journal)) {
				if err != nil {
					wantErr = err
				} else if r.Type == TypeMessage {
					want = append(want, r)
				}
			}
			for r, err := range Skim("j", bytes.NewReader(journal), func(typ Type) bool { return typ == TypeMessage }) {
				if err != nil {
					gotErr = err
					continue
				}
				r.Data = bytes.Clone(r.Data)
				got = append(got, r)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("records (-Scan +Skim):\n%s", diff)
			}
			if (wantErr == nil) != (gotErr == nil) || wantErr != nil && wantErr.Error() != gotErr.Error() {
				t.Errorf("Skim ends with %v, Scan with %v", gotErr, wantErr)
			}
		})
	}
}

// TestTranscriptRecords: what a transcript gives is gathered to the same
// transcript.
func TestTranscriptRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	j, err := Create(path, Header{InstanceID: "a", ModelName: "m"})
	if err != nil {
		t.Fatal(err)
	}
	reply := Message{Message: model.Message{Role: model.Assistant, Content: "r"}, Cause: CauseReply, Actions: []string{"one", "two", "three"}}
	told := Message{Message: model.Message{Role: model.User}, Cause: CauseObservation}
	for _, r := range []struct {
		t    Type
		data any
	}{
		{TypeExecution, Execution{Command: "setup"}},
		{TypeMessage, Message{Message: model.Message{Role: model.User, Content: "p"}, Cause: CausePrompt}},
		{TypeCall, Call{Cost: 1}},
		{TypeMessage, reply},
		{TypeExecution, Execution{Command: "one", ExitCode: 3}},
		{TypeMessage, told},
		{TypeExecution, Execution{Command: "two"}},
		{TypeMessage, told},
		{TypeExecution, Execution{Command: "three"}}, // nobody is told
		{TypeContext, Context{Sent: []ContextPart{{From: 3, To: 3}}}},
		{TypeCall, Call{Cost: 2}},
		{TypeMessage, reply},
		{TypeCall, Call{Error: "503"}},
		{TypeDiff, Diff{Base: "b"}},
		{TypeOutcome, Outcome{Class: Submitted, Submission: Bytes("x")}},
	} {
		if _, err := j.Append(r.t, r.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	want, err := Gather(Read(path))
	if err != nil {
		t.Fatal(err)
	}
	got, err := Gather(want.Records())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("transcript (-journal +again):\n%s", diff)
	}
}
