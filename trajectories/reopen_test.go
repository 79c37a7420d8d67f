package trajectories_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// writeResumed writes the journal of an attempt that was interrupted and resumed twice. The
// records 1-5, 9 and 12-16 are not abandoned.
func writeResumed(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	j, err := trajectories.Create(path, trajectories.Header{InstanceID: "demo__a-1", Attempt: 1})
	if err != nil {
		t.Fatal(err)
	}
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
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func reopen(t testing.TB, path string, j *trajectories.Journal, record int) *trajectories.Journal {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j, err := trajectories.Reopen(path, trajectories.Resume{MiniVersion: "0.1.0", Record: record})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func TestAbandonedRecords(t *testing.T) {
	path := writeResumed(t)
	if n := len(records(t, path)); n != 16 {
		t.Errorf("%d records in all, want 16", n)
	}
	if out, ended, err := trajectories.ReadOutcome(path); err != nil || !ended || out.Class != trajectories.Submitted {
		t.Errorf("the end is %v %v %v", out.Class, ended, err)
	}

	want := []string{"system", "task", "one", "done", "two"}
	tr, err := trajectories.Fold(trajectories.Read(path))
	if err != nil {
		t.Fatal(err)
	}
	var contents []string
	for _, e := range tr.Entries {
		contents = append(contents, e.Content)
	}
	if diff := cmp.Diff(want, contents); diff != "" || tr.Outcome == nil || tr.Outcome.Class != trajectories.Submitted {
		t.Errorf("gathered, %+v:\n%s", tr.Outcome, diff)
	}
	if executions := tr.Entries[2].Executions; len(executions) > 0 {
		t.Errorf("an abandoned command belongs to a reply: %+v", executions)
	}

	var prompts []int
	for p, err := range trajectories.Prompts(trajectories.Read(path)) {
		if err != nil {
			t.Fatal(err)
		}
		prompts = append(prompts, len(p.Messages))
	}
	if diff := cmp.Diff([]int{2, 4}, prompts); diff != "" {
		t.Errorf("messages of the prompts:\n%s", diff)
	}

	traj := filepath.Join(t.TempDir(), "x.traj.json")
	if err := trajectories.WriteTrajFile(path, traj); err != nil {
		t.Fatal(err)
	}
	derived, err := loadTraj(traj)
	if err != nil {
		t.Fatal(err)
	}
	contents = nil
	for _, turn := range derived.Messages {
		contents = append(contents, turn.Content)
	}
	if diff := cmp.Diff(append(want, "Submitted"), contents); diff != "" {
		t.Errorf("derived:\n%s", diff)
	}
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
		if err := trajectories.WriteTrajFile(path, path+".traj.json"); err != nil {
			t.Fatal(err)
		}
		traj, err := loadTraj(path + ".traj.json")
		if err != nil {
			t.Fatal(err)
		}
		if (traj.Info.ExitStatus != "") != ended {
			t.Errorf("%d records: derived with the status %q", n, traj.Info.ExitStatus)
		}
	}
	// If the resume record is incomplete, the earlier outcome is still the last.
	write(t, path, append(bytes.Join(lines[:8], nil), lines[8][:20]...))
	if out, ended, err := trajectories.ReadOutcome(path); !ended || err != nil || out.Class != trajectories.Interrupted {
		t.Errorf("torn: %v %v %v", out.Class, ended, err)
	}
}

func write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
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
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
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
		if _, err := trajectories.Reopen(path, trajectories.Resume{Record: 1}); err == nil {
			t.Errorf("cut at %d: continued without a header", n)
		}
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
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatal(err)
		}
		out, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
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
			if got := string(mustRead(t, path)); got != test.content {
				t.Error("the journal changed")
			}
		})
	}
	if _, err := trajectories.Reopen(filepath.Join(t.TempDir(), "none"), trajectories.Resume{Record: 1}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err := trajectories.Reopen(t.TempDir(), trajectories.Resume{Record: 1}); err == nil {
		t.Error("a folder was continued")
	}
}

func TestSyncPolicies(t *testing.T) {
	for _, policy := range []trajectories.SyncPolicy{"", trajectories.SyncNever, trajectories.SyncAttempt, trajectories.SyncRecord} {
		path := filepath.Join(t.TempDir(), "j")
		j, err := trajectories.Create(path, trajectories.Header{})
		if err != nil {
			t.Fatal(err)
		}
		j.SetSyncPolicy(policy)
		for i := range 3 {
			add(t, j, trajectories.TypeDiff, fmt.Sprint(i))
		}
		if n := len(records(t, path)); n != 4 { // already written before Close
			t.Errorf("%q: %d records, want 4", policy, n)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
