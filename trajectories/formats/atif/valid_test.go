package atif_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/corpustest"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/formats"
	"github.com/minibench/mini/trajectories/formats/atif"
)

var schema = sync.OnceValues(func() (*jsonschema.Resolved, error) {
	data, err := os.ReadFile("testdata/schema/atif-1.7.json")
	if err != nil {
		return nil, err
	}
	s := &jsonschema.Schema{}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, err
	}
	return s.Resolve(nil)
})

// validTrajectory has what the rules that a schema cannot express are about.
type validTrajectory struct {
	ID    string `json:"trajectory_id"`
	Steps []struct {
		ID    int    `json:"step_id"`
		Time  string `json:"timestamp"`
		Calls []struct {
			ID string `json:"tool_call_id"`
		} `json:"tool_calls"`
		Observation struct {
			Results []struct {
				CallID *string `json:"source_call_id"`
				Refs   []struct {
					ID string `json:"trajectory_id"`
				} `json:"subagent_trajectory_ref"`
			} `json:"results"`
		} `json:"observation"`
	} `json:"steps"`
	Subagents []validTrajectory `json:"subagent_trajectories"`
}

// validate checks a document by the rules of ATIF 1.7.
func validate(t *testing.T, data []byte) error {
	t.Helper()
	resolved, err := schema()
	require.NoError(t, err)
	var document any
	var trajectory validTrajectory
	if err := json.Unmarshal(data, &document); err != nil {
		return err
	}
	if err := resolved.Validate(document); err != nil {
		return err
	}
	if err := json.Unmarshal(data, &trajectory); err != nil {
		return err
	}
	return trajectory.validate()
}

func (v validTrajectory) validate() error {
	embedded := map[string]bool{}
	for _, sub := range v.Subagents {
		if embedded[sub.ID] {
			return fmt.Errorf("two embedded trajectories %q", sub.ID)
		}
		embedded[sub.ID] = true
		if err := sub.validate(); err != nil {
			return err
		}
	}
	for i, s := range v.Steps {
		if s.ID != i+1 {
			return fmt.Errorf("step %d has the ID %d", i+1, s.ID)
		}
		if s.Time != "" && !strings.HasPrefix(s.Time, "20") {
			return fmt.Errorf("step %d: timestamp %q", s.ID, s.Time)
		}
		calls := map[string]bool{}
		for _, c := range s.Calls {
			calls[c.ID] = true
		}
		for _, r := range s.Observation.Results {
			if r.CallID != nil && !calls[*r.CallID] {
				return fmt.Errorf("step %d has no call %q", s.ID, *r.CallID)
			}
		}
	}
	return nil
}

// TestValidate compares validate with the reference implementation.
func TestValidate(t *testing.T) {
	var cases []struct {
		File  string `json:"file"`
		Valid bool   `json:"valid_v1_7_models"`
	}
	if err := json.Unmarshal(realFile(t, "cases/manifest.json"), &cases); err != nil || len(cases) < 48 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for _, c := range cases {
		assert.Equal(t, c.Valid, (validate(t, realFile(t, "cases/"+c.File)) == nil), "%s", c.File)
	}
	for _, path := range realFiles(t, "golden/*/*trajectory*.json", "mini-swe-agent/*.atif.json") {
		if err := validate(t, realFile(t, path)); err != nil {
			t.Errorf("%s: %s", path, err)
		}
	}
}

// realFile reads a real trajectory, which is not part of the repository.
func realFile(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(corpustest.RealData(t, "trajectories/atif/"+name))
	require.NoError(t, err)
	return data
}

// realFiles returns the names of real trajectories that match a pattern.
func realFiles(t *testing.T, patterns ...string) []string {
	t.Helper()
	dir := corpustest.RealData(t, "trajectories/atif")
	paths := corpustest.Glob(t, dir, patterns...)
	for i, path := range paths {
		paths[i] = filepath.ToSlash(strings.TrimPrefix(path, dir+string(filepath.Separator)))
	}
	return paths
}

// TestToolRoundTrip checks that writing and reading a document does not change mini-tool
// requests.
func TestToolRoundTrip(t *testing.T) {
	b := &journalBuilder{t: t}
	addTool := func(name string, args ...string) {
		b.add(trajectories.TypeTool, trajectories.ToolCall{
			Name: name, Args: args, Input: trajectories.Bytes("in\xff"), Dir: "/testbed", Output: trajectories.Bytes("out"), Errors: trajectories.Bytes("err"),
			ExitCode: 2, Start: b.nextTime(), Duration: trajectories.Seconds(time.Second), Details: json.RawMessage(`{"id":1}`),
		})
	}
	b.start()
	b.addCall(1, 0.25)
	b.message(trajectories.CauseReply, model.Message{Role: model.Assistant, Content: "```bash\nmini-tool note add x; mini-tool notes\n```"}, "mini-tool note add x; mini-tool notes")
	addTool("note", "add", "x")
	addTool("notes")
	b.addExecution("mini-tool note add x; mini-tool notes", "out", 0)
	b.message(trajectories.CauseObservation, model.Message{Role: model.User, Content: "<output>out</output>"})
	b.addCall(2, 0.25)
	b.message(trajectories.CauseReply, model.Message{Role: model.Assistant, Content: "```bash\nmini-tool goal list\n```"}, "mini-tool goal list")
	addTool("goal", "list")
	b.addExecution("mini-tool goal list", "diff", 0)
	b.addOutcome()
	tr := b.attempt()
	data, lost := write(t, tr, "")
	assert.Equal(t, 0, len(lost), "lost: %q", lost)
	_, reread := readAttempt(t, "t.json", data)
	numbers := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Record" }, cmp.Ignore())
	for i, e := range tr.Entries {
		assert.NoDiff(t, cmp.Diff(e.Executions, reread.Entries[i].Executions, numbers, cmpopts.EquateEmpty()), "entry %d (-want +got)", i)
	}
	assert.Equal(t, 2, len(reread.Entries[2].Executions[0].ToolCalls), "calls")
}

// readAttempt returns the attempt in a document.
func readAttempt(t *testing.T, name string, data []byte) (*formats.File, *trajectories.Attempt) {
	t.Helper()
	f, err := formats.Read(name, data)
	require.NoError(t, err)
	tr, err := trajectories.Fold(f.Records)
	require.NoError(t, err)
	return f, tr
}

// write writes a document. It returns the document and the losses.
func write(t *testing.T, tr *trajectories.Attempt, verdict string) ([]byte, []string) {
	t.Helper()
	var b bytes.Buffer
	losses, err := atif.Write(&b, tr, verdict)
	require.NoError(t, err)
	return b.Bytes(), losses
}

// TestForeignRoundTrip checks that documents of other agents are unchanged after
// reading and writing.
func TestForeignRoundTrip(t *testing.T) {
	for _, name := range realFiles(t, "golden/*/*trajectory*.json", "mini-swe-agent/*.atif.json", "cases/ok-*.json") {
		t.Run(name, func(t *testing.T) {
			data := realFile(t, name)
			f, tr := readAttempt(t, name, data)
			rewritten, losses := write(t, tr, "")
			assert.Equal(t, 0, len(losses), "losses when writing: %q", losses)
			t.Logf("%q", f.Losses)
			var want bytes.Buffer
			require.NoError(t, json.Indent(&want, bytes.TrimSpace(data), "", "  "))
			assert.NoDiff(t, cmp.Diff(want.String()+"\n", string(rewritten)), "differs (-file +written)")
		})
	}
}
