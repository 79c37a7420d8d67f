package scripts_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/corpustest"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/scripted"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/scripts"
)

// replies returns the replies of a script for any instance.
func replies(t *testing.T, s *scripted.Script) (all []model.Message) {
	t.Helper()
	m, err := s.For("any")
	require.NoError(t, err)
	for {
		r, err := m.Query(t.Context(), nil)
		if e, ok := errors.AsType[*model.Error](err); ok && e.Status == model.ScriptExhausted {
			return all
		}
		require.NoError(t, err)
		r.Message.Role = ""
		all = append(all, r.Message)
	}
}

func TestRecordedAttempt(t *testing.T) {
	s, err := scripts.Parse("t.traj.json", []byte(`{"trajectory_format":"mini-swe-agent-1.1","messages":[
		{"role":"assistant","content":null,"tool_calls":[{"id":"1","function":{"arguments":"{\"command\":\"ls\\npwd\"}"}}]},
		{"role":"tool","tool_call_id":"1","content":"x"},
		{"role":"assistant","content":"two","tool_calls":[{"function":{"name":"bash","arguments":{"command":"a","timeout":3}}},{"function":{"arguments":{"command":"b"}}}]},
		{"role":"assistant","content":"refused","tool_calls":[{"id":"2","function":{"name":"bash","arguments":"{\"command\":\"c\",\"n\":1}"}}]},
		{"role":"tool","tool_call_id":"2","content":"no","extra":{"interrupt_type":"FormatError"}},
		{"role":"assistant","content":"no call at all"},
		{"role":"exit","content":"x"}]}`))
	require.NoError(t, err)
	call := func(id, command string) model.ToolCall {
		c := scripted.BashCall(command)
		c.ID = id
		return c
	}
	want := []model.Message{
		{ToolCalls: []model.ToolCall{call("1", "ls\npwd")}},
		{Content: "two", ToolCalls: []model.ToolCall{call("", "a"), call("", "b")}},
		{Content: "refused", ToolCalls: []model.ToolCall{{ID: "2", Name: "bash", Arguments: `{"command":"c","n":1}`}}},
		{Content: "no call at all"},
	}
	assert.NoDiff(t, cmp.Diff(want, replies(t, s)))
}

func TestBareMessages(t *testing.T) {
	s, err := scripts.Parse("t.json", []byte(`[{"role":"user","content":"x"},{"role":"assistant","content":"one"}]`))
	require.NoError(t, err)
	assert.NoDiff(t, cmp.Diff([]model.Message{{Content: "one"}}, replies(t, s)))
}

func TestMistakes(t *testing.T) {
	for name, test := range map[string]struct{ name, data, want string }{
		"trajectory, none":     {"t.json", `{"messages":[{"role":"user","content":"x"}]}`, "t.json: the recorded attempt has no replies"},
		"trajectory, bad":      {"t.json", `{"messages":[{"role":"assistant","content":3}]}`, "t.json: messages[0].content"},
		"journal, not":         {"j.jsonl", "{}\n", "j.jsonl:1: not a record"},
		"journal, nothing yet": {"j.jsonl", "", "j.jsonl: the recorded attempt has no replies"},
		"script in JSON":       {"r.json", "[\n\"x\",\n", "r.json:2: unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := scripts.Parse(test.name, []byte(test.data))
			assert.ErrorContains(t, err, test.want)
		})
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	if _, err := scripts.Load(filepath.Join(dir, "none.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	path := filepath.Join(dir, "journal.jsonl")
	j, err := trajectories.Create(path, trajectories.Header{InstanceID: "a"})
	require.NoError(t, err)
	for _, m := range []model.Message{{Role: model.User, Content: "q"}, {Role: model.Assistant, Content: "one <b>"}} {
		_, err := j.Append(trajectories.TypeMessage, trajectories.Message{Message: m})
		require.NoError(t, err)
	}
	require.NoError(t, j.Close())
	s, err := scripts.Load(path)
	require.NoError(t, err)
	assert.NoDiff(t, cmp.Diff([]string{"one <b>"}, []string{replies(t, s)[0].Content}))
}

func TestRealTrajectories(t *testing.T) {
	for _, path := range corpustest.Glob(t, corpustest.RealData(t, "trajectories"), "mini-swe-agent-v*/*") {
		s, err := scripts.Load(path)
		if err != nil {
			t.Error(err)
			continue
		}
		want := strings.Count(readRoles(t, path), "assistant")
		assert.Equal(t, want, len(replies(t, s)), "%s: replies", path)
	}
}

// readRoles returns the roles of the messages in a file, separated by spaces.
func readRoles(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	var file struct{ Messages []struct{ Role string } }
	require.NoError(t, json.Unmarshal(data, &file))
	var roles []string
	for _, m := range file.Messages {
		roles = append(roles, m.Role)
	}
	return strings.Join(roles, " ")
}
