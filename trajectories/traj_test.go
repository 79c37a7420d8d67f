package trajectories_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/corpustest"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

func TestTrajFields(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.traj.json")
	require.NoError(t, trajectories.WriteTrajFile(writeSample(t), path))
	// The test checks only that there are timestamps.
	text := regexp.MustCompile(`"timestamp":1[0-9]{9}\.?[0-9]*`).ReplaceAllString(string(mustRead(t, path)), `"timestamp":"now"`)
	var got map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &got))
	type object = map[string]any
	want := object{
		"trajectory_format": "mini-swe-agent-1.1",
		"instance_id":       "demo__a-1",
		"info": object{
			"model_stats": object{"instance_cost": 0.75, "api_calls": 2.0},
			"config": object{
				"agent": object{"step_limit": 250.0}, "agent_type": "mini",
				"model": object{"model_name": "m"}, "model_type": "scripted",
				"environment": object{"cwd": "/testbed"}, "environment_type": "docker",
			},
			"mini_version": "0.1.0", "exit_status": "Submitted", "submission": "diff --git a/x b/x\n",
		},
		"messages": []any{
			object{"role": "system", "content": "You fix <software> & more."},
			object{"role": "user", "content": "Fix it."},
			object{"role": "assistant", "content": "no block", "extra": object{
				"actions": []any{}, "cost": 0.25, "timestamp": "now",
				"response": object{"usage": object{"prompt_tokens": 10.0, "completion_tokens": 5.0, "total_tokens": 15.0}},
			}},
			object{"role": "user", "content": "write one block", "extra": object{
				"interrupt_type": "FormatError", "n_actions": 0.0, "model_response": "no block",
			}},
			object{"role": "assistant", "content": "```bash\ncat data\n```", "extra": object{
				"actions": []any{object{"command": "cat data"}}, "cost": 0.5, "timestamp": "now",
			}},
			object{"role": "user", "content": "<returncode>3</returncode>", "extra": object{
				"raw_output": "caf\ufffd <b>\r\n\x00", "returncode": 3.0, "timestamp": "now", "exception_info": "",
			}},
			object{"role": "exit", "content": "diff --git a/x b/x\n", "extra": object{
				"exit_status": "Submitted", "submission": "diff --git a/x b/x\n",
			}},
		},
	}
	assert.Equal(t, want, got, "the result")
}

func TestTrajWriteFailure(t *testing.T) {
	dir := t.TempDir()
	journal, path := filepath.Join(dir, "j"), filepath.Join(dir, "t")
	whole := string(mustRead(t, writeSample(t)))
	broken := strings.Replace(whole, `"cause":"observation"`, `"cause":{}`, 1)
	for name, content := range map[string]string{journal: broken, path: "old"} {
		require.NoError(t, os.WriteFile(name, []byte(content), 0o600))
	}
	err := trajectories.WriteTrajFile(journal, path)
	assert.ErrorContains(t, err, "record 10")
	assert.Equal(t, "old", string(mustRead(t, path)), "the old file became")
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("%d files left, want 2; %v", len(entries), err)
	}
}

func TestTrajTruncatedOutput(t *testing.T) {
	dir := t.TempDir()
	j, err := trajectories.Create(filepath.Join(dir, "j"), trajectories.Header{})
	require.NoError(t, err)
	add(t, j, trajectories.TypeExecution, trajectories.Execution{
		Output: trajectories.Bytes("headtail"), Head: 4, Truncated: true, Bytes: 1008,
	})
	add(t, j, trajectories.TypeMessage, trajectories.Message{
		Message: model.Message{Role: model.User, Content: "o"}, Cause: trajectories.CauseObservation,
	})
	require.NoError(t, j.Close())
	require.NoError(t, trajectories.WriteTrajFile(filepath.Join(dir, "j"), filepath.Join(dir, "t")))
	got, err := loadTraj(filepath.Join(dir, "t"))
	require.NoError(t, err)
	assert.NoDiff(t, cmp.Diff("head\n[1000 bytes were not kept]\ntail", got.Messages[0].Extra.RawOutput))
}

