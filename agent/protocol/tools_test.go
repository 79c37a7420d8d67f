package protocol

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/model"
)

func replyWithCalls(finish model.FinishReason, calls ...model.ToolCall) model.Reply {
	return model.Reply{Message: model.Message{Role: model.Assistant, ToolCalls: calls}, FinishReason: finish}
}

func arg(id, arguments string) model.ToolCall {
	return model.ToolCall{ID: id, Name: "bash", Arguments: arguments}
}

func TestArguments(t *testing.T) {
	const ls = `{"command":"ls"}`
	tests := map[string]struct {
		call    model.ToolCall
		command string
		problem string // part of the problem
	}{
		"right":               {arg("a", ls), "ls", ""},
		"spaces around":       {arg("a", " \n{ \"command\" : \"a\\nb\" }\t"), "a\nb", ""},
		"escapes":             {arg("a", `{"command":"\u0061 \ud83d\ude00 \ufffd"}`), "a 😀 \ufffd", ""},
		"unknown tool":        {model.ToolCall{Name: "python", Arguments: ls}, "", `no tool "python"; the only one is bash`},
		"no name":             {model.ToolCall{Arguments: ls}, "", `no tool ""`},
		"a long name":         {model.ToolCall{Name: strings.Repeat("x", 1e6)}, "", "no tool"},
		"nothing":             {arg("a", ""), "", "they end too early"},
		"no JSON":             {arg("a", "ls -la"), "", "no JSON object: invalid character 'l'"},
		"cut":                 {arg("a", `{"command":"ls`), "", "they end too early"},
		"cut after the value": {arg("a", `{"command":"ls"`), "", "they end too early"},
		"more after it":       {arg("a", ls+ls), "", "more after its end"},
		"a string":            {arg("a", `"ls"`), "", "no JSON object"},
		"a list":              {arg("a", `["ls"]`), "", "no JSON object"},
		"null":                {arg("a", `null`), "", "no JSON object"},
		"empty object":        {arg("a", `{}`), "", "command is missing"},
		"other case":          {arg("a", `{"Command":"ls"}`), "", `no argument "Command"`},
		"extra":               {arg("a", `{"command":"ls","timeout":5}`), "", `no argument "timeout"; the only one is command`},
		"quoted before":       {arg("a", `{"not_json":"{"}`), "", "they end too early"},
		"quoted by a model":   {arg("a", `{"not_json":"{\"command\":\"ls\"}"}`), "", `no argument "not_json"`},
		"twice":               {arg("a", `{"command":"ls","command":"rm"}`), "", "there twice"},
		"number":              {arg("a", `{"command":5}`), "", "must be a string, and it is a number"},
		"list":                {arg("a", `{"command":["ls"]}`), "", "it is a list"},
		"object":              {arg("a", `{"command":{"a":1}}`), "", "it is an object"},
		"null command":        {arg("a", `{"command":null}`), "", "it is null"},
		"true":                {arg("a", `{"command":true}`), "", "it is true or false"},
		"empty":               {arg("a", `{"command":""}`), "", "the command is empty"},
		"white space":         {arg("a", `{"command":" \n"}`), "", "the command is empty"},
		"NUL":                 {arg("a", `{"command":"a\u0000b"}`), "", "NUL byte"},
		"not UTF-8":           {arg("a", "{\"command\":\"a\xff\"}"), "", "not valid UTF-8"},
		"half a pair":         {arg("a", `{"command":"a\ud83d"}`), "", "half of a surrogate pair"},
		"as long as may be":   {arg("a", `{"command":"`+strings.Repeat("x", env.MaxScript)+`"}`), strings.Repeat("x", env.MaxScript), ""},
		"longer":              {arg("a", `{"command":"`+strings.Repeat("x", env.MaxScript+1)+`"}`), "", "are allowed"},
		"far longer":          {arg("a", strings.Repeat(" ", maxArguments+1)), "", "too many"},
		"deep":                {arg("a", `{"command":`+strings.Repeat("[", 100_000)), "", "no JSON object"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := NewTools(false).Parse(replyWithCalls(model.FinishToolCalls, tt.call), 3)
			if tt.problem == "" {
				if r.Problem != "" || len(r.Actions) != 1 || r.Actions[0].Command != tt.command {
					t.Errorf("read %.200q, %.200v", r.Problem, r.Actions)
				}
				return
			}
			if !strings.Contains(r.Problem, tt.problem) || len(r.Problem) > 500 || r.Commands() != nil {
				t.Errorf("wrong is %.600q, commands %.100q; want %q", r.Problem, r.Commands(), tt.problem)
			}
		})
	}
}

