package cli

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/atif"
)

// TestRunsInTheInterchangeFormat writes real attempts of each protocol as ATIF
// and reads them again.
func TestRunsInTheInterchangeFormat(t *testing.T) {
	for _, p := range protocol.Names {
		t.Run(p, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			var out bytes.Buffer
			args := []string{
				"bench", "--subset", "demo", "-i", "minidemo__keepsake-5", "--environment-class", "local",
				"-c", "agent.protocol=" + p, "-o", dir,
			}
			if code := Main(args, Streams{In: strings.NewReader(""), Out: &out, Err: &out}); code != exitOK {
				t.Fatalf("exit code %d\n%s", code, &out)
			}
			before, err := trajectories.Gather(trajectories.Read(filepath.Join(dir, "minidemo__keepsake-5/attempts/1/journal.jsonl")))
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			lost, err := atif.Write(&b, before, "")
			if err != nil || len(lost) > 0 {
				t.Fatalf("lost %q: %v", lost, err)
			}
			for _, e := range []atif.Edition{atif.Edition7, atif.Edition8} {
				if wrong := atif.Check(b.Bytes(), e); len(wrong) > 0 {
					t.Errorf("edition %d: %v", e, wrong)
				}
			}
			prices(t, b.Bytes(), before)
			f, err := atif.Read("a.json", b.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			after, err := trajectories.Gather(f.All())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(essence(before), essence(after)); diff != "" {
				t.Errorf("(-journal +read again):\n%s", diff)
			}
		})
	}
}

// prices holds the costs of the steps against those of the calls, and looks for
// what trainers need.
func prices(t *testing.T, data []byte, tr *trajectories.Transcript) {
	t.Helper()
	var doc atif.Trajectory
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Agent.Tools) != len(tr.Header.Tools) || doc.Steps[0].Source != "system" {
		t.Errorf("%d tools; first a step of the %s", len(doc.Agent.Tools), doc.Steps[0].Source)
	}
	var is, want []float64
	for _, s := range doc.Steps {
		if s.Metrics != nil {
			is = append(is, *s.Metrics.Cost)
		}
		for i, c := range s.Calls {
			if got := s.Observation.Results[i].CallID; got == nil || *got != c.ID {
				t.Errorf("step %d: the result of %s is of another call", s.ID, c.ID)
			}
		}
	}
	for _, e := range tr.Entries {
		if e.Call != nil {
			want = append(want, float64(e.Call.Cost))
		}
	}
	if diff := cmp.Diff(want, is); diff != "" || len(is) == 0 {
		t.Errorf("costs (-calls +steps):\n%s", diff)
	}
}

// essence is what no format may change.
func essence(t *trajectories.Transcript) []any {
	all := []any{t.Header, t.Outcome, t.Diff}
	for _, e := range t.Entries {
		all = append(all, e.Message, e.Time)
		if e.Call != nil {
			all = append(all, e.Call.Usage, e.Call.Cost, e.Call.Duration)
		}
		for _, r := range e.Ran {
			all = append(all, r.Execution, r.Told)
		}
	}
	return all
}
