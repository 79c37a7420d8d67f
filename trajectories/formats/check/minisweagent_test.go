package check_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/trajectories/formats/check"
)

// v2 is a valid file of mini-swe-agent 2.
const v2 = `{"info":{"model_stats":{"instance_cost":0.5,"api_calls":1},"config":{"agent":{},"agent_type":"t","model":{},"model_type":"m","environment":{},"environment_type":"e"},"mini_version":"2.0","exit_status":"Submitted","submission":"d"},
"messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"u"}]},
{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"bash","arguments":"{}"}}],"extra":{"actions":[{"command":"ls","tool_call_id":"c1"}],"cost":0.5,"timestamp":1.5}},
{"role":"tool","content":"x","tool_call_id":"c1","extra":{"raw_output":"x","returncode":0,"timestamp":2,"exception_info":""}},
{"role":"exit","content":"d","extra":{"exit_status":"Submitted","submission":"d"}}],
"trajectory_format":"mini-swe-agent-1.1","instance_id":"a"}`

func TestTraj(t *testing.T) {
	for name, c := range map[string]struct {
		old, new string
		want     []string
	}{
		"good":             {},
		"release 1":        {old: "mini-swe-agent-1.1", new: "mini-swe-agent-1"},
		"a total":          {old: `"instance_cost":0.5`, new: `"instance_cost":"0.5"`, want: []string{"info.model_stats.instance_cost: a number expected, got a string"}},
		"an unknown total": {old: `"instance_cost":0.5`, new: `"instance_cost":null`},
		"calls":            {old: `"api_calls":1`, new: `"api_calls":1.5`, want: []string{"info.model_stats.api_calls: a whole number expected, got 1.5"}},
		"no totals":        {old: `"model_stats":{"instance_cost":0.5,"api_calls":1},`, want: []string{"info.model_stats: required field is missing"}},
		"no info":          {old: `"info"`, new: `"infos"`, want: []string{"info: required field is missing", `info.exit_status: "", but the exit message has "Submitted"`}},
		"no format":        {old: `"trajectory_format"`, new: `"format"`, want: []string{"trajectory_format: required field is missing"}},
		"a role":           {old: `"role":"system"`, new: `"role":"critic"`, want: []string{`messages.0.role: one of system, user, assistant, tool, exit expected, got "critic"`}},
		"no role":          {old: `"role":"system",`, want: []string{"messages.0.role: required field is missing"}},
		"content":          {old: `"content":"s"`, new: `"content":7`, want: []string{"messages.0.content: a string or a list of parts expected, got a number"}},
		"a part":           {old: `"type":"text",`, want: []string{"messages.1.content.0.type: required field is missing"}},
		"another's call":   {old: `"tool_call_id":"c1","extra"`, new: `"tool_call_id":"c2","extra"`, want: []string{`messages.3.tool_call_id: "c2" is not a call of the last assistant message`}},
		"a command":        {old: `{"command":"ls",`, new: `{`, want: []string{"messages.2.extra.actions.0.command: required field is missing"}},
		"a return code":    {old: `"returncode":0`, new: `"returncode":"0"`, want: []string{"messages.3.extra.returncode: a whole number expected, got a string"}},
		"a status":         {old: `"mini_version":"2.0","exit_status":"Submitted"`, new: `"mini_version":"2.0","exit_status":"Limit"`, want: []string{`info.exit_status: "Limit", but the exit message has "Submitted"`}},
		"after the end":    {old: `"submission":"d"}}]`, new: `"submission":"d"}},{"role":"user","content":""}]`, want: []string{"messages.5: message after the message of the role exit, which must be the last"}},
		"no message":       {old: `{"role":"system","content":"s"}`, new: `"system"`, want: []string{"messages.0: an object expected, got a string"}},
		"no list":          {old: `"messages":[`, new: `"messages":{},"others":[`, want: []string{"messages: a list expected, got an object", "messages: at least one message required"}},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(v2, c.old, c.new, 1)
			if c.old != "" && text == v2 {
				t.Fatalf("%q is not in the file", c.old)
			}
			var got []string
			for _, p := range check.Read("a.traj.json", strings.NewReader(text), check.Options{}).Problems {
				got = append(got, p.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
