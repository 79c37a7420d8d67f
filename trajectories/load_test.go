package trajectories_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner/grade/corpustest"
	"github.com/minibench/mini/trajectories"
)

const toolCalls = `{"trajectory_format":"mini-swe-agent-1.1","instance_id":"x__y-1",
 "info":{"exit_status":"Submitted","submission":"p\n","mini_version":"2.2","model_stats":{"instance_cost":0.5,"api_calls":2},
   "config":{"model":{"model_name":"openai/m"}}},
 "messages":[
  {"role":"system","content":[{"type":"text","text":"a"},{"type":"image_url"},{"type":"text","text":"b"}]},
  {"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[
     {"function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}},{"function":{"arguments":{"command":"pwd"}}}],
   "extra":{"actions":[{"command":"other"}],"timestamp":1773603378.5}},
  {"role":"tool","tool_call_id":"1","content":"shown","extra":{"raw_output":"all","returncode":-1,"exception_info":"timed out"}},
  {"role":"tool","content":"hello"},
  {"role":"user","content":"one block please","extra":{"interrupt_type":"FormatError"}},
  {"role":"exit","content":"p\n","extra":{"exit_status":"Submitted","submission":"p\n"}}]}`

const textBased = "[" +
	`{"role":"assistant","content":"THOUGHT: x\n\n` + "```bash\\nls -la\\n```" + `","timestamp":1773603378.5},` +
	`{"role":"user","content":"<returncode>1</returncode>\n<output>\na </output> b\n</output>"},` +
	`{"role":"assistant","content":"` + "```bash\\na\\n```\\n```bash\\nb\\n```" + `"},` +
	`{"role":"user","content":"exactly one"},` +
	`{"role":"assistant","content":"` + "```mswea_bash_command\\nseq 9999\\n```" + `"},` +
	`{"role":"user","content":"<returncode>0</returncode>\n<warning>long</warning><output_head>\n1"}]`