func TestRepliesWithCalls(t *testing.T) {
	many := make([]model.ToolCall, maxCalls+1)
	for i := range many {
		many[i] = arg(fmt.Sprint(i), `{"command":"ls"}`)
	}
	bad := arg("b", "{")
	tests := map[string]struct {
		one     bool
		reply   model.Reply
		wrong   string
		answers []string // part of each message of ErrorMessages; the text is "TOLD"
		ids     []string
	}{
		"none":                       {false, replyWithCalls(model.FinishStop), "no tool call", []string{"TOLD"}, []string{""}},
		"none, cut":                  {false, replyWithCalls(model.FinishLength), "token limit", []string{"TOLD"}, []string{""}},
		"cut in a call":              {false, replyWithCalls(model.FinishLength, bad), "token limit", []string{"TOLD"}, []string{"b"}},
		"cut behind a complete call": {false, replyWithCalls(model.FinishLength, many[0]), "", nil, nil},
		"two":                        {false, replyWithCalls(model.FinishToolCalls, many[:2]...), "", nil, nil},
		"two where one may be": {
			true, replyWithCalls(model.FinishToolCalls, many[:2]...), "2 tool calls, and exactly one",
			[]string{"TOLD", "2 tool calls"},
			[]string{"0", "1"},
		},
		"too many": {false, replyWithCalls(model.FinishToolCalls, many...), "at most 64 are run", nil, nil},
		"one wrong of three": {
			false, replyWithCalls(model.FinishToolCalls, many[0], bad, many[1]), "end too early",
			[]string{"another call", "TOLD", "another call"},
			[]string{"0", "b", "1"},
		},
		"two wrong": {
			false, replyWithCalls(model.FinishToolCalls, bad, model.ToolCall{ID: "c", Name: "x", Arguments: "{}"}), "end too early",
			[]string{"TOLD", `no tool "x"`},
			[]string{"b", "c"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := NewTools(tt.one)
			r := p.Parse(tt.reply, 1)
			if (tt.wrong == "") != (r.Problem == "") || !strings.Contains(r.Problem, tt.wrong) {
				t.Fatalf("wrong is %q, want %q", r.Problem, tt.wrong)
			}
			if r.Problem == "" {
				return
			}
			answers := ErrorMessages(p, r, "TOLD")
			if calls := len(tt.reply.Message.ToolCalls); len(answers) != max(1, calls) {
				t.Fatalf("%d answers to %d calls", len(answers), calls)
			}
			for i := range tt.answers {
				role := model.Tool
				if tt.ids[i] == "" {
					role = model.User
				}
				if a := answers[i]; !strings.Contains(a.Content, tt.answers[i]) || a.ToolCallID != tt.ids[i] || a.Role != role {
					t.Errorf("answer %d is %+v, want %q to %q", i, a, tt.answers[i], tt.ids[i])
				}
			}
		})
	}
}

