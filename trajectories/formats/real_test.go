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

// attemptData is the part of an attempt that conversions must not change.
type attemptData struct {
	Messages   []messageData
	Executions []executionData
	Cost       model.Cost
	Steps      int
	Outcome    *outcomeData
	Model      string
	Instance   string
}

type messageData struct {
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

type executionData struct {
	Command, Output, Exception string
	Code                       int
	Unknown, TimedOut          bool
	ObservationEntry           int
}

type outcomeData struct {
	Class      trajectories.Class
	Status     string
	Submission string
	Partial    string
	Error      string
}

// readData returns the data of an attempt.
func readData(t *testing.T, f *formats.File) attemptData {
	t.Helper()
	tr, err := trajectories.Fold(f.Records)
	if err != nil {
		t.Fatal(err)
	}
	s := attemptData{Model: tr.Header.ModelName, Instance: tr.Header.InstanceID}
	addExecutions := func(all []trajectories.Execution) {
		for _, r := range all {
			s.Executions = append(s.Executions, executionData{
				Command: r.Command, Output: string(r.Output), Exception: r.Exception,
				Code: r.ExitCode, Unknown: r.ExitCodeUnknown, TimedOut: r.TimedOut, ObservationEntry: r.ObservationEntry,
			})
		}
	}
	addExecutions(tr.SetupExecutions)
	for _, e := range tr.Entries {
		m := messageData{
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
		addExecutions(e.Executions)
	}
	if o := tr.Outcome; o != nil {
		s.Cost, s.Steps = o.Cost, o.Steps
		s.Outcome = &outcomeData{o.Class, o.ExitStatus, string(o.Submission), string(o.PartialPatch), o.Error}
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
	reread, err := formats.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return reread
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
			return fs.SkipDir // test cases of ATIF, and predictions
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
	tr, err := trajectories.Fold(f.Records)
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
	reread, err := formats.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return reread
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
				first := readData(t, f)
				if len(first.Messages) == 0 {
					t.Error("no messages")
				}
				if diff := cmp.Diff(first, readData(t, viaTraj(t, f))); diff != "" {
					t.Errorf("by way of .traj.json (-first +again):\n%s", diff)
				}
				// In ATIF, a message without a time gets the time of its step.
				timeless := cmpopts.IgnoreFields(messageData{}, "Time")
				if diff := cmp.Diff(first, readData(t, viaATIF(t, f)), timeless); diff != "" {
					t.Errorf("by way of ATIF (-first +again):\n%s", diff)
				}
			}
		})
	}
}
