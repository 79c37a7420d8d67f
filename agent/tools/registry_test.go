package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tool is a tool with configurable behavior.
type tool struct {
	spec     tools.Spec
	call     func(ctx context.Context, c tools.Call) (tools.Result, error)
	prepared *[]string
}

func (t tool) Spec() tools.Spec { return t.spec }

func (t tool) Call(ctx context.Context, c tools.Call) (tools.Result, error) { return t.call(ctx, c) }

func (t tool) Prepare(context.Context, env.Environment) error {
	if t.prepared != nil {
		*t.prepared = append(*t.prepared, t.spec.Name)
	}
	return nil
}

// fixedTool returns a tool that prints a text.
func fixedTool(name, text string) tool {
	return tool{spec: tools.Spec{Name: name, Usage: name + " TEXT", Description: "Says " + name + "."}, call: func(context.Context, tools.Call) (tools.Result, error) {
		return tools.Result{Output: text}, nil
	}}
}

func registry(t *testing.T, c tools.Config) *tools.Registry {
	t.Helper()
	r, err := tools.New(c)
	require.NoError(t, err)
	return r
}

func callTool(t *testing.T, r *tools.Registry, args ...string) agent.ToolResponse {
	t.Helper()
	return r.Handle(t.Context(), agent.ToolRequest{ToolRequest: env.ToolRequest{Args: args}})
}

func TestNew(t *testing.T) {
	tests := map[string]struct {
		names, allow []string
		err          string
	}{
		"fine":            {names: []string{"a", "a-b_C9"}},
		"none":            {},
		"twice":           {names: []string{"a", "b", "a"}, err: `two tools have the name "a"`},
		"no name":         {names: []string{""}, err: "name is empty"},
		"help":            {names: []string{"help"}, err: `tool name "help" is reserved`},
		"a flag":          {names: []string{"-x"}, err: "is invalid"},
		"a path":          {names: []string{"../x"}, err: "is invalid"},
		"a space":         {names: []string{"a b"}, err: "is invalid"},
		"a line feed":     {names: []string{"a\n"}, err: "is invalid"},
		"just short":      {names: []string{strings.Repeat("x", tools.MaxName)}},
		"too long":        {names: []string{strings.Repeat("x", tools.MaxName+1)}, err: "too long"},
		"allowed":         {names: []string{"a", "b"}, allow: []string{"b"}},
		"allowed, no one": {names: []string{"search", "note"}, allow: []string{"serch"}, err: `unknown tool "serch" in the list of allowed tools; did you mean "search"?`},
		"allowed, far":    {names: []string{"search"}, allow: []string{"quux"}, err: `unknown tool "quux" in the list of allowed tools`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var c tools.Config
			for _, n := range test.names {
				c.Tools = append(c.Tools, fixedTool(n, ""))
			}
			c.Allow = test.allow
			_, err := tools.New(c)
			if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
				t.Errorf("error %v, want %q", err, test.err)
			}
		})
	}
}

func TestAllow(t *testing.T) {
	var prepared []string
	local := tool{spec: tools.Spec{Name: "read", InSandbox: true}, prepared: &prepared}
	one, skill := fixedTool("one", "1"), fixedTool("skill", "s")
	one.prepared = &prepared
	c := tools.Config{Tools: []tools.Tool{skill, local, one, fixedTool("two", "2")}, Skills: []agent.Capability{{Name: "bisect"}}}
	all := registry(t, c)
	c.Allow = []string{"two", "one"}
	some := registry(t, c)
	tests := map[string]struct {
		registry *tools.Registry
		names    string
		local    string
		skills   int
		prepared string
	}{
		"all":               {all, "skill read one two", "read", 1, "read one"},
		"allowed":           {some, "one two", "", 0, "one"},
		"fewer":             {all.Restrict([]string{"read", "Bash", "skill"}), "skill read", "read", 1, "read"},
		"fewer of those":    {some.Restrict([]string{"read", "two"}), "two", "", 0, ""},
		"none":              {all.Restrict(nil), "", "", 0, ""},
		"all, as they were": {all, "skill read one two", "read", 1, "read one"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			prepared = nil
			require.NoError(t, test.registry.Prepare(t.Context(), nil))
			a := test.registry.Capabilities()
			var names []string
			for _, one := range a.Tools {
				names = append(names, one.Name)
			}
			if got := strings.Join(names, " "); got != test.names || !slices.Equal(names, test.registry.Names()) {
				t.Errorf("tools %q, want %q", got, test.names)
			}
			if got := strings.Join(a.InSandbox, " "); got != test.local || len(a.Skills) != test.skills {
				t.Errorf("local %q and %d skills, want %q and %d", got, len(a.Skills), test.local, test.skills)
			}
			assert.Equal(t, test.prepared, strings.Join(prepared, " "), "prepared")
			for _, name := range []string{"one", "two"} {
				assert.Equal(t, slices.Contains(names, name), callTool(t, test.registry, name).ExitCode == 0, "%s was called", name)
			}
		})
	}
}