// TestTrajResponses checks that the file has the provider's responses only if the
// configuration requests them.
func TestTrajResponses(t *testing.T) {
	const response = `{"id":"chatcmpl-1","usage":{}}`
	for config, want := range map[string]bool{
		`{"run":{"traj_response":true}}`:  true,
		`{"run":{"traj_response":false}}`: false,
		`{"run":{}}`:                      false,
		``:                                false,
	} {
		dir := t.TempDir()
		journal, path := filepath.Join(dir, "journal.jsonl"), filepath.Join(dir, "a.traj.json")
		j, err := trajectories.Create(journal, trajectories.Header{InstanceID: "a", Config: json.RawMessage(config)})
		require.NoError(t, err)
		add(t, j, trajectories.TypeCall, trajectories.Call{Raw: json.RawMessage(response)})
		add(t, j, trajectories.TypeMessage, trajectories.Message{Message: model.Message{Role: model.Assistant, Content: "x"}, Cause: trajectories.CauseReply})
		require.NoError(t, errors.Join(j.Close(), trajectories.WriteTrajFile(journal, path)))
		assert.Equal(t, want, strings.Contains(string(mustRead(t, path)), `"response":`+response), "%s: there is a response", config)
		assert.Contains(t, string(mustRead(t, journal)), response, "%s: the journal lacks the response", config)
	}
}

// TestTrajOfImport checks that data that is missing in an imported file stays missing, and
// that a rejection does not quote an earlier reply.
func TestTrajOfImport(t *testing.T) {
	dir := t.TempDir()
	j, err := trajectories.Create(filepath.Join(dir, "j"), trajectories.Header{InstanceID: "a", ModelName: "maker/small"})
	require.NoError(t, err)
	add(t, j, trajectories.TypeImport, trajectories.Import{Format: "swe-agent", Agent: "SWE-agent", AgentVersion: "1.1"})
	add(t, j, trajectories.TypeCall, trajectories.Call{Usage: model.Usage{Prompt: 7, Completion: 2, Unpriced: 1}, Model: "small-1"})
	reply := trajectories.Message{
		Message: model.Message{Role: model.Assistant, Content: "look"}, Cause: trajectories.CauseReply, Actions: []string{"ls"},
	}
	add(t, j, trajectories.TypeMessage, reply)
	add(t, j, trajectories.TypeExecution, trajectories.Execution{Command: "ls", Output: trajectories.Bytes("a"), ExitCodeUnknown: true})
	add(t, j, trajectories.TypeMessage, trajectories.Message{
		Message: model.Message{Role: model.User, Content: "a"}, Cause: trajectories.CauseObservation,
	})
	add(t, j, trajectories.TypeMessage, trajectories.Message{
		Message: model.Message{Role: model.User, Content: "no"}, Cause: trajectories.CauseFormatError,
	})
	add(t, j, trajectories.TypeMessage, reply)
	add(t, j, trajectories.TypeExecution, trajectories.Execution{Command: "ls", Output: trajectories.Bytes("last"), ExitCode: 3})
	add(t, j, trajectories.TypeOutcome, trajectories.Outcome{
		Class: trajectories.Internal, ExitStatus: "exit_error", PartialPatch: trajectories.Bytes("diff"),
	})
	require.NoError(t, j.Close())
	require.NoError(t, trajectories.WriteTrajFile(filepath.Join(dir, "j"), filepath.Join(dir, "t")))
	text := regexp.MustCompile(`"timestamp":-?[0-9]+\.?[0-9]*`).ReplaceAllString(string(mustRead(t, filepath.Join(dir, "t"))), `"timestamp":0`)
	for _, want := range []string{
		`"agent_type":"SWE-agent"`, `"model":{"model_name":"maker/small"}`, `"partial_patch":"diff"`,
		`"extra":{"actions":[{"command":"ls"}],"response":{"model":"small-1","usage":{"completion_tokens":2,"prompt_tokens":7,"total_tokens":9}},"model":"small-1","cost":null,"timestamp":0}`,
		`"extra":{"raw_output":"a","returncode":null,"timestamp":0,"exception_info":""}`,
		`"extra":{"interrupt_type":"FormatError","timestamp":0}`,
		`"exit_status":"exit_error","submission":"","raw_output":"last","returncode":3,`,
	} {
		assert.Contains(t, text, want)
	}
}

// realFiles returns public trajectories, which are not part of the repository.
func realFiles(t *testing.T, patterns ...string) []string {
	t.Helper()
	return corpustest.Glob(t, corpustest.RealData(t, "trajectories"), patterns...)
}

