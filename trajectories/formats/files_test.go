package formats_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/corpustest"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/formats"
	"github.com/minibench/mini/trajectories/formats/atif"
)

// rawFile is a file of mini-swe-agent or SWE-agent, decoded without the package under test.
type rawFile struct {
	Info struct {
		Status     string `json:"exit_status"`
		Submission string `json:"submission"`
		Stats      struct {
			Cost  model.Cost `json:"instance_cost"`
			Calls int        `json:"api_calls"`
		} `json:"model_stats"`
	} `json:"info"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
		Calls   []struct {
			ID string `json:"id"`
		} `json:"tool_calls"`
		CallID string `json:"tool_call_id"`
		Extra  struct {
			Cost    *model.Cost `json:"cost"`
			Actions []struct {
				Command string `json:"command"`
			} `json:"actions"`
			Output *string `json:"raw_output"`
			Code   *int    `json:"returncode"`
		} `json:"extra"`
	} `json:"messages"`
	History []struct {
		Content json.RawMessage `json:"content"`
		Action  string          `json:"action"`
	} `json:"history"`
	Steps []struct {
		Observation string `json:"observation"`
	} `json:"trajectory"`
}

// fileData is the data of a file that an import must not change.
type fileData struct {
	Texts, Commands, Outputs, IDs []string
	Codes                         []int
	Costs                         []model.Cost
	Status, Submission            string
	Cost                          model.Cost
}

// readFileData returns the data of a file.
func readFileData(t *testing.T, path string) fileData {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	var f rawFile
	require.NoError(t, json.Unmarshal(data, &f))
	e := fileData{Status: f.Info.Status, Submission: f.Info.Submission, Cost: f.Info.Stats.Cost}
	release1 := strings.Contains(path, "v1/")
	for i, m := range f.Messages {
		if m.Role == "exit" || release1 && i == len(f.Messages)-1 {
			continue
		}
		e.Texts = append(e.Texts, contentText(t, m.Content))
		for _, c := range m.Calls {
			e.IDs = append(e.IDs, c.ID)
		}
		if m.CallID != "" {
			e.IDs = append(e.IDs, m.CallID)
		}
		for _, a := range m.Extra.Actions {
			e.Commands = append(e.Commands, a.Command)
		}
		if m.Extra.Cost != nil {
			e.Costs = append(e.Costs, *m.Extra.Cost)
		}
		if code := codeInText.FindStringSubmatch(contentText(t, m.Content)); release1 && code != nil {
			n, _ := strconv.Atoi(code[1]) // cannot fail for digits
			e.Codes = append(e.Codes, n)
		}
		if m.Extra.Output != nil {
			e.Outputs, e.Codes = append(e.Outputs, *m.Extra.Output), append(e.Codes, *m.Extra.Code)
		}
	}
	for _, m := range f.History {
		e.Texts = append(e.Texts, contentText(t, m.Content))
		if m.Action != "" {
			e.Commands = append(e.Commands, m.Action)
		}
	}
	for _, s := range f.Steps {
		e.Outputs = append(e.Outputs, s.Observation)
	}
	return e
}

// codeInText matches the exit code in an observation of release 1.
var codeInText = regexp.MustCompile(`^<returncode>(\d+)</returncode>`)

// contentText returns the text of a content.
func contentText(t *testing.T, content json.RawMessage) string {
	t.Helper()
	var text *string
	if json.Unmarshal(content, &text) == nil {
		if text == nil {
			return ""
		}
		return *text
	}
	var parts []struct{ Text string }
	require.NoError(t, json.Unmarshal(content, &parts))
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// TestImportsMatchFiles compares imported attempts with their files.
func TestImportsMatchFiles(t *testing.T) {
	for _, path := range corpus(t) {
		var release int
		switch kind := filepath.Base(filepath.Dir(path)); kind {
		case "mini-swe-agent-v1":
			release = 1
		case "mini-swe-agent-v2":
			release = 2
		case "swe-agent", "swe-agent-0.x":
		default:
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			want, got := readFileData(t, path), fileData{}
			f, err := formats.Open(path)
			require.NoError(t, err)
			s := readData(t, f)
			for _, m := range s.Messages {
				got.Texts = append(got.Texts, m.Content)
				for _, c := range m.Calls {
					got.IDs = append(got.IDs, c.ID)
				}
				if m.CallID != "" {
					got.IDs = append(got.IDs, m.CallID)
				}
				got.Commands = append(got.Commands, m.Actions...)
				if m.Cost != nil {
					got.Costs = append(got.Costs, *m.Cost)
				}
			}
			for _, r := range s.Executions {
				got.Outputs = append(got.Outputs, r.Output)
				if !r.Unknown {
					got.Codes = append(got.Codes, r.Code)
				}
			}
			if s.Outcome != nil {
				got.Status, got.Submission, got.Cost = s.Outcome.Status, s.Outcome.Submission, s.Cost
			}
			switch release {
			case 1: // release 1 has commands and outputs only in the text of messages
				got.Commands, got.Outputs = nil, nil
			case 0:
				got.IDs = nil
				if len(want.Outputs) == 0 { // a demonstration with only a history
					got.Outputs = nil
				}
			}
			assert.NoDiff(t, cmp.Diff(want, got), "(-the file +the journal)")
		})
	}
}

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
	require.NoError(t, err)
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
	require.NoError(t, trajectories.WriteJournal(journal, f.Records))
	require.NoError(t, trajectories.WriteTrajFile(journal, path))
	reread, err := formats.Open(path)
	require.NoError(t, err)
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
	require.NoError(t, err)
	if len(files) == 0 {
		corpustest.SkipOrFail(t, "%s has no trajectories", root)
	}
	return files
}

// viaATIF writes an attempt as ATIF and reads it.
func viaATIF(t *testing.T, f *formats.File) *formats.File {
	t.Helper()
	tr, err := trajectories.Fold(f.Records)
	require.NoError(t, err)
	var doc bytes.Buffer
	_, err = atif.Write(&doc, tr, "")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), f.Header.InstanceID+".json")
	require.NoError(t, os.WriteFile(path, doc.Bytes(), 0o600))
	reread, err := formats.Open(path)
	require.NoError(t, err)
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
				require.NoError(t, err)
				t.Log(f.Format, f.Header.InstanceID, f.Losses)
				first := readData(t, f)
				if len(first.Messages) == 0 {
					t.Error("no messages")
				}
				assert.NoDiff(t, cmp.Diff(first, readData(t, viaTraj(t, f))), "by way of .traj.json (-first +again)")
				// In ATIF, a message without a time gets the time of its step.
				timeless := cmpopts.IgnoreFields(messageData{}, "Time")
				assert.NoDiff(t, cmp.Diff(first, readData(t, viaATIF(t, f)), timeless), "by way of ATIF (-first +again)")
			}
		})
	}
}
