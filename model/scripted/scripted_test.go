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

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/golden"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/scripted"
)

// play returns all replies to an instance, up to the end of the script.
func play(t *testing.T, s *scripted.Script, id string) []model.Reply {
	t.Helper()
	m, err := s.For(id)
	require.NoError(t, err)
	var all []model.Reply
	for {
		r, err := m.Query(t.Context(), nil)
		if e, ok := errors.AsType[*model.Error](err); ok && e.Status == model.ScriptExhausted {
			if e.Retryable || e.Hint == "" {
				t.Errorf("the end of the script: retryable %v, hint %q", e.Retryable, e.Hint)
			}
			return all
		}
		require.NoError(t, err)
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
			require.NoError(t, err)
			for range 2 { // every attempt starts at the first reply
				assert.NoDiff(t, cmp.Diff(test.want, contents(play(t, s, test.id))))
			}
		})
	}
}

func TestToolCalls(t *testing.T) {
	call := func(id, command string) model.ToolCall {
		arguments, err := json.Marshal(map[string]string{"command": command})
		require.NoError(t, err)
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
			require.NoError(t, err)
			var got []model.Message
			for i, r := range play(t, s, "a") {
				assert.Equal(t, r.FinishReason == model.FinishToolCalls, len(r.Message.ToolCalls) > 0, "reply %d ends with %q", i, r.FinishReason)
				r.Message.Role = ""
				got = append(got, r.Message)
			}
			assert.Equal(t, test.want, got, "the result")
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
		require.NoError(t, err)
		assert.Equal(t, want, play(t, s, "a"), "%s: ", name)
	}
}

func TestParseNamesTheLine(t *testing.T) {
	refuse := func(t *testing.T, name, data string) string {
		_, err := scripted.Parse(name, []byte(data))
		if err == nil {
			t.Fatal("no error")
		}
		return err.Error()
	}
	golden.Cases(t, "testdata/mistakes.txt", func(t *testing.T, input string) string {
		name, data, _ := strings.Cut(strings.TrimSuffix(input, "\n"), "\n")
		return refuse(t, name, data)
	})
	assert.Contains(t, refuse(t, "r.json", strings.Repeat("[", 1e6)), "r.json:1: nested more than 1000 deep", "deep JSON")
}

func TestUnknownInstance(t *testing.T) {
	s, err := scripted.Parse("r.yaml", []byte("a: [x]"))
	require.NoError(t, err)
	_, err = s.For("django__django-1")
	assert.ErrorContains(t, err, `"django__django-1"`)
}

func TestLatency(t *testing.T) {
	s, err := scripted.Parse("r.yaml", []byte("- {content: slow, latency: 2.5}\n- {content: never, latency: 60}\n- last\n"))
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		m, err := s.For("a")
		require.NoError(t, err)
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
		_, err = m.Query(ctx, nil)
		assert.ErrorIs(t, err, stop, "with a context that has ended")
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
	require.NoError(t, err)
	assert.NoDiff(t, cmp.Diff([]string{"b"}, s.InstanceIDs()))
	got, latency, err := s.Reply("a", 1)
	want := model.Reply{
		Message: model.Message{Role: model.Assistant, Content: "y", Reasoning: "why"}, FinishReason: model.FinishStop,
		Usage: model.Usage{Prompt: 9, Completion: 4, CacheRead: 5, CacheWrite: 3, Reasoning: 2}, Model: "scripted", Tries: 1,
	}
	if diff := cmp.Diff(want, got); diff != "" || latency != 2*time.Second || err != nil {
		t.Errorf("after %v: %v\n%s", latency, err, diff)
	}
	for _, step := range []int{-1, 1} {
		_, _, err := s.Reply("b", step)
		assert.ErrorIs(t, err, scripted.ErrExhausted, "step %d", step)
	}
}

// TestDeltas checks that a reply is sent as deltas, thinking first.
func TestDeltas(t *testing.T) {
	s, err := scripted.Parse("x", []byte("- hello\n- {content: there, reasoning_content: hm}\n- {tool_calls: [ls]}\n"))
	require.NoError(t, err)
	m, err := s.For("*")
	require.NoError(t, err)
	for _, want := range []string{"hello", "(hm)there", ""} {
		got := ""
		ctx := model.WithDeltas(t.Context(), func(d model.Delta) {
			if got += d.Text; d.Reasoning != "" {
				got += "(" + d.Reasoning + ")"
			}
		})
		if _, err := m.Query(ctx, nil); err != nil || got != want {
			t.Errorf("deltas %q, want %q; %v", got, want, err)
		}
	}
}
