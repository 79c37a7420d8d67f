package trajectories_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// writeResumed writes the journal of an attempt that was interrupted and resumed twice. The
// records 1-5, 9 and 12-16 are not abandoned.
func writeResumed(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	j, err := trajectories.Create(path, trajectories.Header{InstanceID: "demo__a-1", Attempt: 1})
	require.NoError(t, err)
	addMessage := func(role model.Role, cause trajectories.Cause, text string) {
		t.Helper()
		add(t, j, trajectories.TypeMessage, trajectories.Message{Message: model.Message{Role: role, Content: text}, Cause: cause})
	}
	interrupted := trajectories.Outcome{Class: trajectories.Interrupted, ExitStatus: "Interrupted", Steps: 2, Cost: 1}
	addMessage(model.System, trajectories.CausePrompt, "system") // 2
	addMessage(model.User, trajectories.CausePrompt, "task")     // 3
	add(t, j, trajectories.TypeCall, trajectories.Call{Cost: 0.5})
	addMessage(model.Assistant, trajectories.CauseReply, "one") // 5
	add(t, j, trajectories.TypeExecution, trajectories.Execution{Command: "sleep 600"})
	addMessage(model.Tool, trajectories.CauseNotRun, "over") // 7
	add(t, j, trajectories.TypeOutcome, interrupted)
	j = reopen(t, path, j, 5) // 9
	add(t, j, trajectories.TypeReplay, trajectories.Replay{Record: 6})
	add(t, j, trajectories.TypeOutcome, interrupted)
	j = reopen(t, path, j, 9) // 12
	addMessage(model.Tool, trajectories.CauseObservation, "done")
	add(t, j, trajectories.TypeCall, trajectories.Call{Cost: 0.25})
	addMessage(model.Assistant, trajectories.CauseReply, "two") // 15
	add(t, j, trajectories.TypeOutcome, trajectories.Outcome{Class: trajectories.Submitted, ExitStatus: "Submitted", Steps: 2, Cost: 0.75})
	require.NoError(t, j.Close())
	return path
}

func reopen(t testing.TB, path string, j *trajectories.Journal, record int) *trajectories.Journal {
	t.Helper()
	require.NoError(t, j.Close())
	j, err := trajectories.Reopen(path, trajectories.Resume{MiniVersion: "0.1.0", Record: record})
	require.NoError(t, err)
	return j
}

func TestAbandonedRecords(t *testing.T) {
	path := writeResumed(t)
	assert.Equal(t, 16, len(records(t, path)), "records in all")
	if out, ended, err := trajectories.ReadOutcome(path); err != nil || !ended || out.Class != trajectories.Submitted {
		t.Errorf("the end is %v %v %v", out.Class, ended, err)
	}

	want := []string{"system", "task", "one", "done", "two"}
	tr, err := trajectories.Fold(trajectories.Read(path))
	require.NoError(t, err)
	var contents []string
	for _, e := range tr.Entries {
		contents = append(contents, e.Content)
	}
	if diff := cmp.Diff(want, contents); diff != "" || tr.Outcome == nil || tr.Outcome.Class != trajectories.Submitted {
		t.Errorf("gathered, %+v:\n%s", tr.Outcome, diff)
	}
	assert.Equal(t, 0, len(tr.Entries[2].Executions), "an abandoned command belongs to a reply")

	var prompts []int
	for p, err := range trajectories.Prompts(trajectories.Read(path)) {
		require.NoError(t, err)
		prompts = append(prompts, len(p.Messages))
	}
	assert.Equal(t, []int{2, 4}, prompts, "messages of the prompts")

	traj := filepath.Join(t.TempDir(), "x.traj.json")
	require.NoError(t, trajectories.WriteTrajFile(path, traj))
	derived, err := loadTraj(traj)
	require.NoError(t, err)
	contents = nil
	for _, turn := range derived.Messages {
		contents = append(contents, turn.Content)
	}
	assert.Equal(t, append(want, "Submitted"), contents, "derived")
}

// TestResumedAttemptHasNoOutcome checks that an attempt whose last session is running or was
// killed has no outcome, although the session before it has one.
func TestResumedAttemptHasNoOutcome(t *testing.T) {
	path := writeResumed(t)
	lines := bytes.SplitAfter(mustRead(t, path), []byte("\n"))
	for n, ended := range map[int]bool{8: true, 9: false, 10: false, 11: true, 12: false, 15: false, 16: true} {
		write(t, path, bytes.Join(lines[:n], nil))
		if _, got, err := trajectories.ReadOutcome(path); got != ended || err != nil {
			t.Errorf("%d records: ended %v, %v", n, got, err)
		}
		require.NoError(t, trajectories.WriteTrajFile(path, path+".traj.json"))
		traj, err := loadTraj(path + ".traj.json")
		require.NoError(t, err)
		assert.Equal(t, ended, traj.Info.ExitStatus != "", "%d records: derived with the status %q", n, traj.Info.ExitStatus)
	}
	// If the resume record is incomplete, the earlier outcome is still the last.
	write(t, path, append(bytes.Join(lines[:8], nil), lines[8][:20]...))
	if out, ended, err := trajectories.ReadOutcome(path); !ended || err != nil || out.Class != trajectories.Interrupted {
		t.Errorf("torn: %v %v %v", out.Class, ended, err)
	}
}

