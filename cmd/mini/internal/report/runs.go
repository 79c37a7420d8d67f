package report

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/ui"
	"github.com/minibench/mini/internal/table"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/runner/verdicts"
)

// listedRun is a line of mini runs.
type listedRun struct {
	Folder    string              `json:"folder"`
	State     report.RunState     `json:"state"`
	Model     string              `json:"model,omitempty"`
	Dataset   string              `json:"dataset,omitempty"`
	Instances int                 `json:"instances"`
	Results   int                 `json:"with_result"`
	Resolved  *report.ResolveRate `json:"resolved,omitempty"` // of the newest evaluation; nil if there is none
	Cost      model.Cost          `json:"cost"`
	// CostUnknown counts the instances with calls that have no price: Cost is a
	// minimum.
	CostUnknown int       `json:"cost_unknown_instances,omitempty"`
	Started     time.Time `json:"started,omitzero"`
}

// NewRuns returns the command mini runs.
func NewRuns(s cmdutil.Streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "runs [FOLDER]",
		Short: "List runs",
		Long: `Lists the runs in a folder and in its sweeps, newest first: model, dataset,
results, resolved instances with the 95% interval, cost and start. FOLDER defaults
to ` + cmdutil.DefaultRunsDir + `, or to runs if only that exists. With several attempts for each
instance (-k), results and resolved instances are those of the first attempts, and
the cost is that of all.`,
		Example: `  mini runs
  mini runs runs/experiment --json | jq -r '.folder'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage.Errorf("mini runs takes one folder, not %d; see mini runs --help", len(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			dir := defaultRuns()
			if len(args) == 1 {
				dir = args[0]
			}
			return listRuns(s, dir, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line")
	return cmd
}

// defaultRuns returns the folder that is listed without an argument.
func defaultRuns() string {
	for _, dir := range []string{cmdutil.DefaultRunsDir, "runs"} {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
	}
	return cmdutil.DefaultRunsDir
}

func listRuns(s cmdutil.Streams, dir string, asJSON bool) error {
	runs, err := readRuns(s, dir)
	if errors.Is(err, os.ErrNotExist) {
		return usage.Errorf("%s: there is no such folder; pass the folder that contains your runs", dir)
	}
	if err != nil {
		return usage.Wrap(err)
	}
	if len(runs) == 0 && isRunFolder(dir) {
		return usage.Errorf("%s is a run; see mini report %s", dir, text.ShellQuote(dir))
	}
	if asJSON {
		return writeJSONLines(s.Out, runs)
	}
	if len(runs) == 0 {
		_, err := fmt.Fprintf(s.Out, "no runs in %s\n", text.Printable(dir))
		return err
	}
	return writeRuns(s.Out, dir, runs)
}

// readRuns returns the runs in a folder and in its sweeps, the newest first. It prints the
// names of runs that it cannot read.
func readRuns(s cmdutil.Streams, dir string) (runs []listedRun, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		for _, path := range runsIn(filepath.Join(dir, e.Name())) {
			run, err := runner.ReadRun(path)
			if err == nil {
				var line listedRun
				if line, err = newListedRun(run); err == nil {
					runs = append(runs, line)
				}
			}
			if err != nil {
				_, _ = fmt.Fprintln(s.Err, "mini: cannot read:", text.Printable(err.Error())) // best effort
			}
		}
	}
	slices.SortStableFunc(runs, func(a, b listedRun) int { return b.Started.Compare(a.Started) })
	return runs, nil
}

// writeJSONLines writes each value as a line of JSON.
func writeJSONLines[T any](w io.Writer, values []T) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, v := range values {
		if err := enc.Encode(v); err != nil {
			return err
		}
	}
	return nil
}

func isRunFolder(dir string) bool {
	_, err := runner.ReadRun(dir)
	return err == nil
}

func newListedRun(run *runner.Run) (listedRun, error) {
	g, err := ui.Summarize(run, nil)
	if err != nil {
		return listedRun{}, err
	}
	r := listedRun{
		Folder: run.Dir, State: g.State, Model: g.Model, Dataset: g.Dataset, Instances: g.Instances, Results: g.WithResult,
		Cost: g.Totals.Cost, CostUnknown: g.Totals.CostUnknown,
	}
	r.Resolved = newestRate(run, g)
	if len(run.Manifest.Sessions) > 0 {
		r.Started = run.Manifest.Sessions[0].Started
	}
	return r, nil
}

// newestRate returns the rate of the newest evaluation, or nil if there is none. A folder
// that was copied without its verdicts may still have verdicts in results.json.
func newestRate(run *runner.Run, g report.Summary) *report.ResolveRate {
	if n := len(g.Verdicts); n > 0 {
		return &g.Verdicts[n-1].Rate
	}
	resolved, graded := 0, false
	for _, in := range run.Instances {
		if in.Result != nil && in.Result.Verdict != nil {
			graded = true
			if *in.Result.Verdict == string(verdicts.Resolved) {
				resolved++
			}
		}
	}
	if !graded {
		return nil
	}
	rate := report.NewResolveRate(resolved, g.Instances)
	return &rate
}

// nameIn returns the name of a run in the folder that is listed.
func nameIn(dir, run string) string {
	if name, err := filepath.Rel(dir, run); err == nil {
		return name
	}
	return run
}

// stateText returns the state, which does not say "finished" of a run that lacks results.
func (r listedRun) stateText() string {
	if r.State == report.Finished && r.Results < r.Instances {
		return "incomplete"
	}
	return string(r.State)
}

func writeRuns(w io.Writer, dir string, runs []listedRun) error {
	rows := [][]string{{"run", "state", "model", "dataset", "results", "resolved", "95% interval", "cost", "started"}}
	for _, r := range runs {
		resolved, interval, started := "-", "", ""
		if r.Resolved != nil {
			resolved = fmt.Sprintf("%d of %d", r.Resolved.Resolved, r.Resolved.Of)
			interval = fmt.Sprintf("%.1f to %.1f%%", 100*r.Resolved.Low, 100*r.Resolved.High)
		}
		if !r.Started.IsZero() {
			started = r.Started.Local().Format("2006-01-02 15:04")
		}
		rows = append(rows, []string{
			nameIn(dir, r.Folder), r.stateText(), cmp.Or(r.Model, "-"), cmp.Or(r.Dataset, "-"), fmt.Sprintf("%d of %d", r.Results, r.Instances),
			resolved, interval, report.CostText(r.Cost, r.CostUnknown == 0), started,
		})
	}
	_, err := io.WriteString(w, table.Table(ui.TableWidth(w), "ilssrrrrl", rows))
	return err
}