func TestAnswer(t *testing.T) {
	type loop struct{ Self *loop }
	endless := &loop{}
	endless.Self = endless
	returning := func(r tools.Result, err error) func(context.Context, tools.Call) (tools.Result, error) {
		return func(context.Context, tools.Call) (tools.Result, error) { return r, err }
	}
	newTool := func(name string, maxOutput int, call func(context.Context, tools.Call) (tools.Result, error)) tools.Tool {
		return tool{spec: tools.Spec{Name: name, Usage: name + " A\n" + name + " B", Description: "Does " + name + ".", MaxOutput: maxOutput}, call: call}
	}
	r := registry(t, tools.Config{MaxOutput: 10, Tools: []tools.Tool{
		newTool("fine", 0, func(_ context.Context, c tools.Call) (tools.Result, error) {
			return tools.Result{Output: strings.Join(c.Args, "|")}, nil
		}),
		newTool("code", 0, returning(tools.Result{Output: "no", ExitCode: 3, Details: map[string]int{"n": 1}}, nil)),
		newTool("wrong", 0, returning(tools.Result{}, tools.Usagef("A is missing"))),
		newTool("wrapped", 0, returning(tools.Result{}, errors.Join(tools.Usagef("A is missing")))),
		newTool("fails", 0, returning(tools.Result{Output: "half"}, errors.New("disk full"))),
		newTool("panics", 0, func(context.Context, tools.Call) (tools.Result, error) { panic("oh") }),
		newTool("long", 0, returning(tools.Result{Output: "123456789äöü"}, nil)),
		newTool("longer", 12, returning(tools.Result{Output: "123456789äöü"}, nil)),
		newTool("loud", 0, returning(tools.Result{}, errors.New(strings.Repeat("x", 100_000)))),
		newTool("nan", 0, returning(tools.Result{Details: math.NaN()}, nil)),
		newTool("loop", 0, returning(tools.Result{Details: endless}, nil)),
		newTool("huge", 0, returning(tools.Result{Details: strings.Repeat("x", 1<<20)}, nil)),
		newTool("null", 0, returning(tools.Result{Details: (*loop)(nil)}, nil)),
		tool{spec: tools.Spec{Name: "read", InSandbox: true}},
	}})
	tests := map[string]struct {
		args                    []string
		code                    int
		output, errors, details string // output and details whole, where they are short
	}{
		"fine":               {args: []string{"fine", "a", "-"}, output: "a|-"},
		"none":               {output: "usage: mini-tool NAME ARGS...*  mini-tool fine A\n  mini-tool fine B\n      Does fine.\n*mini-tool null A*"},
		"help":               {args: []string{"help"}, output: "usage: mini-tool NAME*mini-tool code A*"},
		"--help":             {args: []string{"--help"}, output: "usage: mini-tool NAME*mini-tool code A*"},
		"help for one":       {args: []string{"help", "fine"}, output: "usage: mini-tool fine A\n       mini-tool fine B\n\nDoes fine.\n"},
		"one, --help":        {args: []string{"fine", "--help"}, output: "usage: mini-tool fine A\n       mini-tool fine B\n\nDoes fine.\n"},
		"help for none":      {args: []string{"help", "fone"}, code: 2, errors: `mini-tool: there is no tool "fone"; did you mean "fine"?*tools: fine, code, *, read` + "\n"},
		"help for local":     {args: []string{"read", "-h"}, output: "usage: mini-tool read\n"},
		"unknown":            {args: []string{"coed"}, code: 2, errors: `mini-tool: there is no tool "coed"; did you mean "code"?*tools: fine, code, *`},
		"unknown, and long":  {args: []string{strings.Repeat("y", 1000)}, code: 2, errors: `mini-tool: there is no tool "yyy*` + "y\"\ntools: *"},
		"exit code, details": {args: []string{"code"}, code: 3, output: "no", details: `{"n":1}`},
		"mistake":            {args: []string{"wrong"}, code: 2, errors: "mini-tool: wrong: A is missing\nusage: mini-tool wrong A\n       mini-tool wrong B\n"},
		"mistake, wrapped":   {args: []string{"wrapped"}, code: 2, errors: "mini-tool: wrapped: A is missing\nusage: *"},
		"failure":            {args: []string{"fails"}, code: 1, output: "half", errors: "mini-tool: fails: disk full\n"},
		"panic":              {args: []string{"panics"}, code: 1, errors: "mini-tool: panics: it broke down, by a defect of its own: oh\n", details: `{"panic":"oh","stack":"goroutine*`},
		"cut at a character": {args: []string{"long"}, output: "123456789\n[mini-tool: the last 6 of 15 bytes were left out]\n"},
		"its own bound":      {args: []string{"longer"}, output: "123456789ä\n[mini-tool: the last 4 of 15 bytes were left out]\n"},
		"long error":         {args: []string{"loud"}, code: 1, errors: "mini-tool: loud: xxx*bytes were left out]\n\n"},
		"no JSON":            {args: []string{"nan"}, details: `{"details_lost":"json: unsupported value*`},
		"endless JSON":       {args: []string{"loop"}, details: `{"details_lost":"json: unsupported value*`},
		"huge details":       {args: []string{"huge"}, details: `{"details_too_long":1048578}`},
		"no details":         {args: []string{"null"}},
		"local":              {args: []string{"read", "x"}, code: 1, errors: "mini-tool: read: *sandbox*"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := callTool(t, r, test.args...)
			details := ""
			if got.Details != nil {
				data, err := json.Marshal(got.Details)
				require.NoError(t, err)
				details = string(data)
			}
			checkPattern(t, "output", string(got.Stdout), test.output)
			checkPattern(t, "errors", string(got.Stderr), test.errors)
			checkPattern(t, "details", details, test.details)
			assert.Equal(t, test.code, got.ExitCode, "exit code")
			if len(got.Stdout)+len(got.Stderr) > env.MaxToolResponse || len(got.Stderr) > 20<<10 || !utf8.Valid(got.Stdout) {
				t.Errorf("%d and %d bytes", len(got.Stdout), len(got.Stderr))
			}
		})
	}
}