func write(t testing.TB, path string, data []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, data, 0o600))
}

// TestReopenTruncated checks that Reopen keeps all complete lines of a truncated journal.
func TestReopenTruncated(t *testing.T) {
	whole := mustRead(t, writeSample(t))
	path := filepath.Join(t.TempDir(), "cut")
	first := bytes.IndexByte(whole, '\n')
	const stride = 7
	for n := first; n <= len(whole); n += stride {
		write(t, path, whole[:n])
		before := records(t, path)
		j, err := trajectories.Reopen(path, trajectories.Resume{Record: 1})
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		j.SetSyncPolicy(trajectories.SyncNever)
		add(t, j, trajectories.TypeDiff, trajectories.Diff{})
		require.NoError(t, j.Close())
		after := records(t, path)
		if diff := cmp.Diff(before, after[:len(before)]); diff != "" {
			t.Fatalf("cut at %d, existing records changed:\n%s", n, diff)
		}
		if len(after) != len(before)+2 || after[len(before)].Parent != 1 || after[len(before)+1].ID != len(after) {
			t.Fatalf("cut at %d: %d records of %d, %+v", n, len(after), len(before), after[len(before)])
		}
		if tr, err := trajectories.Fold(trajectories.Read(path)); err != nil || len(tr.Entries) > 0 {
			t.Fatalf("cut at %d: %d messages, %v", n, len(tr.Entries), err)
		}
	}
	for _, n := range []int{0, first / 2} {
		write(t, path, whole[:n])
		_, err := trajectories.Reopen(path, trajectories.Resume{Record: 1})
		assert.Error(t, err, "cut at %d: continued without a header", n)
	}
}

func TestReopenRefusesBadJournals(t *testing.T) {
	lines := strings.SplitAfter(string(mustRead(t, writeSample(t))), "\n")
	parent := func(line, id string) string {
		head, rest, _ := strings.Cut(line, `"parent_id":`)
		_, rest, _ = strings.Cut(rest, ",")
		return head + `"parent_id":` + id + "," + rest
	}
	reencoded := func(line string) string { // as another JSON library would write it
		var fields map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &fields))
		out, err := json.Marshal(fields)
		require.NoError(t, err)
		return string(out) + "\n"
	}
	edit := func(change func(all []string)) string {
		all := slices.Clone(lines)
		change(all)
		return strings.Join(all, "")
	}
	tests := map[string]struct{ content, want string }{
		"itself as parent":       {edit(func(l []string) { l[3] = parent(l[3], "4") }), ":4: record 4 has parent 4, which is not an earlier record"},
		"a circle":               {edit(func(l []string) { l[2], l[3] = parent(l[2], "4"), parent(l[3], "3") }), ":3: record 3 has parent 4, which is not an earlier record"},
		"a later parent":         {edit(func(l []string) { l[4] = parent(l[4], "9") }), ":5: record 5 has parent 9"},
		"no parent":              {edit(func(l []string) { l[4] = parent(l[4], "0") }), ":5: record 5 has parent 0"},
		"a parent below nothing": {edit(func(l []string) { l[4] = parent(l[4], "-3") }), ":5: record 5 has parent -3"},
		"a number beyond all":    {edit(func(l []string) { l[4] = parent(l[4], "99999999999999999999") }), ":5: not a record"},
		"an earlier parent":      {edit(func(l []string) { l[4] = parent(l[4], "2") }), ":5: record 5 (message) has parent 2; only a resume record"},
		"a first with a parent":  {edit(func(l []string) { l[0] = parent(l[0], "1") }), ":1: the first record has parent 1"},
		"records out of order":   {edit(func(l []string) { l[3], l[4] = l[4], l[3] }), ":4: record 5 found, want record 4"},
		"a record twice":         {edit(func(l []string) { l[4] = l[3] }), ":5: record 4 found, want record 5"},
		"a record missing":       {edit(func(l []string) { l[4] = "" }), ":5: record 6 found, want record 5"},
		"two journals":           {strings.Join(lines, "") + strings.Join(lines, ""), ":12: record 1 found, want record 12"},
		"another header": {
			strings.Join(lines[:1], "") + strings.Replace(parent(lines[0], "1"), `"id":1`, `"id":2`, 1),
			":2: record 2 is a second header",
		},
		"otherwise spelled": {edit(func(l []string) { l[4] = reencoded(parent(l[4], "9")) }), ":5: record 5 has parent 9"},
		"no JSON":           {edit(func(l []string) { l[4] = "{\n" }), ":5: not a record"},
		"something else":    {"hello\n", ":1: not a record"},
		"nothing":           {"", "cannot resume from record 3"},
		"too short":         {lines[0] + lines[1], "has 2 records; cannot resume from record 3"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "j")
			write(t, path, []byte(test.content))
			_, err := trajectories.Reopen(path, trajectories.Resume{Record: 3})
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), path) {
				t.Errorf("error %v, want %s", err, test.want)
			}
			assert.Equal(t, test.content, string(mustRead(t, path)), "the journal changed")
		})
	}
	_, err := trajectories.Reopen(filepath.Join(t.TempDir(), "none"), trajectories.Resume{Record: 1})
	assert.ErrorIs(t, err, os.ErrNotExist, "a file that is not there")
	_, err = trajectories.Reopen(t.TempDir(), trajectories.Resume{Record: 1})
	assert.Error(t, err, "a folder was continued")
}