// trajFile is the part of a .traj.json that tests check.
type trajFile struct {
	Info struct {
		ExitStatus string `json:"exit_status"`
		Stats      struct {
			Cost  float64 `json:"instance_cost"`
			Calls int     `json:"api_calls"`
		} `json:"model_stats"`
	} `json:"info"`
	Messages []struct {
		Content string `json:"content"`
		Extra   struct {
			RawOutput string `json:"raw_output"`
		} `json:"extra"`
	} `json:"messages"`
}

func loadTraj(path string) (file trajFile, err error) {
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &file)
	}
	return file, err
}

// writeToolJournal writes a journal with tool requests.
func writeToolJournal(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	j, err := trajectories.Create(path, trajectories.Header{InstanceID: "a"})
	require.NoError(t, err)
	addTool := func(name string, args ...string) {
		add(t, j, trajectories.TypeTool, trajectories.ToolCall{Name: name, Args: args, Output: trajectories.Bytes(name + "\xff"), Details: json.RawMessage(`{"n":1}`)})
	}
	addExecution := func(command string, byUser bool) {
		add(t, j, trajectories.TypeExecution, trajectories.Execution{Command: command, ByUser: byUser})
	}
	addMessage := func(role model.Role, c trajectories.Cause, actions ...string) {
		add(t, j, trajectories.TypeMessage, trajectories.Message{Message: model.Message{Role: role}, Cause: c, Actions: actions})
	}
	addTool("setup")
	addExecution("mini-tool setup", false)
	addMessage(model.Assistant, trajectories.CauseReply, "one", "two")
	addTool("note", "add", "x")
	addTool("notes")
	addExecution("one", false)
	addMessage(model.User, trajectories.CauseObservation)
	addExecution("two", false)
	addMessage(model.User, trajectories.CauseObservation)
	addMessage(model.Assistant, trajectories.CauseReply, "three")
	addTool("lost") // interrupted
	add(t, j, trajectories.TypeResume, trajectories.Resume{Record: 11})
	addTool("found")
	addExecution("three", false)
	addMessage(model.User, trajectories.CauseObservation)
	addTool("own")
	addExecution("! mini-tool own", true)
	addMessage(model.User, trajectories.CauseUserCommand, "mini-tool own")
	addTool("last")
	require.NoError(t, j.Close())
	return path
}

// toolsByCommand returns a line per command with its requests, and a line per other record.
func toolsByCommand(tr *trajectories.Attempt) string {
	var all []string
	describe := func(executions []trajectories.Execution) {
		for _, r := range executions {
			line := r.Command + ":"
			for _, c := range r.ToolCalls {
				line += " " + strings.Join(append([]string{c.Name}, c.Args...), ",")
			}
			all = append(all, line)
		}
	}
	describe(tr.SetupExecutions)
	for _, e := range tr.Entries {
		describe(e.Executions)
	}
	for _, r := range tr.Notes {
		all = append(all, "other: "+string(r.Type))
	}
	return strings.Join(all, "\n")
}

func TestToolCalls(t *testing.T) {
	tr, err := trajectories.Fold(trajectories.Read(writeToolJournal(t)))
	require.NoError(t, err)
	commands := "mini-tool setup: setup\none: note,add,x notes\ntwo:\nthree: found\n! mini-tool own: own\nother: tool\nother: resume\nother: tool"
	assert.NoDiff(t, cmp.Diff(commands, toolsByCommand(tr)), "(-want +got)")
	again, err := trajectories.Fold(tr.Records())
	require.NoError(t, err)
	assert.Equal(t, commands, toolsByCommand(again), "made again")
	same := cmpopts.EquateEmpty()
	assert.NoDiff(t, cmp.Diff(tr.Entries[0].Executions, again.Entries[0].Executions, same), "made again (-want +got)")
}

// TestTrajTools checks that requests are in the extra of the observation only.
func TestTrajTools(t *testing.T) {
	journal := writeToolJournal(t)
	file := filepath.Join(t.TempDir(), "t")
	require.NoError(t, trajectories.WriteTrajFile(journal, file))
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	var traj struct {
		Messages []struct {
			Extra struct {
				Tools []trajectories.ToolCall `json:"tools"`
			} `json:"extra"`
		} `json:"messages"`
	}
	require.NoError(t, json.Unmarshal(data, &traj))
	var got []string
	for _, m := range traj.Messages {
		line := ""
		for _, c := range m.Extra.Tools {
			line += " " + c.Name
		}
		got = append(got, line)
	}
	assert.Equal(t, []string{"", " note notes", "", "", " found", " own"}, got, "the result")
	_, err = loadTraj(file)
	assert.NoError(t, err)
}
