package trajectories_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/minibench/mini/trajectories"
)

// writeParent writes a journal with three messages and an outcome.
func writeParent(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "parent.jsonl")
	j, err := trajectories.Create(path, trajectories.Header{InstanceID: "x", Attempt: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, cause := range []trajectories.Cause{trajectories.CausePrompt, trajectories.CauseReply, trajectories.CauseObservation} {
		if _, err := j.Append(trajectories.TypeMessage, trajectories.Message{Cause: cause}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := j.Append(trajectories.TypeOutcome, trajectories.Outcome{Class: trajectories.Limit}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// fork writes a fork of a journal.
func fork(t *testing.T, path string, h trajectories.Header, from string) (*trajectories.Journal, error) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	return trajectories.NewFork(f, h, trajectories.Read(from))
}

func TestFork(t *testing.T) {
	from := writeParent(t)
	path := filepath.Join(t.TempDir(), "fork.jsonl")
	h := trajectories.Header{InstanceID: "x", Attempt: 2, Origin: &trajectories.Origin{SHA256: "ab", Record: 4, Step: 1}}
	j, err := fork(t, path, h, from)
	if err != nil {
		t.Fatal(err)
	}
	added, err := j.Append(trajectories.TypeMessage, trajectories.Message{Cause: trajectories.CauseReply})
	if err != nil || added.ID != 5 || added.Parent != 4 {
		t.Fatalf("%v, record %d after %d", err, added.ID, added.Parent)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	old, forked := lines(t, from), lines(t, path)
	if len(forked) != 5 || !slices.Equal(old[1:4], forked[1:4]) {
		t.Errorf("the history is not repeated as it is:\n%q\n%q", old, forked)
	}
	for r, err := range trajectories.Read(path) {
		if err != nil {
			t.Fatal(err)
		}
		if r.ID == 1 {
			if h, err = trajectories.DecodeHeader(r); err != nil || h.Attempt != 2 || h.Origin == nil || h.Origin.SHA256 != "ab" {
				t.Errorf("%v, header %+v", err, h)
			}
		}
		if h.IsInherited(r.ID) != (r.ID <= 4) {
			t.Errorf("record %d: inherited %t", r.ID, h.IsInherited(r.ID))
		}
	}
}

func TestForkFails(t *testing.T) {
	from := writeParent(t)
	for name, h := range map[string]trajectories.Header{
		"no origin":           {},
		"a record beyond all": {Origin: &trajectories.Origin{Record: 9}},
	} {
		if _, err := fork(t, filepath.Join(t.TempDir(), "fork.jsonl"), h, from); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func lines(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

// TestTrajOfUnfinishedFork checks that the .traj.json of a fork without an outcome does not
// include the cost of the original attempt.
func TestTrajOfUnfinishedFork(t *testing.T) {
	dir := t.TempDir()
	writeJournal := func(name string, h trajectories.Header, original string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		var j *trajectories.Journal
		var err error
		if original == "" {
			j, err = trajectories.Create(path, h)
		} else {
			j, err = fork(t, path, h, original)
		}
		if err != nil {
			t.Fatal(err)
		}
		add(t, j, trajectories.TypeCall, trajectories.Call{Cost: 2})
		add(t, j, trajectories.TypeMessage, trajectories.Message{Cause: trajectories.CauseReply})
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		return path
	}
	first := writeJournal("parent", trajectories.Header{InstanceID: "x"}, "")
	branch := writeJournal("branch",
		trajectories.Header{InstanceID: "x", Origin: &trajectories.Origin{Record: 3, Step: 1}}, first)
	if err := trajectories.WriteTrajFile(branch, branch+".traj.json"); err != nil {
		t.Fatal(err)
	}
	data := string(mustRead(t, branch+".traj.json"))
	if !strings.Contains(data, `"instance_cost":2,"api_calls":2`) {
		t.Errorf("two calls, one of them paid for: %.200s", data)
	}
}