func TestSyncPolicies(t *testing.T) {
	for _, policy := range []trajectories.SyncPolicy{"", trajectories.SyncNever, trajectories.SyncAttempt, trajectories.SyncRecord} {
		path := filepath.Join(t.TempDir(), "j")
		j, err := trajectories.Create(path, trajectories.Header{})
		require.NoError(t, err)
		j.SetSyncPolicy(policy)
		for i := range 3 {
			add(t, j, trajectories.TypeDiff, fmt.Sprint(i))
		}
		if n := len(records(t, path)); n != 4 { // already written before Close
			t.Errorf("%q: %d records, want 4", policy, n)
		}
		require.NoError(t, j.Close())
	}
}

// writeParent writes a journal with three messages and an outcome.
func writeParent(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "parent.jsonl")
	j, err := trajectories.Create(path, trajectories.Header{InstanceID: "x", Attempt: 1})
	require.NoError(t, err)
	for _, cause := range []trajectories.Cause{trajectories.CausePrompt, trajectories.CauseReply, trajectories.CauseObservation} {
		_, err := j.Append(trajectories.TypeMessage, trajectories.Message{Cause: cause})
		require.NoError(t, err)
	}
	_, err = j.Append(trajectories.TypeOutcome, trajectories.Outcome{Class: trajectories.Limit})
	require.NoError(t, err)
	require.NoError(t, j.Close())
	return path
}

// fork writes a fork of a journal.
func fork(t *testing.T, path string, h trajectories.Header, from string) (*trajectories.Journal, error) {
	t.Helper()
	f, err := os.Create(path)
	require.NoError(t, err)
	return trajectories.NewFork(f, h, trajectories.Read(from))
}

func TestFork(t *testing.T) {
	from := writeParent(t)
	path := filepath.Join(t.TempDir(), "fork.jsonl")
	h := trajectories.Header{InstanceID: "x", Attempt: 2, Origin: &trajectories.Origin{SHA256: "ab", Record: 4, Step: 1}}
	j, err := fork(t, path, h, from)
	require.NoError(t, err)
	added, err := j.Append(trajectories.TypeMessage, trajectories.Message{Cause: trajectories.CauseReply})
	if err != nil || added.ID != 5 || added.Parent != 4 {
		t.Fatalf("%v, record %d after %d", err, added.ID, added.Parent)
	}
	require.NoError(t, j.Close())
	old, forked := lines(t, from), lines(t, path)
	if len(forked) != 5 || !slices.Equal(old[1:4], forked[1:4]) {
		t.Errorf("the history is not repeated as it is:\n%q\n%q", old, forked)
	}
	for r, err := range trajectories.Read(path) {
		require.NoError(t, err)
		if r.ID == 1 {
			if h, err = trajectories.DecodeHeader(r); err != nil || h.Attempt != 2 || h.Origin == nil || h.Origin.SHA256 != "ab" {
				t.Errorf("%v, header %+v", err, h)
			}
		}
		assert.Equal(t, r.ID <= 4, h.IsInherited(r.ID), "record %d: inherited", r.ID)
	}
}

func TestForkFails(t *testing.T) {
	from := writeParent(t)
	for name, h := range map[string]trajectories.Header{
		"no origin":           {},
		"a record beyond all": {Origin: &trajectories.Origin{Record: 9}},
	} {
		_, err := fork(t, filepath.Join(t.TempDir(), "fork.jsonl"), h, from)
		assert.Error(t, err, "%s", name)
	}
}

func lines(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
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
		require.NoError(t, err)
		add(t, j, trajectories.TypeCall, trajectories.Call{Cost: 2})
		add(t, j, trajectories.TypeMessage, trajectories.Message{Cause: trajectories.CauseReply})
		require.NoError(t, j.Close())
		return path
	}
	first := writeJournal("parent", trajectories.Header{InstanceID: "x"}, "")
	branch := writeJournal("branch",
		trajectories.Header{InstanceID: "x", Origin: &trajectories.Origin{Record: 3, Step: 1}}, first)
	require.NoError(t, trajectories.WriteTrajFile(branch, branch+".traj.json"))
	data := string(mustRead(t, branch+".traj.json"))
	assert.Contains(t, data, `"instance_cost":2,"api_calls":2`, "two calls, one of them paid")
}