// Servers reject some of what models write.
func TestSanitizeCalls(t *testing.T) {
	ls := `{"command":"ls"}`
	given := []model.ToolCall{
		arg("", ls),
		arg("x", ls),
		arg("x", ls),
		arg("call_7_2", ls),
		arg("call_7_5", ls),
		arg("", ls),
		arg(strings.Repeat("i", 300), ls),
		arg("new\nline", ls),
		{ID: "n1", Name: "bash<|channel|>json", Arguments: ls},
		{ID: "n2", Name: "", Arguments: ls},
		{ID: "n3", Name: strings.Repeat("é", 100), Arguments: ls},
		{ID: "n4", Name: strings.Repeat("n", 100), Arguments: ls},
		{ID: "a1", Name: "bash", Arguments: "rm \xff"},
		{ID: "a2", Name: "bash", Arguments: `[1]`},
		{ID: "a3", Name: "bash", Arguments: ``},
		{ID: "a4", Name: "bash", Arguments: ` {"x": 1} `},
	}
	want := []model.ToolCall{
		arg("call_7_1", ls), arg("x", ls), arg("call_7_3", ls), arg("call_7_2", ls), arg("call_7_5", ls),
		arg("call_7_6", ls), arg("call_7_7", ls), arg("call_7_8", ls),
		{ID: "n1", Name: "bash_channel_json", Arguments: ls},
		{ID: "n2", Name: "unknown", Arguments: ls},
		{ID: "n3", Name: "unknown", Arguments: ls},
		{ID: "n4", Name: strings.Repeat("n", 64), Arguments: ls},
		arg("a1", `{"not_json":"rm `+"\ufffd"+`"}`), arg("a2", `{"not_json":"[1]"}`), arg("a3", `{"not_json":""}`), arg("a4", ` {"x": 1} `),
	}
	before := fmt.Sprintf("%q", given)
	got := NewTools(false).Parse(replyWithCalls(model.FinishToolCalls, given...), 7)
	assert.Equal(t, want, got.Message.ToolCalls, "got.Message.ToolCalls")
	assert.Equal(t, before, fmt.Sprintf("%q", given), "the reply itself was changed")
	for i, a := range got.Actions {
		assert.Equal(t, want[i].ID, a.CallID, "action %d answers", i)
	}
}

func TestToolSchema(t *testing.T) {
	for _, d := range NewTools(false).Tools() {
		if !json.Valid(d.Parameters) || d.Name != ToolName {
			t.Errorf("%s: %s", d.Name, d.Parameters)
		}
	}
}

// For any arguments: a call has one answer, servers accept the history, and a
// lenient JSON parser finds the same command.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{
		`{"command":"ls"}`, `{"command":"a\u0000"}`, `{"command":1}`, `{"command":"a","command":"b"}`, `{`, "", `"x"`,
		`{"command":"\ud83d"}`, "{\"command\":\"\xff\"}", `{"command":"a"} x`, `{"x":{"command":"a"},"command":"b"}`,
	} {
		f.Add("bash", "id", s)
	}
	f.Fuzz(func(t *testing.T, name, id, arguments string) {
		p := NewTools(false)
		c := model.ToolCall{ID: id, Name: name, Arguments: arguments}
		r := p.Parse(replyWithCalls(model.FinishToolCalls, c, c), 2)
		if len(r.Actions) != 2 || r.Actions[0].CallID == r.Actions[1].CallID {
			t.Fatalf("actions %+v", r.Actions)
		}
		for i, c := range r.Message.ToolCalls {
			if c.ID != r.Actions[i].CallID || !validID.MatchString(c.ID) || !validName.MatchString(c.Name) || !isObject(c.Arguments) {
				t.Errorf("call %d cannot be sent: %q", i, c)
			}
		}
		if r.Problem != "" {
			if answers := ErrorMessages(p, r, "told"); len(answers) != 2 || !utf8.ValidString(r.Problem) {
				t.Errorf("answers %q, wrong %q", answers, r.Problem)
			}
			return
		}
		var lenient struct{ Command string }
		if err := json.Unmarshal([]byte(arguments), &lenient); err != nil || lenient.Command != r.Actions[0].Command {
			t.Errorf("%q gives %q, and to others %q, %v", arguments, r.Actions[0].Command, lenient.Command, err)
		}
	})
}