// checkPattern checks that a text matches a pattern in which * stands for any text.
func checkPattern(t *testing.T, what, got, want string) {
	t.Helper()
	rest, parts := got, strings.Split(want, "*")
	for i, part := range parts {
		at := strings.Index(rest, part)
		if at < 0 || i == 0 && at > 0 || i == len(parts)-1 && part != "" && !strings.HasSuffix(rest, part) || want == "" && got != "" || len(parts) == 1 && got != want {
			t.Errorf("%s:\n%.600s\nwant:\n%s", what, got, want)
			return
		}
		rest = rest[at+len(part):]
	}
}

// TestTimeouts runs with the fake clock of synctest.
func TestTimeouts(t *testing.T) {
	waitForContext := func(ctx context.Context, _ tools.Call) (tools.Result, error) {
		<-ctx.Done()
		return tools.Result{}, context.Cause(ctx)
	}
	tests := map[string]struct {
		spec   time.Duration
		call   func(ctx context.Context, c tools.Call) (tools.Result, error)
		caller time.Duration // how long the caller waits for the response
		took   time.Duration
		errors string
	}{
		"obeys the registry's": {call: waitForContext, took: 5 * time.Second, errors: "mini-tool: x: it took longer than the 5s that it may take, and was stopped\n"},
		"obeys its own":        {spec: time.Second, call: waitForContext, took: time.Second, errors: "mini-tool: x: it took longer than the 1s that it may take, and was stopped\n"},
		"obeys nothing": {call: func(context.Context, tools.Call) (tools.Result, error) {
			time.Sleep(time.Hour)
			return tools.Result{Output: "late"}, nil
		}, took: 5*time.Second + tools.GracePeriod, errors: "mini-tool: x: it took longer*"},
		"says something at the end": {call: func(ctx context.Context, _ tools.Call) (tools.Result, error) {
			<-ctx.Done()
			return tools.Result{Output: "partly"}, nil
		}, took: 5 * time.Second},
		"no time limit, the caller waits": {spec: -1, call: waitForContext, caller: time.Hour, took: time.Hour, errors: "mini-tool: x: context *"},
		"no bound, obeys nothing": {spec: -1, call: func(context.Context, tools.Call) (tools.Result, error) {
			time.Sleep(2 * time.Hour)
			return tools.Result{}, nil
		}, caller: time.Hour, took: time.Hour + tools.GracePeriod, errors: "mini-tool: x: it was stopped, and did not end\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := registry(t, tools.Config{Timeout: 5 * time.Second, Tools: []tools.Tool{tool{spec: tools.Spec{Name: "x", Timeout: test.spec}, call: test.call}}})
				ctx := t.Context()
				if test.caller > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithCancel(ctx)
					time.AfterFunc(test.caller, cancel)
				}
				start := time.Now()
				got := r.Handle(ctx, agent.ToolRequest{ToolRequest: env.ToolRequest{Args: []string{"x"}}})
				if took := time.Since(start); took != test.took {
					t.Errorf("it took %v, want %v", took, test.took)
				}
				checkPattern(t, "errors", string(got.Stderr), test.errors)
				assert.Equal(t, min(len(test.errors), 1), got.ExitCode, "exit code")
				time.Sleep(3 * time.Hour) // until the tool that ignores its context has returned
			})
		})
	}
}

