package convert_test

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

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner/grade/corpustest"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/atif"
	"github.com/minibench/mini/trajectories/convert"
)

// said is what has to survive a way through other formats.
type said struct {
	Messages []saidMessage
	Ran      []saidRan
	Cost     model.Cost
	Steps    int
	Outcome  *saidOutcome
	Model    string
	Instance string
}

type saidMessage struct {
	Role      model.Role
	Cause     trajectories.Cause
	Content   string
	Reasoning string
	Calls     []model.Call
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

func gather(t *testing.T, f *convert.File) said {
	t.Helper()
	tr, err := trajectories.Gather(f.Records)
	if err != nil {
		t.Fatal(err)
	}
	s := said{Model: tr.Header.ModelName, Instance: tr.Header.InstanceID}
	run := func(all []trajectories.Ran) {
		for _, r := range all {
			s.Ran = append(s.Ran, saidRan{
				Command: r.Command, Output: string(r.Output), Exception: r.Exception,
				Code: r.ExitCode, Unknown: r.CodeUnknown, TimedOut: r.TimedOut, Told: r.Told,
			})
		}
	}
	run(tr.Setup)
	for _, e := range tr.Entries {
		m := saidMessage{
			Role: e.Role, Cause: e.Cause, Content: e.Content, Reasoning: e.Reasoning, Calls: e.Calls, CallID: e.CallID,
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
		run(e.Ran)
	}
	if o := tr.Outcome; o != nil {
		s.Cost, s.Steps = o.Cost, o.Steps
		s.Outcome = &saidOutcome{o.Class, o.ExitStatus, string(o.Submission), string(o.PartialPatch), o.Error}
	}
	return s
}

// derive writes a .traj.json of an attempt and reads it again.
func derive(t *testing.T, f *convert.File) *convert.File {
	t.Helper()
	dir := t.TempDir()
	journal, path := filepath.Join(dir, "journal.jsonl"), filepath.Join(dir, f.Header.InstanceID+".traj.json")
	if err := trajectories.Write(journal, f.Records); err != nil {
		t.Fatal(err)
	}
	if err := trajectories.Derive(journal, path); err != nil {
		t.Fatal(err)
	}
	again, err := convert.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// corpus are the real trajectories beside the project.
func corpus(t *testing.T) []string {
	t.Helper()
	root := corpustest.Beside(t, "trajectories")
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "cases" || d.Name() == "predictions"):
			return fs.SkipDir // rules of ATIF, and patches
		case strings.HasSuffix(path, ".traj.json"), strings.HasSuffix(path, ".traj"), strings.HasSuffix(path, ".json"):
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		corpustest.Lacks(t, "%s has no trajectories", root)
	}
	return files
}

// interchange writes ATIF of an attempt and reads it again.
func interchange(t *testing.T, f *convert.File) *convert.File {
	t.Helper()
	tr, err := trajectories.Gather(f.Records)
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
	again, err := convert.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

func TestRealFilesComeBack(t *testing.T) {
	for _, path := range corpus(t) {
		name := filepath.Base(filepath.Dir(path)) + "/" + filepath.Base(path)
		t.Run(name, func(t *testing.T) {
			if filepath.Base(path) == "gemini-cli-trajectory.json" {
				t.Skip("a format that mini does not read")
			}
			for f, err := range convert.All(path) {
				if err != nil {
					t.Fatal(err)
				}
				t.Log(f.Format, f.Header.InstanceID, f.Lost)
				first := gather(t, f)
				if len(first.Messages) == 0 {
					t.Error("no messages")
				}
				if diff := cmp.Diff(first, gather(t, derive(t, f))); diff != "" {
					t.Errorf("by way of .traj.json (-first +again):\n%s", diff)
				}
				// A message without a time gets that of the one before it there.
				timeless := cmpopts.IgnoreFields(saidMessage{}, "Time")
				if diff := cmp.Diff(first, gather(t, interchange(t, f)), timeless); diff != "" {
					t.Errorf("by way of ATIF (-first +again):\n%s", diff)
				}
			}
		})
	}
}
