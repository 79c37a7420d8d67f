package formats_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories/formats"
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
	if err != nil {
		t.Fatal(err)
	}
	var f rawFile
	if err := json.Unmarshal(data, &f); err != nil {
		t.Fatal(err)
	}
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
	if err := json.Unmarshal(content, &parts); err != nil {
		t.Fatal(err)
	}
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
			if err != nil {
				t.Fatal(err)
			}
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
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-the file +the journal):\n%s", diff)
			}
		})
	}
}
