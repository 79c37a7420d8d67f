package fake_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/fake"
)

// ask sends one request to a server without a network.
func ask(t *testing.T, s *fake.Server, api, body string, header ...string) (int, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path(api), strings.NewReader(body))
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func server(t *testing.T, c fake.Config) *fake.Server {
	t.Helper()
	if c.Script == nil {
		c.Script = script(t, replies)
	}
	s, err := fake.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// What providers refuse is refused here, so that a client finds out.
func TestBadRequests(t *testing.T) {
	const hello = `{"role":"user","content":"hello"}`
	call := `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"bash","arguments":"{}"}}]}`
	use := `{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"bash","input":{}}]}`
	tests := map[string]struct{ api, body, want string }{
		"no JSON":             {"openai", `{`, "could not parse the JSON body"},
		"a list":              {"openai", `[]`, "Invalid type"},
		"nothing":             {"openai", ``, "could not parse the JSON body"},
		"deep":                {"openai", strings.Repeat("[", 1e5), "could not parse the JSON body"},
		"no model":            {"openai", `{"messages":[` + hello + `]}`, "model parameter"},
		"no messages":         {"openai", `{"model":"m"}`, "empty array"},
		"messages as text":    {"openai", `{"model":"m","messages":"hello"}`, "Invalid type for 'messages': got string."},
		"a role of its own":   {"openai", `{"model":"m","messages":[{"role":"exit","content":"x"}]}`, "Invalid value: 'exit'"},
		"no content":          {"openai", `{"model":"m","messages":[{"role":"user"}]}`, "messages[0].content"},
		"no result":           {"openai", `{"model":"m","messages":[` + hello + `,` + call + `]}`, "did not have response messages: c1"},
		"another's result":    {"openai", `{"model":"m","messages":[` + hello + `,` + call + `,{"role":"tool","tool_call_id":"c2","content":"x"}]}`, "must be a response to"},
		"something between":   {"openai", `{"model":"m","messages":[` + hello + `,` + call + `,` + hello + `]}`, "did not have response messages: c1"},
		"empty result":        {"openai", `{"model":"m","messages":[` + hello + `,` + call + `,{"role":"tool","tool_call_id":"c1"}]}`, "messages[2].content"},
		"no max_tokens":       {"anthropic", `{"model":"m","messages":[` + hello + `]}`, "max_tokens: Field required"},
		"no tokens":           {"anthropic", `{"model":"m","max_tokens":0,"messages":[` + hello + `]}`, "greater than or equal to 1"},
		"Anthropic, no model": {"anthropic", `{"max_tokens":9,"messages":[` + hello + `]}`, "model: Field required"},
		"Anthropic, nothing":  {"anthropic", `{"model":"m","max_tokens":9,"messages":[]}`, "at least one message"},
		"system as a message": {"anthropic", `{"model":"m","max_tokens":9,"messages":[{"role":"system","content":"x"}]}`, "Unexpected role"},
		"empty message":       {"anthropic", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":""}]}`, "non-empty content"},
		"no tool_result":      {"anthropic", `{"model":"m","max_tokens":9,"messages":[` + hello + `,` + use + `,` + hello + `]}`, "without `tool_result` blocks immediately after: t1"},
		"tool_use at the end": {"anthropic", `{"model":"m","max_tokens":9,"messages":[` + hello + `,` + use + `]}`, "without `tool_result` blocks immediately after: t1"},
		"strange tool_result": {"anthropic", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","content":"x"}]}]}`, "unexpected `tool_use_id`"},
		"changed thought": {"anthropic", `{"model":"m","max_tokens":9,"messages":[` + hello +
			`,{"role":"assistant","content":[{"type":"thinking","thinking":"other","signature":"abc"}]},` + hello + `]}`, "Invalid `signature` in `thinking` block"},
		"script at its end":           {"openai", simple("openai", "hello", 2), "script_exhausted"},
		"Anthropic, script's end":     {"anthropic", simple("anthropic", "hello", 2), "the script has no more replies: step 3 of 2"},
		"no replies for the instance": {"openai", simple("openai", "hello", 0), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := fake.Config{}
			if test.want == "" {
				c.Script, test.want = script(t, "a: [x]"), "unknown_instance"
			}
			s := server(t, c)
			status, answer := ask(t, s, test.api, test.body)
			if status != 400 || !strings.Contains(answer, test.want) || !json.Valid([]byte(answer)) {
				t.Errorf("%d %s, want %s", status, answer, test.want)
			}
			if b := s.Books(); b.Requests[0].Outcome != fake.Refused || b.Charged.Replies != 0 {
				t.Errorf("outcome %s", b.Requests[0].Outcome)
			}
		})
	}
}

// The instance is the longest name that stands as a word before the first reply.
func TestInstances(t *testing.T) {
	const yaml = `{"*": [other], django__django-1: [one], django__django-11: [eleven], "two words": [two], a/b.c: [path], a: [short]}`
	for name, test := range map[string]struct{ first, header, want string }{
		"a name":           {"fix django__django-11, please", "", "eleven"},
		"part of another":  {"fix django__django-1.", "", "one"},
		"part of none":     {"fix django__django-12", "", "other"},
		"the longest":      {"a django__django-1 and django__django-11", "", "eleven"},
		"two words":        {"these two words", "", "two"},
		"a path":           {"see a/b.c", "", "path"},
		"a header":         {"fix django__django-11", "X-Fake-Instance: a", "short"},
		"none":             {"hello", "", "other"},
		"none in a header": {"fix django__django-11", "X-Fake-Instance: b", "other"},
	} {
		for _, api := range []string{"openai", "anthropic"} {
			s := server(t, fake.Config{Script: script(t, yaml)})
			status, answer := ask(t, s, api, simple(api, test.first, 0), test.header)
			if status != 200 || !strings.Contains(answer, `"`+test.want+`"`) {
				t.Errorf("%s, %s: %d %s, want %s", name, api, status, answer, test.want)
			}
		}
	}
}

// Without a usage in the script, four bytes are a token; what an earlier step
// has sent comes from the cache, with Anthropic as far as a mark goes.
func TestUsageOfPrompts(t *testing.T) {
	mark := func(text string) string {
		return `[{"type":"text","text":"` + text + `","cache_control":{"type":"ephemeral"}}]`
	}
	user := func(content string) string { return `{"role":"user","content":` + content + `}` }
	said := `{"role":"assistant","content":"1234567890"}` // a content of 12 bytes, a message of 43
	text := `"12345678901234567890123456789012345678"`    // 40 bytes; a message of 66
	anthropic := func(messages ...string) string {
		return `{"model":"m","max_tokens":9,"messages":[` + strings.Join(messages, ",") + `]}`
	}
	openai := func(messages ...string) string {
		return `{"model":"m","messages":[` + strings.Join(messages, ",") + `]}`
	}
	for name, test := range map[string]struct {
		api, body string
		want      model.Usage
	}{
		"first":           {"openai", openai(user(text)), model.Usage{Prompt: 17, Completion: 1}},
		"second":          {"openai", openai(user(text), said, user(text)), model.Usage{Prompt: 44, CacheRead: 17, Completion: 1}},
		"no mark":         {"anthropic", anthropic(user(text), said, user(text)), model.Usage{Prompt: 23, Completion: 1}},
		"first mark":      {"anthropic", anthropic(user(mark("x")), said, user(text)), model.Usage{Prompt: 30, CacheRead: 17, Completion: 1}},
		"mark at the end": {"anthropic", anthropic(user(text), said, user(mark("x"))), model.Usage{Prompt: 30, CacheRead: 10, CacheWrite: 20, Completion: 1}},
		"only a mark":     {"anthropic", anthropic(user(mark("x"))), model.Usage{Prompt: 17, CacheWrite: 17, Completion: 1}},
	} {
		s := server(t, fake.Config{Script: script(t, "[x, x, x]")})
		if status, answer := ask(t, s, test.api, test.body); status != 200 {
			t.Fatalf("%s: %d %s", name, status, answer)
		}
		if diff := cmp.Diff(test.want, s.Books().Requests[0].Usage); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// OpenRouter's own cost is told to who asks for it.
func TestCostTold(t *testing.T) {
	s := server(t, fake.Config{Price: model.Price{Input: 1e6}, Script: script(t, "[{content: x, usage: {prompt_tokens: 3}}, {content: y, cost: 0.5}]")})
	with := func(body string) string { return strings.TrimSuffix(body, "}") + `,"usage":{"include":true}}` }
	for body, want := range map[string]string{
		with(simple("openai", "hello", 0)): `"cost":3}`,
		with(simple("openai", "hello", 1)): `"cost":0.5}`,
	} {
		if _, answer := ask(t, s, "openai", body); !strings.Contains(answer, want) {
			t.Errorf("%s, want %s", answer, want)
		}
	}
	if _, answer := ask(t, s, "openai", simple("openai", "hello", 0)); strings.Contains(answer, "cost") {
		t.Errorf("told without being asked: %s", answer)
	}
	if b := s.Books(); b.Charged.Cost != 6.5 {
		t.Errorf("charged %v", b.Charged)
	}
}

// FuzzRequests finds requests that a server does not survive.
func FuzzRequests(f *testing.F) {
	for _, api := range []string{"openai", "anthropic"} {
		f.Add(api == "anthropic", body(api, true))
		f.Add(api == "anthropic", simple(api, "hello", 1))
	}
	s, err := fake.New(fake.Config{Script: must(f), Plan: &fake.Plan{Rules: []fake.Rule{
		{Probability: 0.5, Faults: []string{"length", "refused", "tool-bad-json", "bad-json", "cut", "usage-negative", "empty-choices"}},
	}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.Close() })
	f.Fuzz(func(t *testing.T, isAnthropic bool, body string) {
		api := "openai"
		if isAnthropic {
			api = "anthropic"
		}
		defer func() {
			r := recover()
			if err, ok := r.(error); r != nil && (!ok || !errors.Is(err, http.ErrAbortHandler)) {
				panic(r)
			}
		}()
		if status, answer := ask(t, s, api, body); status != 200 && !json.Valid([]byte(answer)) {
			t.Errorf("%d %q", status, answer)
		}
	})
}

// TestPlanNamesWhatIsWrong is for who writes a plan by hand.
func TestPlanNamesWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"rules: [{fault: cuts}]":                              `rule 1: there is no fault "cuts"; did you mean cut?`,
		"rules: [{fault: cut}, {requests: [1]}]":              "rule 2: no fault is named",
		"rules: [{fault: cut, requests: [0]}]":                "count from 1",
		"rules: [{fault: cut, step: -1}]":                     "count from 1",
		"rules: [{fault: cut, api: azure}]":                   "want openai or anthropic",
		"rules: [{fault: cut, probability: 5}]":               `"5" is no probability`,
		"rules: [{fault: cut, probability: x%}]":              `"x%" is no probability`,
		"rules: [{fault: cut, wait: -3s}]":                    `"-3s" is no time`,
		"rules: [{fault: cut, wait: soon}]":                   `"soon" is no time`,
		"rules: [{fault: huge, size: -1}]":                    `"-1" is no size`,
		"rules: [{fault: status}]":                            "needs a status from 200 to 599, not 0",
		"rules: [{fault: rate-limit, retry_after_as: hours}]": "want seconds, date or ms",
		"rules:\n- fault: cut\n  when: 3":                     `plan.yaml:3: unknown key "when"`,
		"rules: 3":                                            "plan.yaml: line 1: cannot unmarshal",
		"a: b: c":                                             "plan.yaml: yaml: mapping values",
		"seed: 1\n---\nseed: 2":                               "one YAML document",
	} {
		if _, err := fake.ParsePlan("plan.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if p, err := fake.ParsePlan("plan.yaml", nil); err != nil || len(p.Rules) > 0 {
		t.Errorf("an empty file: %v", err)
	}
}

// The example of the documentation is a plan.
func TestPlanOfTheDocumentation(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "fake-model.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, yaml, _ := strings.Cut(string(page), "    seed: 7\n")
	yaml, _, _ = strings.Cut(yaml, "\n\n")
	if p := plan(t, "    seed: 7\n"+yaml); len(p.Rules) != 4 || p.Rules[3].Times != 3 {
		t.Errorf("%+v", p)
	}
}

// Chance depends on the seed and on what is asked, not on the order.
func TestSameFaultsInAnyOrder(t *testing.T) {
	faults := func(seed int, backwards bool) string {
		s := server(t, fake.Config{
			Script: script(t, "["+strings.Repeat("x, ", 20)+"]"),
			Plan:   plan(t, fmt.Sprintf("{seed: %d, rules: [{probability: 20%%, faults: [server-error, rate-limit]}]}", seed)),
		})
		for i := range 200 {
			if backwards {
				i = 199 - i
			}
			ask(t, s, "openai", simple("openai", fmt.Sprint("instance ", i/20), i%20))
		}
		var list []string
		for _, r := range s.Books().Requests {
			if r.Fault != "" {
				list = append(list, fmt.Sprint(r.Instance, " ", r.Step, " ", r.Fault))
			}
		}
		if backwards {
			for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
				list[i], list[j] = list[j], list[i]
			}
		}
		if len(list) < 20 || len(list) > 60 {
			t.Errorf("%d of 200 are not 20 %%", len(list))
		}
		return strings.Join(list, "\n")
	}
	if diff := cmp.Diff(faults(1, false), faults(1, true)); diff != "" {
		t.Error(diff)
	}
	if faults(1, false) == faults(2, false) {
		t.Error("another seed makes no difference")
	}
}

// A rule for a step is for the first time it is asked, unless it says more.
func TestTimes(t *testing.T) {
	s := server(t, fake.Config{Plan: plan(t, `
rules:
  - {instance: django__django-1, fault: server-error, times: 2}
  - {step: 1, fault: overloaded}
  - {step: 2, api: anthropic, stream: false, fault: status, status: 418}
`)})
	got := ""
	for _, r := range []string{"django__django-1", "x", "y"} {
		for range 4 {
			status, _ := ask(t, s, "openai", simple("openai", r, 0))
			got += fmt.Sprint(status, " ")
		}
	}
	for _, api := range []string{"anthropic", "anthropic", "openai"} {
		status, _ := ask(t, s, api, simple(api, "z", 1))
		got += fmt.Sprint(status, " ")
	}
	if want := "500 500 503 200 503 200 200 200 503 200 200 200 418 200 200 "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
