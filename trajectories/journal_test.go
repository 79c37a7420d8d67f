package trajectories_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// writeSample writes the journal of a short finished attempt with a format error, binary
// output and a submission.
func writeSample(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	j, err := trajectories.Create(path, trajectories.Header{
		MiniVersion: "0.1.0", InstanceID: "demo__a-1", Attempt: 1, ModelClass: "scripted", EnvironmentClass: "docker",
		Config: json.RawMessage(`{"agent":{"step_limit":250},"model":{"model_name":"m"},"environment":{"cwd":"/testbed"},"run":{"workers":4}}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	addMessage := func(role model.Role, cause trajectories.Cause, text string, actions ...string) {
		t.Helper()
		add(t, j, trajectories.TypeMessage, trajectories.Message{
			Message: model.Message{Role: role, Content: text}, Cause: cause, Actions: actions,
		})
	}
	addMessage(model.System, trajectories.CausePrompt, "You fix <software> & more.")
	addMessage(model.User, trajectories.CausePrompt, "Fix it.")
	add(t, j, trajectories.TypeCall, trajectories.Call{Cost: 0.25, RequestCount: 1, Usage: model.Usage{Prompt: 10, Completion: 5}})
	addMessage(model.Assistant, trajectories.CauseReply, "no block")
	addMessage(model.User, trajectories.CauseFormatError, "write one block")
	add(t, j, trajectories.TypeCall, trajectories.Call{Cost: 0.5, RequestCount: 1, Raw: json.RawMessage(`{"id":"x"}`)})
	addMessage(model.Assistant, trajectories.CauseReply, "```bash\ncat data\n```", "cat data")
	add(t, j, trajectories.TypeExecution, trajectories.Execution{
		Command: "cat data", Output: trajectories.Bytes("caf\xe9 <b>\r\n\x00"), Bytes: 11, Chars: 11, ExitCode: 3,
	})
	addMessage(model.User, trajectories.CauseObservation, "<returncode>3</returncode>")
	add(t, j, trajectories.TypeOutcome, trajectories.Outcome{
		Class: trajectories.Submitted, ExitStatus: "Submitted", Submission: trajectories.Bytes("diff --git a/x b/x\n"),
		Steps: 2, Cost: 0.75,
	})
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func add(t testing.TB, j *trajectories.Journal, typ trajectories.Type, data any) {
	t.Helper()
	if _, err := j.Append(typ, data); err != nil {
		t.Fatal(err)
	}
}

func records(t testing.TB, path string) []trajectories.Record {
	t.Helper()
	var all []trajectories.Record
	for r, err := range trajectories.Read(path) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

func TestBinaryOutput(t *testing.T) {
	path := writeSample(t)
	all := records(t, path)
	if len(all) != 11 {
		t.Fatalf("%d records, want 11", len(all))
	}
	for i, r := range all {
		if r.ID != i+1 || r.Parent != i {
			t.Errorf("record %d has id %d and parent %d", i, r.ID, r.Parent)
		}
		if time.Since(r.Time) > time.Minute || r.Time.Location() != time.UTC {
			t.Errorf("record %d was written at %v", i, r.Time)
		}
	}
	var x trajectories.Execution
	if err := json.Unmarshal(all[8].Data, &x); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("caf\xe9 <b>\r\n\x00", string(x.Output)); diff != "" {
		t.Error(diff)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(data, []byte("You fix <software> & more.")) {
		t.Error("text is escaped for HTML")
	}
}

func TestCreateRefusesAnExistingFile(t *testing.T) {
	path := writeSample(t)
	before := mustRead(t, path)
	_, err := trajectories.Create(path, trajectories.Header{})
	if !errors.Is(err, os.ErrExist) {
		t.Errorf("error %v, want that it exists", err)
	}
	if !bytes.Equal(before, mustRead(t, path)) {
		t.Error("the existing journal changed")
	}
}

func TestAppendRefusesUnencodable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j, err := trajectories.Create(path, trajectories.Header{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Append(trajectories.TypeCall, math.NaN()); err == nil {
		t.Error("NaN was accepted")
	}
	add(t, j, trajectories.TypeDiff, trajectories.Diff{})
	if err := errors.Join(j.Close(), j.Close()); err != nil {
		t.Error(err)
	}
	if _, err := j.Append(trajectories.TypeDiff, nil); !errors.Is(err, trajectories.ErrClosed) {
		t.Errorf("append after close: %v", err)
	}
	if n := len(records(t, path)); n != 2 {
		t.Errorf("%d records, want 2", n)
	}
}

func TestAppendFromManyGoroutines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j, err := trajectories.Create(path, trajectories.Header{})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if _, err := j.Append(trajectories.TypeDiff, strings.Repeat("x", 9000)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for i, r := range records(t, path) {
		if r.ID != i+1 {
			t.Fatalf("record %d has id %d", i, r.ID)
		}
	}
}

// TestTruncationAtEveryByte checks that a truncated journal lacks only the records that are
// not complete.
func TestTruncationAtEveryByte(t *testing.T) {
	whole, err := os.ReadFile(writeSample(t))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "cut")
	for n := range len(whole) + 1 {
		if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		complete := bytes.Count(whole[:n], []byte("\n"))
		if n < len(whole) && whole[n] == '\n' {
			complete++ // only the newline is missing
		}
		if got := len(records(t, path)); got != complete {
			t.Fatalf("cut at %d: %d records, want %d", n, got, complete)
		}
		_, ended, err := trajectories.ReadOutcome(path)
		if err != nil || ended != (n >= len(whole)-1) {
			t.Fatalf("cut at %d: ended %v, %v", n, ended, err)
		}
		if n%251 == 0 && n > 0 {
			if err := trajectories.WriteTrajFile(path, path+".traj.json"); err != nil {
				t.Fatalf("cut at %d: %v", n, err)
			}
		}
	}
}

func TestReadNamesTheLine(t *testing.T) {
	lines := strings.SplitAfter(string(mustRead(t, writeSample(t))), "\n")
	tests := map[string]struct{ content, want string }{
		"broken in the middle": {lines[0] + "{broken\n" + lines[1], ":2: not a record"},
		"no type":              {lines[0] + `{"id":2}` + "\n", ":2: not a record: id or type is missing"},
		"newer format":         {strings.Replace(lines[0], `"mini-1"`, `"mini-9"`, 1), ":1: not a journal of format mini-1"},
		"no header":            {lines[1], ":1: not a journal of format mini-1"},
		"something else":       {"hello\nworld\n", ":1: not a record"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "j")
			if err := os.WriteFile(path, []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}
			var last error
			for _, err := range trajectories.Read(path) {
				last = err
			}
			if last == nil || !strings.Contains(last.Error(), path+test.want) {
				t.Errorf("error %v, want %s", last, path+test.want)
			}
		})
	}
}

// TestReadOutcome has lines that are longer than a block, since ReadOutcome reads blocks
// from the end of the file.
func TestReadOutcome(t *testing.T) {
	outcome := trajectories.Outcome{Class: trajectories.Limit, ExitStatus: "LimitsExceeded"}
	for _, size := range []int{0, 1, 60 << 10, 64 << 10, 65<<10 + 1, 1 << 20} {
		path := filepath.Join(t.TempDir(), "j")
		j, err := trajectories.Create(path, trajectories.Header{})
		if err != nil {
			t.Fatal(err)
		}
		add(t, j, trajectories.TypeDiff, strings.Repeat("y", size))
		if _, ended, err := trajectories.ReadOutcome(path); ended || err != nil {
			t.Errorf("size %d: ended %v, %v before the outcome", size, ended, err)
		}
		outcome.Submission = bytes.Repeat([]byte("z"), size)
		add(t, j, trajectories.TypeOutcome, outcome)
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		got, ended, err := trajectories.ReadOutcome(path)
		if err != nil || !ended {
			t.Fatalf("size %d: ended %v, %v", size, ended, err)
		}
		if got.ExitStatus != outcome.ExitStatus || got.Class != outcome.Class || !bytes.Equal(got.Submission, outcome.Submission) {
			t.Errorf("size %d: got %s %s with %d bytes", size, got.Class, got.ExitStatus, len(got.Submission))
		}
	}
	if _, _, err := trajectories.ReadOutcome(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}

func mustRead(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func FuzzScan(f *testing.F) {
	whole := mustRead(f, writeSample(f))
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte("{}\n"))
	f.Add([]byte("\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		n := 0
		for _, err := range trajectories.Scan("fuzz", bytes.NewReader(data)) {
			if err != nil && !strings.HasPrefix(err.Error(), "fuzz:") {
				t.Errorf("error without its place: %v", err)
			}
			n++
		}
		if lines := bytes.Count(data, []byte("\n")) + 1; n > lines {
			t.Errorf("%d records out of %d lines", n, lines)
		}
	})
}

// BenchmarkAppend measures the time to append a record. It must not depend on the number of
// earlier records. It is part of make bench.
func BenchmarkAppend(b *testing.B) {
	observation := trajectories.Execution{Output: bytes.Repeat([]byte("0123456789abcde\n"), 640)}
	for _, steps := range []int{50, 800} {
		b.Run(fmt.Sprintf("%d_steps", steps), func(b *testing.B) {
			var spent time.Duration
			for b.Loop() {
				j, err := trajectories.Create(filepath.Join(b.TempDir(), "j"), trajectories.Header{})
				if err != nil {
					b.Fatal(err)
				}
				start := time.Now()
				for range steps {
					add(b, j, trajectories.TypeExecution, observation)
				}
				spent += time.Since(start)
				if err := j.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(spent.Microseconds())/float64(b.N*steps), "µs/step")
		})
	}
}

// TestExecutionRoundTrip checks that all fields of an execution are read back.
func TestExecutionRoundTrip(t *testing.T) {
	for _, output := range []string{"plain <text> & \"more\"\n", "caf\xe9\x00", ""} {
		want := trajectories.Execution{
			Command: "c", Output: trajectories.Bytes(output), Head: 3, Truncated: true, Bytes: 70, Chars: 60, ExitCode: 4, Signal: 5,
			Start: time.Now().UTC().Truncate(time.Millisecond), Duration: trajectories.Seconds(time.Second), TimedOut: true, Killed: 6, Survivors: 7,
			KilledEarlierCommands: true, Background: []trajectories.Process{{PID: 8, Name: "n"}}, OOMKilled: 9, Exception: "e",
		}
		path := filepath.Join(t.TempDir(), "j")
		j, err := trajectories.Create(path, trajectories.Header{})
		if err != nil {
			t.Fatal(err)
		}
		add(t, j, trajectories.TypeExecution, want)
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		var got trajectories.Execution
		if err := json.Unmarshal(records(t, path)[1].Data, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b trajectories.Bytes) bool { return string(a) == string(b) })); diff != "" {
			t.Error(diff)
		}
	}
}
