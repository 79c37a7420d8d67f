package formats_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/minibench/mini/internal/corpustest"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/formats"
	"github.com/minibench/mini/trajectories/formats/atif"
)

// comparable is the part of an attempt that conversions must keep.
type comparable struct {
	Messages []comparableMessage
	Ran      []saidRan
	Cost     model.Cost
	Steps    int
	Outcome  *saidOutcome
	Model    string
	Instance string
}

type comparableMessage struct {
	Role      model.Role
	Cause     trajectories.Cause
	Content   string
	Reasoning string
	Calls     []model.ToolCall
	CallID    string
	Actions   []string
	Cost      *model.Cost
	Usage     *model.Usage
	Images    int
	Time      time.Time
}

type saidRan struct {
	Command, Output, Exception string
	Code                       int
	Unknown, TimedOut          bool
	Told                       int
}

type saidOutcome struct {
	Class      trajectories.Class
	Status     string
	Submission string
	Partial    string
	Error      string
}

func gather(t *testing.T, f *formats.File) comparable {
	t.Helper()
	tr, err := trajectories.BuildTranscript(f.Records)
	if err != nil {
		t.Fatal(err)
	}
	s := comparable{Model: tr.Header.ModelName, Instance: tr.Header.InstanceID}
	run := func(all []trajectories.RecordedExecution) {
		for _, r := range all {
			s.Ran = append(s.Ran, saidRan{
				Command: r.Command, Output: string(r.Output), Exception: r.Exception,
				Code: r.ExitCode, Unknown: r.ExitCodeUnknown, TimedOut: r.TimedOut, Told: r.ObservationEntry,
			})
		}
	}
	run(tr.SetupExecutions)
	for _, e := range tr.Entries {
		m := comparableMessage{
			Role: e.Role, Cause: e.Cause, Content: e.Content, Reasoning: e.Reasoning, Calls: e.ToolCalls, CallID: e.ToolCallID,
			Actions: e.Actions, Images: len(e.Images), Time: e.Time,
		}
		if c := e.Call; c != nil {
			u := c.Usage
			m.Usage = &u
			if c.Usage.Unpriced == 0 {
				m.Cost = &c.Cost
			}
		}
		s.Messages = append(s.Messages, m)
		run(e.Executions)
	}
	if o := tr.Outcome; o != nil {
		s.Cost, s.Steps = o.Cost, o.Steps
		s.Outcome = &saidOutcome{o.Class, o.ExitStatus, string(o.Submission), string(o.PartialPatch), o.Error}
	}
	return s
}

// viaTraj writes a .traj.json of an attempt and reads it.
func viaTraj(t *testing.T, f *formats.File) *formats.File {
	t.Helper()
	dir := t.TempDir()
	journal, path := filepath.Join(dir, "journal.jsonl"), filepath.Join(dir, f.Header.InstanceID+".traj.json")
	if err := trajectories.WriteJournal(journal, f.Records); err != nil {
		t.Fatal(err)
	}
	if err := trajectories.WriteTrajFile(journal, path); err != nil {
		t.Fatal(err)
	}
	again, err := formats.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// corpus returns the real trajectories, which are not part of the repository.
func corpus(t *testing.T) []string {
	t.Helper()
	root := corpustest.RealData(t, "trajectories")
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "cases" || d.Name() == "predictions"):
			return fs.SkipDir // schemas of ATIF, and patches
		case strings.HasSuffix(path, ".traj.json"), strings.HasSuffix(path, ".traj"), strings.HasSuffix(path, ".json"):
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		corpustest.SkipOrFail(t, "%s has no trajectories", root)
	}
	return files
}

// viaATIF writes an attempt as ATIF and reads it.
func viaATIF(t *testing.T, f *formats.File) *formats.File {
	t.Helper()
	tr, err := trajectories.BuildTranscript(f.Records)
	if err != nil {
		t.Fatal(err)
	}
	var doc bytes.Buffer
	if _, err := atif.Write(&doc, tr, ""); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), f.Header.InstanceID+".json")
	if err := os.WriteFile(path, doc.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := formats.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

func TestRealFileRoundTrip(t *testing.T) {
	for _, path := range corpus(t) {
		name := filepath.Base(filepath.Dir(path)) + "/" + filepath.Base(path)
		t.Run(name, func(t *testing.T) {
			if filepath.Base(path) == "gemini-cli-trajectory.json" {
				t.Skip("a format that mini does not read")
			}
			for f, err := range formats.OpenAll(path) {
				if err != nil {
					t.Fatal(err)
				}
				t.Log(f.Format, f.Header.InstanceID, f.Losses)
				first := gather(t, f)
				if len(first.Messages) == 0 {
					t.Error("no messages")
				}
				if diff := cmp.Diff(first, gather(t, viaTraj(t, f))); diff != "" {
					t.Errorf("by way of .traj.json (-first +again):\n%s", diff)
				}
				// There, a message without a time gets that of the one before it.
				timeless := cmpopts.IgnoreFields(comparableMessage{}, "Time")
				if diff := cmp.Diff(first, gather(t, viaATIF(t, f)), timeless); diff != "" {
					t.Errorf("by way of ATIF (-first +again):\n%s", diff)
				}
			}
		})
	}
}
