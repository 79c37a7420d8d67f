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

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

func TestTrajFields(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.traj.json")
	if err := trajectories.WriteTrajFile(writeSample(t), path); err != nil {
		t.Fatal(err)
	}
	// The test checks only that there are timestamps.
	text := regexp.MustCompile(`"timestamp":1[0-9]{9}\.?[0-9]*`).ReplaceAllString(string(mustRead(t, path)), `"timestamp":"now"`)
	var got map[string]any
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
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
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTrajWriteFailure(t *testing.T) {
	dir := t.TempDir()
	journal, path := filepath.Join(dir, "j"), filepath.Join(dir, "t")
	whole := string(mustRead(t, writeSample(t)))
	broken := strings.Replace(whole, `"cause":"observation"`, `"cause":{}`, 1)
	for name, content := range map[string]string{journal: broken, path: "old"} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	err := trajectories.WriteTrajFile(journal, path)
	if err == nil || !strings.Contains(err.Error(), "record 10") {
		t.Errorf("error %v, want one that names record 10", err)
	}
	if got := string(mustRead(t, path)); got != "old" {
		t.Errorf("the old file became %q", got)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("%d files left, want 2; %v", len(entries), err)
	}
}

func TestTrajTruncatedOutput(t *testing.T) {
	dir := t.TempDir()
	j, err := trajectories.Create(filepath.Join(dir, "j"), trajectories.Header{})
	if err != nil {
		t.Fatal(err)
	}
	add(t, j, trajectories.TypeExecution, trajectories.Execution{
		Output: trajectories.Bytes("headtail"), Head: 4, Truncated: true, Bytes: 1008,
	})
	add(t, j, trajectories.TypeMessage, trajectories.Message{
		Message: model.Message{Role: model.User, Content: "o"}, Cause: trajectories.CauseObservation,
	})
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := trajectories.WriteTrajFile(filepath.Join(dir, "j"), filepath.Join(dir, "t")); err != nil {
		t.Fatal(err)
	}
	got, err := loadTraj(filepath.Join(dir, "t"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("head\n[1000 bytes were not kept]\ntail", got.Messages[0].Extra.RawOutput); diff != "" {
		t.Error(diff)
	}
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
		if err != nil {
			t.Fatal(err)
		}
		add(t, j, trajectories.TypeCall, trajectories.Call{Raw: json.RawMessage(response)})
		add(t, j, trajectories.TypeMessage, trajectories.Message{Message: model.Message{Role: model.Assistant, Content: "x"}, Cause: trajectories.CauseReply})
		if err := errors.Join(j.Close(), trajectories.WriteTrajFile(journal, path)); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(mustRead(t, path)), `"response":`+response); got != want {
			t.Errorf("%s: there is a response: %t", config, got)
		}
		if !strings.Contains(string(mustRead(t, journal)), response) {
			t.Errorf("%s: the journal lacks the response", config)
		}
	}
}

// TestTrajOfImport checks that data that is missing in an imported file stays missing, and
// that a rejection does not quote an earlier reply.
func TestTrajOfImport(t *testing.T) {
	dir := t.TempDir()
	j, err := trajectories.Create(filepath.Join(dir, "j"), trajectories.Header{InstanceID: "a", ModelName: "maker/small"})
	if err != nil {
		t.Fatal(err)
	}
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
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := trajectories.WriteTrajFile(filepath.Join(dir, "j"), filepath.Join(dir, "t")); err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`"timestamp":-?[0-9]+\.?[0-9]*`).ReplaceAllString(string(mustRead(t, filepath.Join(dir, "t"))), `"timestamp":0`)
	for _, want := range []string{
		`"agent_type":"SWE-agent"`, `"model":{"model_name":"maker/small"}`, `"partial_patch":"diff"`,
		`"extra":{"actions":[{"command":"ls"}],"response":{"model":"small-1","usage":{"completion_tokens":2,"prompt_tokens":7,"total_tokens":9}},"model":"small-1","cost":null,"timestamp":0}`,
		`"extra":{"raw_output":"a","returncode":null,"timestamp":0,"exception_info":""}`,
		`"extra":{"interrupt_type":"FormatError","timestamp":0}`,
		`"exit_status":"exit_error","submission":"","raw_output":"last","returncode":3,`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
}