func TestParse(t *testing.T) {
	tests := map[string]struct {
		data string
		want trajectories.Trajectory
	}{
		"release 2, tool calls": {toolCalls, trajectories.Trajectory{
			Format: trajectories.FormatV2, InstanceID: "x__y-1",
			Info: trajectories.Info{
				ExitStatus: "Submitted", Submission: "p\n", MiniVersion: "2.2", Model: "openai/m", Cost: 0.5, Calls: 2,
			},
			Turns: []trajectories.Turn{
				{Role: model.System, Content: "ab"},
				{Role: model.Assistant, Reasoning: "hm", Commands: []string{"ls", "pwd"}, Calls: []model.Call{
					{Name: "bash", Arguments: `{"command":"ls"}`}, {Arguments: `{"command":"pwd"}`},
				}},
				{Role: model.Tool, Content: "shown", CallID: "1", Result: &trajectories.Result{
					Output: "all", Complete: true, ExitCode: -1, Known: true, Exception: "timed out",
				}},
				{Role: model.Tool, Content: "hello", Result: &trajectories.Result{Output: "hello", Complete: true}},
				{Role: model.User, Content: "one block please", Interrupt: "FormatError"},
				{Role: "exit", Content: "p\n"},
			},
		}},
		"bare list, text": {textBased, trajectories.Trajectory{Turns: []trajectories.Turn{
			{Role: model.Assistant, Content: "THOUGHT: x\n\n```bash\nls -la\n```", Commands: []string{"ls -la"}},
			{Role: model.User, Content: "<returncode>1</returncode>\n<output>\na </output> b\n</output>", Result: &trajectories.Result{
				Output: "a </output> b\n", Complete: true, ExitCode: 1, Known: true,
			}},
			{Role: model.Assistant, Content: "```bash\na\n```\n```bash\nb\n```"},
			{Role: model.User, Content: "exactly one"},
			{Role: model.Assistant, Content: "```mswea_bash_command\nseq 9999\n```", Commands: []string{"seq 9999"}},
			{
				Role: model.User, Content: "<returncode>0</returncode>\n<warning>long</warning><output_head>\n1",
				Result: &trajectories.Result{Known: true},
			},
		}}},
		"messages only, byte order mark": {"\xef\xbb\xbf" + `{"messages":[{"role":"user","content":"hi"}]}`, trajectories.Trajectory{
			Turns: []trajectories.Turn{{Role: model.User, Content: "hi"}},
		}},
		"own action pattern": {
			`{"info":{"config":{"agent":{"action_regex":"<do>(.*?)</do>"}}},"messages":[{"role":"assistant","content":"<do>a\nb</do>"}]}`,
			trajectories.Trajectory{Turns: []trajectories.Turn{
				{Role: model.Assistant, Content: "<do>a\nb</do>", Commands: []string{"a\nb"}},
			}},
		},
		"calls that hold no command": {
			`[{"role":"assistant","content":null,"tool_calls":[{"id":"a","function":{"name":"bash","arguments":"ls"}},` +
				`{"id":"b","function":{"name":"bash","arguments":{"cmd":1}}}],"extra":{"actions":[]}},` +
				`{"role":"tool","tool_call_id":"a","content":"no","extra":{"interrupt_type":"FormatError"}}]`,
			trajectories.Trajectory{Turns: []trajectories.Turn{
				{Role: model.Assistant, Calls: []model.Call{
					{ID: "a", Name: "bash", Arguments: "ls"}, {ID: "b", Name: "bash", Arguments: `{"cmd":1}`},
				}},
				{Role: model.Tool, Content: "no", CallID: "a", Interrupt: "FormatError"},
			}},
		},
		"Responses API": {
			`[{"object":"response","output":[{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]},` +
				`{"type":"message","content":[{"type":"output_text","text":"Look."}]},` +
				`{"type":"function_call","call_id":"c1","name":"bash","arguments":"{\"command\":\"ls\"}"}],"extra":{"actions":[{"command":"ls","tool_call_id":"c1"}]}},` +
				`{"type":"function_call_output","call_id":"c1","output":"shown","extra":{"raw_output":"all","returncode":3}}]`,
			trajectories.Trajectory{Turns: []trajectories.Turn{
				{Role: model.Assistant, Content: "Look.", Reasoning: "hm", Commands: []string{"ls"}, Calls: []model.Call{
					{ID: "c1", Name: "bash", Arguments: `{"command":"ls"}`},
				}},
				{Role: model.Tool, Content: "shown", CallID: "c1", Result: &trajectories.Result{Output: "all", Complete: true, ExitCode: 3, Known: true}},
			}},
		},
		"actions say which calls are commands": {
			`[{"role":"assistant","content":null,"tool_calls":[{"id":"a","function":{"name":"editor","arguments":"{\"command\":\"view\"}"}},` +
				`{"id":"b","function":{"name":"find","arguments":"{}"}}],"extra":{"actions":[{"command":"find x","tool_call_id":"b"}]}},` +
				`{"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"editor","arguments":"{\"command\":\"view\"}"}}],"extra":{"actions":[]}}]`,
			trajectories.Trajectory{Turns: []trajectories.Turn{
				{Role: model.Assistant, Commands: []string{"find x"}, Calls: []model.Call{
					{ID: "a", Name: "editor", Arguments: `{"command":"view"}`}, {ID: "b", Name: "find", Arguments: "{}"},
				}},
				{Role: model.Assistant, Calls: []model.Call{{ID: "c", Name: "editor", Arguments: `{"command":"view"}`}}},
			}},
		},
		"no messages yet": {`{"messages":[]}`, trajectories.Trajectory{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := trajectories.Parse("f", []byte(test.data))
			if err != nil {
				t.Fatal(err)
			}
			for i, turn := range got.Turns {
				if !json.Valid(turn.Raw) {
					t.Errorf("turn %d has no raw form", i)
				}
			}
			ignore := cmp.Options{
				cmpopts.IgnoreFields(trajectories.Turn{}, "Raw", "Time"), cmpopts.IgnoreFields(trajectories.Info{}, "Raw"),
			}
			if diff := cmp.Diff(test.want, *got, ignore); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseSaysWhatIsWrong(t *testing.T) {
	tests := map[string]struct{ data, want string }{
		"empty":         {"", "unexpected end"},
		"not JSON":      {"hello", "invalid character"},
		"cut":           {toolCalls[:200], "unexpected end"},
		"other object":  {`{"history":[],"trajectory":[]}`, "there are no messages"},
		"null messages": {`{"messages":null}`, "there are no messages"},
		"other format":  {`{"trajectory_format":"x-3","messages":[]}`, `trajectory_format "x-3" is not known`},
		"no role":       {`[{"role":"user"},{"content":"x"}]`, "messages[1]: role is missing"},
		"wrong content": {`[{"role":"user","content":{"a":1}}]`, "messages[0].content: "},
		"empty action":  {`[{"role":"assistant","extra":{"actions":[{}]}}]`, "messages[0].extra.actions[0]: command is missing"},
		"wrong info":    {`{"info":{"exit_status":7},"messages":[]}`, "info: "},
		"too deep":      {strings.Repeat("[", 1e6), "exceeded max depth"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := trajectories.Parse("some.traj.json", []byte(test.data))
			if err == nil || !strings.HasPrefix(err.Error(), "load trajectory some.traj.json: ") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want the file and %q", err, test.want)
			}
		})
	}
}

// realFiles finds the collection of public trajectories beside the repository.
func realFiles(t *testing.T, patterns ...string) []string {
	t.Helper()
	return corpustest.Files(t, corpustest.Beside(t, "trajectories"), patterns...)
}

func TestLoadRealFiles(t *testing.T) {
	for _, path := range realFiles(t, "mini-swe-agent-v1/*", "mini-swe-agent-v2/*", "atif/mini-swe-agent/*native*") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			got, err := load(path)
			if err != nil {
				t.Fatal(err)
			}
			commands, results := 0, 0
			for _, turn := range got.Turns {
				commands += len(turn.Commands)
				if turn.Result != nil {
					results++
				}
			}
			// Some public files come from agents with an action language of
			// their own: observations, and no command that anyone else can tell.
			if results == 0 || results < commands-2 {
				t.Errorf("%d commands, %d results", commands, results)
			}
			if got.Info.ExitStatus == "" || got.Info.Model == "" || got.Format == "" {
				t.Errorf("info is incomplete: %q %q %q", got.Info.ExitStatus, got.Info.Model, got.Format)
			}
			t.Logf("%d turns, %d commands, %d results", len(got.Turns), commands, results)
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(toolCalls))
	f.Add([]byte(textBased))
	f.Add([]byte(`{"messages":[{"role":"exit"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := trajectories.Parse("fuzz", data)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "load trajectory fuzz: ") {
				t.Errorf("error does not name the file: %v", err)
			}
			return
		}
		for i, turn := range got.Turns {
			if turn.Role == "" || !json.Valid(turn.Raw) {
				t.Errorf("turn %d: role %q, raw %q", i, turn.Role, turn.Raw)
			}
		}
	})
}

// load parses a file.
func load(path string) (*trajectories.Trajectory, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return trajectories.Parse(path, data)
}
