package scripted_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/scripted"
	"github.com/minibench/mini/runner/grade/corpustest"
	"github.com/minibench/mini/trajectories"
)

// play asks until the script has no more.
func play(t *testing.T, s *scripted.Script, id string) []model.Reply {
	t.Helper()
	m, err := s.For(id)
	if err != nil {
		t.Fatal(err)
	}
	var all []model.Reply
	for {
		r, err := m.Query(t.Context(), nil)
		if e, ok := errors.AsType[*model.Error](err); ok && e.Status == model.ScriptExhausted {
			if e.Retryable || e.Hint == "" {
				t.Errorf("the end of the script: retryable %v, hint %q", e.Retryable, e.Hint)
			}
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
}

func contents(replies []model.Reply) []string {
	var all []string
	for _, r := range replies {
		all = append(all, r.Message.Content)
	}
	return all
}

func TestParse(t *testing.T) {
	tests := map[string]struct {
		name, data, id string
		want           []string
	}{
		"list":           {"r.yaml", "- one\n- content: two\n- |\n  three\n  lines\n", "any", []string{"one", "two", "three\nlines\n"}},
		"by instance":    {"r.yml", "a__a-1: [own]\n'*': [all]\n", "a__a-1", []string{"own"}},
		"by default":     {"r.yaml", "a__a-1: [own]\n'*': [all]\n", "other", []string{"all"}},
		"alias":          {"r.yaml", "a: &x [one]\nb: *x\n", "b", []string{"one"}},
		"empty reply":    {"r.yaml", "- ''\n- content: \"\"\n", "a", []string{"", ""}},
		"number as text": {"r.yaml", "- '7'\n", "a", []string{"7"}},
		"json list":      {"r.json", `["\ud83d\ude00 <b>", {"content": "two"}]`, "a", []string{"😀 <b>", "two"}},
		"json, tabs":     {"r.json", "{\n\t\"*\": [\n\t\t\"one\"\n\t]\n}", "a", []string{"one"}},
		"no ending":      {"demo", `{"*": ["one"]}`, "a", []string{"one"}},
		"bare messages":  {"t.json", `[{"role":"user","content":"x"},{"role":"assistant","content":"one"}]`, "a", []string{"one"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := scripted.Parse(test.name, []byte(test.data))
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // every attempt begins at the first reply
				if diff := cmp.Diff(test.want, contents(play(t, s, test.id))); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestToolCalls(t *testing.T) {
	call := func(id, command string) model.Call {
		arguments, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		return model.Call{ID: id, Name: "bash", Arguments: string(arguments)}
	}
	tests := map[string]struct {
		name, data string
		want       []model.Message
	}{
		"script": {
			"r.yaml",
			"- tool_calls: [ls, {command: pwd, id: x}]\n" +
				"- {content: hm, tool_calls: [{name: python, arguments: 'print('}, {arguments: {command: a, n: [1]}}]}\n- no call\n",
			[]model.Message{
				{Calls: []model.Call{call("", "ls"), call("x", "pwd")}},
				{Content: "hm", Calls: []model.Call{{Name: "python", Arguments: "print("}, {Name: "bash", Arguments: `{"command":"a","n":[1]}`}}},
				{Content: "no call"},
			},
		},
		"script in JSON": {
			"r.json", `[{"tool_calls": ["ls", {"arguments": {"command": "a", "n": 1.5, "x": null}}]}]`,
			[]model.Message{{Calls: []model.Call{call("", "ls"), {Name: "bash", Arguments: `{"command":"a","n":1.5,"x":null}`}}}},
		},
		"recorded": {
			"t.traj.json", `{"trajectory_format":"mini-swe-agent-1.1","messages":[
			{"role":"assistant","content":null,"tool_calls":[{"id":"1","function":{"arguments":"{\"command\":\"ls\\npwd\"}"}}]},
			{"role":"tool","tool_call_id":"1","content":"x"},
			{"role":"assistant","content":"two","tool_calls":[{"function":{"name":"bash","arguments":{"command":"a","timeout":3}}},{"function":{"arguments":{"command":"b"}}}]},
			{"role":"assistant","content":"refused","tool_calls":[{"id":"2","function":{"name":"bash","arguments":"{\"command\":\"c\",\"n\":1}"}}]},
			{"role":"tool","tool_call_id":"2","content":"no","extra":{"interrupt_type":"FormatError"}},
			{"role":"assistant","content":"no call at all"},
			{"role":"exit","content":"x"}]}`,
			[]model.Message{
				{Calls: []model.Call{call("1", "ls\npwd")}},
				{Content: "two", Calls: []model.Call{call("", "a"), call("", "b")}},
				{Content: "refused", Calls: []model.Call{{ID: "2", Name: "bash", Arguments: `{"command":"c","n":1}`}}},
				{Content: "no call at all"},
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := scripted.Parse(test.name, []byte(test.data))
			if err != nil {
				t.Fatal(err)
			}
			var got []model.Message
			for i, r := range play(t, s, "a") {
				if ends := len(r.Message.Calls) > 0; ends != (r.Finish == model.FinishTools) {
					t.Errorf("reply %d ends with %q", i, r.Finish)
				}
				r.Message.Role = ""
				got = append(got, r.Message)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReplyFields(t *testing.T) {
	const yaml = "- {content: x, cost: 0.25, finish_reason: length, usage: {prompt_tokens: 7, completion_tokens: 3}}\n- y\n"
	const json = `[{"content":"x","cost":2.5e-1,"finish_reason":"length","usage":{"prompt_tokens":7,"completion_tokens":3}},"y"]`
	want := []model.Reply{
		{
			Message: model.Message{Role: model.Assistant, Content: "x"}, Finish: model.FinishLength, Cost: 0.25,
			Usage: model.Usage{Prompt: 7, Completion: 3}, Model: "scripted", Tries: 1,
		},
		{Message: model.Message{Role: model.Assistant, Content: "y"}, Finish: model.FinishStop, Model: "scripted", Tries: 1},
	}
	for name, data := range map[string]string{"r.yaml": yaml, "r.json": json} {
		s, err := scripted.Parse(name, []byte(data))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, play(t, s, "a")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestParseNamesTheLine(t *testing.T) {
	tests := map[string]struct{ name, data, want string }{
		"empty":                {"r.yaml", "", "r.yaml:1: there are no replies"},
		"only a comment":       {"r.yaml", "# nothing\n", "there are no replies"},
		"null":                 {"r.yaml", "~\n", "r.yaml:1: want a list of replies, have nothing"},
		"empty list":           {"r.yaml", "a: [x]\nb: []\n", "r.yaml:2: the list of replies is empty"},
		"empty map":            {"r.yaml", "{}", "r.yaml:1: there are no replies"},
		"a string":             {"r.yaml", "hello", "r.yaml:1: want a list of replies, have a string"},
		"unknown key":          {"r.yaml", "- x\n- content: y\n  costs: 3\n", `r.yaml:3: unknown key "costs"`},
		"unknown usage":        {"r.yaml", "- content: y\n  usage:\n    tokens: 3\n", `r.yaml:3: unknown key "tokens" in usage`},
		"no content":           {"r.yaml", "- x\n- cost: 1\n", "r.yaml:2: the reply has no content"},
		"no calls":             {"r.yaml", "- tool_calls: []\n", "r.yaml:1: tool_calls: want a list of calls"},
		"call of nothing":      {"r.yaml", "- tool_calls:\n  - id: x\n", "r.yaml:2: a tool call has either a command or arguments"},
		"call of too much":     {"r.yaml", "- tool_calls:\n  - {command: a, arguments: b}\n", "r.yaml:2: a tool call has either a command or arguments"},
		"unknown key of call":  {"r.yaml", "- tool_calls:\n  - ls\n  - {cmd: a}\n", `r.yaml:3: unknown key "cmd" in a tool call`},
		"number as call":       {"r.yaml", "- tool_calls: [7]\n", "r.yaml:1: a tool call: want a string, have a number"},
		"number as content":    {"r.yaml", "- content: 7\n", "r.yaml:1: content: want a string, have a number"},
		"bool as reply":        {"r.yaml", "- x\n- true\n", "r.yaml:2: a reply: want a string, have true or false"},
		"text as cost":         {"r.yaml", "- content: x\n  cost: free\n", "r.yaml:2: cost: want a number, have a string"},
		"negative latency":     {"r.yaml", "- content: x\n  latency: -1\n", "r.yaml:2: latency: want a number from 0"},
		"not a number":         {"r.yaml", "- content: x\n  cost: .nan\n", "r.yaml:2: cost: want a number from 0"},
		"more cached":          {"r.yaml", "- content: x\n  usage: {prompt_tokens: 1, cached_tokens: 2}\n", "r.yaml:2: usage: cached_tokens and"},
		"more reasoning":       {"r.yaml", "- content: x\n  usage: {reasoning_tokens: 2}\n", "r.yaml:2: usage: reasoning_tokens are"},
		"part of a token":      {"r.yaml", "- content: x\n  usage: {prompt_tokens: 1.5}\n", "r.yaml:2: prompt_tokens: want a whole number"},
		"key twice":            {"r.yaml", "- content: x\n  content: y\n", `r.yaml:2: "content" stands here twice`},
		"instance twice":       {"r.yaml", "a: [x]\na: [y]\n", `r.yaml:2: instance "a" stands here twice`},
		"second document":      {"r.yaml", "- x\n---\n- y\n", "a second YAML document"},
		"bad YAML":             {"r.yaml", "- 'x\n", "r.yaml: yaml: line"},
		"bad later YAML":       {"r.yaml", "- x\n---\n- 'y\n", "r.yaml: yaml: line"},
		"json, unknown key":    {"r.json", "[\n\"x\",\n{\"content\":\"y\",\n\"cots\":1}]", `r.json:4: unknown key "cots"`},
		"json, cut":            {"r.json", "[\n\"x\",\n", "r.json:2: unexpected EOF"},
		"json, not":            {"r.json", "- x\n", "r.json:1: invalid character"},
		"json, more":           {"r.json", "[\"x\"]\n[]", "r.json:2: there is more after the end"},
		"json, huge number":    {"r.json", `[{"content":"x","cost":1e999}]`, "r.json:1: cost: want a number from 0"},
		"json, deep":           {"r.json", strings.Repeat("[", 1e6), "r.json:1: nested more than 1000 deep"},
		"trajectory, none":     {"t.json", `{"messages":[{"role":"user"}]}`, "t.json: the recorded attempt has no replies"},
		"trajectory, bad":      {"t.json", `{"messages":[{"role":"assistant","content":3}]}`, "t.json: messages[0].content"},
		"journal, not":         {"j.jsonl", "{}\n", "j.jsonl:1: not a record"},
		"journal, nothing yet": {"j.jsonl", "", "j.jsonl: the recorded attempt has no replies"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := scripted.Parse(test.name, []byte(test.data))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func TestUnknownInstance(t *testing.T) {
	s, err := scripted.Parse("r.yaml", []byte("a: [x]"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.For("django__django-1"); err == nil || !strings.Contains(err.Error(), `"django__django-1"`) {
		t.Errorf("error %v, want one that names the instance", err)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	if _, err := scripted.Load(filepath.Join(dir, "none.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	path := filepath.Join(dir, "journal.jsonl")
	j, err := trajectories.Create(path, trajectories.Header{InstanceID: "a"})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []model.Message{{Role: model.User, Content: "q"}, {Role: model.Assistant, Content: "one <b>"}} {
		if _, err := j.Append(trajectories.TypeMessage, trajectories.Message{Message: m}); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := scripted.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"one <b>"}, contents(play(t, s, "b"))); diff != "" {
		t.Error(diff)
	}
}

func TestLatency(t *testing.T) {
	s, err := scripted.Parse("r.yaml", []byte("- {content: slow, latency: 2.5}\n- {content: never, latency: 60}\n- last\n"))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		m, err := s.For("a")
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if _, err := m.Query(t.Context(), nil); err != nil || time.Since(start) != 2500*time.Millisecond {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		stop := errors.New("stop")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, stop)
		defer cancel()
		start = time.Now()
		if _, err := m.Query(ctx, nil); !errors.Is(err, stop) || time.Since(start) != time.Second {
			t.Errorf("cancelled after %v: %v", time.Since(start), err)
		}
		if _, err := m.Query(ctx, nil); !errors.Is(err, stop) {
			t.Errorf("asked with a context that is done: %v", err)
		}
		if r, err := m.Query(t.Context(), nil); err != nil || r.Message.Content != "last" {
			t.Errorf("%q, %v: asking in vain used up a reply", r.Message.Content, err)
		}
	})
}

func TestRealTrajectories(t *testing.T) {
	for _, path := range corpustest.Files(t, corpustest.Beside(t, "trajectories"), "mini-swe-agent-v*/*") {
		s, err := scripted.Load(path)
		if err != nil {
			t.Error(err)
			continue
		}
		want := strings.Count(rolesOf(t, path), "assistant")
		if got := len(play(t, s, "any")); got != want {
			t.Errorf("%s: %d replies, want %d", path, got, want)
		}
	}
}

func rolesOf(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Messages []struct{ Role string } }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	var roles []string
	for _, m := range file.Messages {
		roles = append(roles, m.Role)
	}
	return strings.Join(roles, " ")
}

func TestReplyOfAnyStep(t *testing.T) {
	s, err := scripted.Parse("r.yaml", []byte(`
b: [b1]
"*":
  - content: x
  - content: y
    reasoning_content: why
    latency: 2
    usage: {prompt_tokens: 9, cached_tokens: 5, cache_write_tokens: 3, completion_tokens: 4, reasoning_tokens: 2}
`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"b"}, s.Names()); diff != "" {
		t.Error(diff)
	}
	got, latency, err := s.Reply("a", 1)
	want := model.Reply{
		Message: model.Message{Role: model.Assistant, Content: "y", Reasoning: "why"}, Finish: model.FinishStop,
		Usage: model.Usage{Prompt: 9, Completion: 4, CacheRead: 5, CacheWrite: 3, Reasoning: 2}, Model: "scripted", Tries: 1,
	}
	if diff := cmp.Diff(want, got); diff != "" || latency != 2*time.Second || err != nil {
		t.Errorf("after %v: %v\n%s", latency, err, diff)
	}
	for _, step := range []int{-1, 1} {
		if _, _, err := s.Reply("b", step); !errors.Is(err, scripted.ErrNoMore) {
			t.Errorf("step %d: %v", step, err)
		}
	}
}