func TestParseArgs(t *testing.T) {
	flags := []tools.Flag{{Name: "limit"}, {Name: "category"}, {Name: "json", Boolean: true}, {Name: "tag", Repeatable: true}}
	tests := map[string]struct {
		args string
		want string
		err  string
	}{
		"nothing":              {"", "[] [] false []", ""},
		"words":                {"a b", "[a b] [] false []", ""},
		"a value behind":       {"a --category x b", "[a b] [x] false []", ""},
		"a value with =":       {"--category=--x=y", "[] [--x=y] false []", ""},
		"an empty value":       {"--category=", "[] [] false []", ""},
		"a switch":             {"--json a", "[a] [] true []", ""},
		"repeats":              {"--tag a --tag=b", "[] [] false [a b]", ""},
		"input":                {"-", "[-] [] false []", ""},
		"a negative number":    {"-5 -0.5", "[-5 -0.5] [] false []", ""},
		"a value with a dash":  {"--category -x", "[] [-x] false []", ""},
		"the end of flags":     {"--json -- --limit -- -x", "[--limit -- -x] [] true []", ""},
		"an unknown flag":      {"--limti 5", "", `there is no flag "--limti"; did you mean --limit?`},
		"with a value":         {"--nonsense=5", "", `there is no flag "--nonsense"; what follows -- is no flag`},
		"a short flag":         {"-l", "", `there is no flag "-l"`},
		"two dashes for short": {"-limit 5", "", `there is no flag "-limit"; did you mean --limit?`},
		"twice":                {"--limit 5 --limit=6", "", "--limit is there twice"},
		"a switch twice":       {"--json --json", "", "--json is there twice"},
		"no value":             {"--limit", "", "--limit needs a value"},
		"a flag for a value":   {"--limit --json", "", "--limit needs a value"},
		"too much of a value":  {"--json=yes", "", "--json takes no value"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a, err := tools.ParseArgs(strings.Fields(test.args), flags...)
			if test.err != "" {
				wrong, ok := errors.AsType[*tools.UsageError](err)
				if !ok || !strings.Contains(wrong.Text, test.err) {
					t.Errorf("error %v, want %q", err, test.err)
				}
				return
			}
			require.NoError(t, err)
			got := fmt.Sprintf("%v [%s] %v %v", a.Positional, a.Value("category"), a.Has("json"), a.Values("tag"))
			assert.Equal(t, test.want, got)
		})
	}
}
