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

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/ui"
	"github.com/minibench/mini/internal/doc"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/runner/runs"
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
	NoRate    string              `json:"no_rate,omitempty"`  // why the newest evaluation has no rate
	Cost      model.Cost          `json:"cost"`
	// CostUnknown counts the instances with calls that have no price: Cost is a
	// minimum.
	CostUnknown int       `json:"cost_unknown_instances,omitempty"`
	Started     time.Time `json:"started,omitzero"`
}

// NewRuns returns the command mini runs.
func NewRuns(a *app.App) *cobra.Command {
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
			dir := cmdutil.RunsDir()
			if len(args) == 1 {
				dir = args[0]
			}
			return listRuns(a, dir, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line")
	return cmd
}

func listRuns(a *app.App, dir string, asJSON bool) error {
	list, err := readRuns(a, dir)
	if errors.Is(err, os.ErrNotExist) {
		return usage.Errorf("%s: there is no such folder; pass the folder that contains your runs", dir)
	}
	if err != nil {
		return usage.Wrap(err)
	}
	if len(list) == 0 {
		if _, err := runs.Open(dir); err == nil {
			return usage.Errorf("%s is a run; see mini report %s", dir, text.ShellQuote(dir))
		}
	}
	if asJSON {
		return writeJSONLines(a.Out, list)
	}
	if len(list) == 0 {
		_, err := fmt.Fprintf(a.Out, "no runs in %s\n", text.Printable(dir))
		return err
	}
	return a.PrintNames(runsDoc(dir, list))
}

// readRuns returns the runs in a folder and in its sweeps, the newest first. It prints the
// names of runs that it cannot read.
func readRuns(a *app.App, dir string) (list []listedRun, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		for _, path := range runsIn(filepath.Join(dir, e.Name())) {
			run, err := runs.Read(path)
			if err == nil {
				var line listedRun
				if line, err = newListedRun(run); err == nil {
					list = append(list, line)
				}
			}
			if err != nil {
				_, _ = fmt.Fprintln(a.Err, "mini: cannot read:", text.Printable(err.Error())) // best effort
			}
		}
	}
	slices.SortStableFunc(list, func(a, b listedRun) int { return b.Started.Compare(a.Started) })
	return list, nil
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

func newListedRun(run *runs.Run) (listedRun, error) {
	g, err := ui.Summarize(run, nil)
	if err != nil {
		return listedRun{}, err
	}
	r := listedRun{
		Folder: run.Dir, State: g.State, Model: g.Model, Dataset: g.Dataset, Instances: g.Instances, Results: g.WithResult,
		Cost: g.Totals.Cost, CostUnknown: g.Totals.CostUnknown,
	}
	if n := len(g.Verdicts); n > 0 {
		r.Resolved, r.NoRate = g.Verdicts[n-1].Rate, g.Verdicts[n-1].NoRate
	} else {
		r.Resolved = savedRate(run, g)
	}
	if len(run.Manifest.Sessions) > 0 {
		r.Started = run.Manifest.Sessions[0].Started
	}
	return r, nil
}

// savedRate returns the rate of the verdicts in results.json, or nil if there are none: a
// folder may have been copied without its verdicts.
func savedRate(run *runs.Run, g report.Summary) *report.ResolveRate {
	resolved, graded := 0, false
	for _, in := range run.Instances {
		if in.Result != nil && in.Result.Verdict != nil {
			class := verdicts.Class(*in.Result.Verdict)
			graded = graded || class.IsVerdict()
			if class == verdicts.Resolved {
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

func runsDoc(dir string, runs []listedRun) *doc.Doc {
	rows := [][]string{{"run", "state", "model", "dataset", "results", "resolved", "95% interval", "cost", "started"}}
	var amounts []float64
	for _, r := range runs {
		amounts = append(amounts, float64(r.Cost))
	}
	cost := unit.CostColumn(amounts...)
	for _, r := range runs {
		resolved, interval, started := "-", "", ""
		if r.Resolved != nil {
			resolved = fmt.Sprintf("%d of %d", r.Resolved.Resolved, r.Resolved.Of)
			interval = unit.Range(r.Resolved.Low, r.Resolved.High) + "%"
		}
		if !r.Started.IsZero() {
			started = r.Started.Local().Format("2006-01-02 15:04")
		}
		rows = append(rows, []string{
			nameIn(dir, r.Folder), r.stateText(), cmp.Or(r.Model, "-"), cmp.Or(r.Dataset, "-"), fmt.Sprintf("%d of %d", r.Results, r.Instances),
			resolved, interval, cost(float64(r.Cost), r.CostUnknown == 0), started,
		})
	}
	d := &doc.Doc{}
	d.Table("ilssrrrrl", rows)
	for _, r := range runs {
		if r.NoRate != "" {
			d.Paragraph(nameIn(dir, r.Folder)+": "+r.NoRate, 0, 3)
		}
	}
	return d
}
