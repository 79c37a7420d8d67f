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

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
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
	require.NoError(t, err)
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
	require.NoError(t, j.Close())
	return path
}

func add(t testing.TB, j *trajectories.Journal, typ trajectories.Type, data any) {
	t.Helper()
	_, err := j.Append(typ, data)
	require.NoError(t, err)
}

func records(t testing.TB, path string) []trajectories.Record {
	t.Helper()
	var all []trajectories.Record
	for r, err := range trajectories.Read(path) {
		require.NoError(t, err)
		all = append(all, r)
	}
	return all
}

func TestBinaryOutput(t *testing.T) {
	path := writeSample(t)
	all := records(t, path)
	require.Equal(t, 11, len(all), "records")
	for i, r := range all {
		if r.ID != i+1 || r.Parent != i {
			t.Errorf("record %d has id %d and parent %d", i, r.ID, r.Parent)
		}
		if time.Since(r.Time) > time.Minute || r.Time.Location() != time.UTC {
			t.Errorf("record %d was written at %v", i, r.Time)
		}
	}
	var x trajectories.Execution
	require.NoError(t, json.Unmarshal(all[8].Data, &x))
	assert.NoDiff(t, cmp.Diff("caf\xe9 <b>\r\n\x00", string(x.Output)))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	if !bytes.Contains(data, []byte("You fix <software> & more.")) {
		t.Error("text is escaped for HTML")
	}
}

func TestCreateRefusesAnExistingFile(t *testing.T) {
	path := writeSample(t)
	before := mustRead(t, path)
	_, err := trajectories.Create(path, trajectories.Header{})
	assert.ErrorIs(t, err, os.ErrExist)
	if !bytes.Equal(before, mustRead(t, path)) {
		t.Error("the existing journal changed")
	}
}

func TestAppendRefusesUnencodable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j, err := trajectories.Create(path, trajectories.Header{})
	require.NoError(t, err)
	_, err = j.Append(trajectories.TypeCall, math.NaN())
	assert.Error(t, err, "NaN was accepted")
	add(t, j, trajectories.TypeDiff, trajectories.Diff{})
	assert.NoError(t, errors.Join(j.Close(), j.Close()))
	_, err = j.Append(trajectories.TypeDiff, nil)
	assert.ErrorIs(t, err, trajectories.ErrClosed, "append after close")
	assert.Equal(t, 2, len(records(t, path)), "records")
}

func TestAppendFromManyGoroutines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j, err := trajectories.Create(path, trajectories.Header{})
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				_, err := j.Append(trajectories.TypeDiff, strings.Repeat("x", 9000))
				assert.NoError(t, err)
			}
		})
	}
	wg.Wait()
	require.NoError(t, j.Close())
	for i, r := range records(t, path) {
		require.Equal(t, i+1, r.ID, "record %d has id", i)
	}
}

// TestTruncationAtEveryByte checks that a truncated journal lacks only the records that are
// not complete.
func TestTruncationAtEveryByte(t *testing.T) {
	whole, err := os.ReadFile(writeSample(t))
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "cut")
	for n := range len(whole) + 1 {
		require.NoError(t, os.WriteFile(path, whole[:n], 0o600))
		complete := bytes.Count(whole[:n], []byte("\n"))
		if n < len(whole) && whole[n] == '\n' {
			complete++ // only the newline is missing
		}
		require.Equal(t, complete, len(records(t, path)), "cut at %d: records", n)
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
			require.NoError(t, os.WriteFile(path, []byte(test.content), 0o600))
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
		require.NoError(t, err)
		add(t, j, trajectories.TypeDiff, strings.Repeat("y", size))
		if _, ended, err := trajectories.ReadOutcome(path); ended || err != nil {
			t.Errorf("size %d: ended %v, %v before the outcome", size, ended, err)
		}
		outcome.Submission = bytes.Repeat([]byte("z"), size)
		add(t, j, trajectories.TypeOutcome, outcome)
		require.NoError(t, j.Close())
		got, ended, err := trajectories.ReadOutcome(path)
		if err != nil || !ended {
			t.Fatalf("size %d: ended %v, %v", size, ended, err)
		}
		if got.ExitStatus != outcome.ExitStatus || got.Class != outcome.Class || !bytes.Equal(got.Submission, outcome.Submission) {
			t.Errorf("size %d: got %s %s with %d bytes", size, got.Class, got.ExitStatus, len(got.Submission))
		}
	}
	_, _, err := trajectories.ReadOutcome(filepath.Join(t.TempDir(), "none"))
	assert.ErrorIs(t, err, os.ErrNotExist, "missing file")
}

func mustRead(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
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
				require.NoError(b, err)
				start := time.Now()
				for range steps {
					add(b, j, trajectories.TypeExecution, observation)
				}
				spent += time.Since(start)
				require.NoError(b, j.Close())
			}
			b.ReportMetric(float64(spent.Microseconds())/float64(b.N*steps), "µs/step")
		})
	}
}

// TestJournalRedacts checks that Append removes keys from records, also in base64, and that
// every record can still be read.
func TestJournalRedacts(t *testing.T) {
	key := []byte("sk-0123456789")
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	forms := [][]byte{key, []byte("c2stMDEyMzQ1Njc4O")}
	header := trajectories.Header{InstanceID: "a", Attempt: 1, Redact: func(text []byte) []byte {
		for _, form := range forms {
			text = bytes.ReplaceAll(text, form, []byte("[redacted]"))
		}
		return text
	}}
	j, err := trajectories.Create(path, header)
	require.NoError(t, err)
	for give, want := range map[string]string{
		"x sk-0123456789 y":      "x [redacted] y",
		"\xffa\x00sk-0123456789": "\xffa\x00[redacted]",
		"1e400 is no number":     "1e400 is no number",
	} {
		rec, err := j.Append(trajectories.TypeOutcome, trajectories.Outcome{Submission: trajectories.Bytes(give), Steps: 1 << 60})
		require.NoError(t, err)
		var out trajectories.Outcome
		if err := json.Unmarshal(rec.Data, &out); err != nil || string(out.Submission) != want || out.Steps != 1<<60 || rec.Redacted != (give != want) {
			t.Errorf("%q became %q (%d steps, redacted %t): %v", give, out.Submission, out.Steps, rec.Redacted, err)
		}
	}
	require.NoError(t, j.Close())
	n := 0
	for _, err := range trajectories.Read(path) {
		require.NoError(t, err)
		n++
	}
	assert.Equal(t, 4, n, "records")
}
