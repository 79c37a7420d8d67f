package scripted_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/scripted"
)

// play returns all replies to an instance, up to the end of the script.
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
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := scripted.Parse(test.name, []byte(test.data))
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // every attempt starts at the first reply
				if diff := cmp.Diff(test.want, contents(play(t, s, test.id))); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestToolCalls(t *testing.T) {
	call := func(id, command string) model.ToolCall {
		arguments, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		return model.ToolCall{ID: id, Name: "bash", Arguments: string(arguments)}
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
				{ToolCalls: []model.ToolCall{call("", "ls"), call("x", "pwd")}},
				{Content: "hm", ToolCalls: []model.ToolCall{{Name: "python", Arguments: "print("}, {Name: "bash", Arguments: `{"command":"a","n":[1]}`}}},
				{Content: "no call"},
			},
		},
		"script in JSON": {
			"r.json", `[{"tool_calls": ["ls", {"arguments": {"command": "a", "n": 1.5, "x": null}}]}]`,
			[]model.Message{{ToolCalls: []model.ToolCall{call("", "ls"), {Name: "bash", Arguments: `{"command":"a","n":1.5,"x":null}`}}}},
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
				if ends := len(r.Message.ToolCalls) > 0; ends != (r.FinishReason == model.FinishToolCalls) {
					t.Errorf("reply %d ends with %q", i, r.FinishReason)
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
			Message: model.Message{Role: model.Assistant, Content: "x"}, FinishReason: model.FinishLength, Cost: 0.25,
			Usage: model.Usage{Prompt: 7, Completion: 3}, Model: "scripted", Tries: 1,
		},
		{Message: model.Message{Role: model.Assistant, Content: "y"}, FinishReason: model.FinishStop, Model: "scripted", Tries: 1},
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
		"empty":               {"r.yaml", "", "r.yaml:1: no replies"},
		"only a comment":      {"r.yaml", "# nothing\n", "no replies"},
		"null":                {"r.yaml", "~\n", "r.yaml:1: want a list of replies, have nothing"},
		"empty list":          {"r.yaml", "a: [x]\nb: []\n", "r.yaml:2: the list of replies is empty"},
		"empty map":           {"r.yaml", "{}", "r.yaml:1: no replies"},
		"a string":            {"r.yaml", "hello", "r.yaml:1: want a list of replies, have a string"},
		"unknown key":         {"r.yaml", "- x\n- content: y\n  costs: 3\n", `r.yaml:3: unknown key "costs"`},
		"unknown usage":       {"r.yaml", "- content: y\n  usage:\n    tokens: 3\n", `r.yaml:3: unknown key "tokens" in usage`},
		"no content":          {"r.yaml", "- x\n- cost: 1\n", "r.yaml:2: the reply has no content"},
		"no calls":            {"r.yaml", "- tool_calls: []\n", "r.yaml:1: tool_calls: want a list of calls"},
		"call of nothing":     {"r.yaml", "- tool_calls:\n  - id: x\n", "r.yaml:2: a tool call has either a command or arguments"},
		"call of too much":    {"r.yaml", "- tool_calls:\n  - {command: a, arguments: b}\n", "r.yaml:2: a tool call has either a command or arguments"},
		"unknown key of call": {"r.yaml", "- tool_calls:\n  - ls\n  - {cmd: a}\n", `r.yaml:3: unknown key "cmd" in a tool call`},
		"number as call":      {"r.yaml", "- tool_calls: [7]\n", "r.yaml:1: a tool call: want a string, have a number"},
		"number as content":   {"r.yaml", "- content: 7\n", "r.yaml:1: content: want a string, have a number"},
		"bool as reply":       {"r.yaml", "- x\n- true\n", "r.yaml:2: a reply: want a string, have true or false"},
		"text as cost":        {"r.yaml", "- content: x\n  cost: free\n", "r.yaml:2: cost: want a number, have a string"},
		"negative latency":    {"r.yaml", "- content: x\n  latency: -1\n", "r.yaml:2: latency: want a number from 0"},
		"not a number":        {"r.yaml", "- content: x\n  cost: .nan\n", "r.yaml:2: cost: want a number from 0"},
		"more cached":         {"r.yaml", "- content: x\n  usage: {prompt_tokens: 1, cached_tokens: 2}\n", "r.yaml:2: usage: cached_tokens and"},
		"more reasoning":      {"r.yaml", "- content: x\n  usage: {reasoning_tokens: 2}\n", "r.yaml:2: usage: reasoning_tokens are"},
		"part of a token":     {"r.yaml", "- content: x\n  usage: {prompt_tokens: 1.5}\n", "r.yaml:2: prompt_tokens: want a whole number"},
		"key twice":           {"r.yaml", "- content: x\n  content: y\n", `r.yaml:2: duplicate key "content"`},
		"instance twice":      {"r.yaml", "a: [x]\na: [y]\n", `r.yaml:2: duplicate instance "a"`},
		"second document":     {"r.yaml", "- x\n---\n- y\n", "more than one YAML document"},
		"bad YAML":            {"r.yaml", "- 'x\n", "r.yaml: yaml: line"},
		"bad later YAML":      {"r.yaml", "- x\n---\n- 'y\n", "r.yaml: yaml: line"},
		"json, unknown key":   {"r.json", "[\n\"x\",\n{\"content\":\"y\",\n\"cots\":1}]", `r.json:4: unknown key "cots"`},
		"json, cut":           {"r.json", "[\n\"x\",\n", "r.json:2: unexpected EOF"},
		"json, not":           {"r.json", "- x\n", "r.json:1: invalid character"},
		"json, more":          {"r.json", "[\"x\"]\n[]", "r.json:2: unexpected data after the JSON value"},
		"json, huge number":   {"r.json", `[{"content":"x","cost":1e999}]`, "r.json:1: cost: want a number from 0"},
		"json, deep":          {"r.json", strings.Repeat("[", 1e6), "r.json:1: nested more than 1000 deep"},
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
			t.Errorf("with a context that has ended: %v", err)
		}
		if r, err := m.Query(t.Context(), nil); err != nil || r.Message.Content != "last" {
			t.Errorf("%q, %v: a failed query used up a reply", r.Message.Content, err)
		}
	})
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
	if diff := cmp.Diff([]string{"b"}, s.InstanceIDs()); diff != "" {
		t.Error(diff)
	}
	got, latency, err := s.Reply("a", 1)
	want := model.Reply{
		Message: model.Message{Role: model.Assistant, Content: "y", Reasoning: "why"}, FinishReason: model.FinishStop,
		Usage: model.Usage{Prompt: 9, Completion: 4, CacheRead: 5, CacheWrite: 3, Reasoning: 2}, Model: "scripted", Tries: 1,
	}
	if diff := cmp.Diff(want, got); diff != "" || latency != 2*time.Second || err != nil {
		t.Errorf("after %v: %v\n%s", latency, err, diff)
	}
	for _, step := range []int{-1, 1} {
		if _, _, err := s.Reply("b", step); !errors.Is(err, scripted.ErrExhausted) {
			t.Errorf("step %d: %v", step, err)
		}
	}
}
