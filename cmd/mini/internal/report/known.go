package report

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/task/sessions"
	"github.com/minibench/mini/internal/doc"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/internal/userdirs"
	"github.com/minibench/mini/model"
)

// maxKnown is the number of sessions and runs that mini inspect lists without --all.
const maxKnown = 20

// known is a session or a run in the list of mini inspect.
type known struct {
	Kind    string     `json:"kind"`             // "session" or "run"
	Path    string     `json:"path"`             // of the trajectory of a session, or of the run's folder
	Folder  string     `json:"folder,omitempty"` // that the session worked in
	Task    string     `json:"task"`             // first line of the task, or the dataset
	Model   string     `json:"model,omitempty"`
	Started time.Time  `json:"started,omitzero"`
	Outcome string     `json:"outcome"`
	Cost    model.Cost `json:"cost"`
	// CostIsMinimum means that the price of some calls is unknown.
	CostIsMinimum bool `json:"cost_is_minimum,omitempty"`
}

// listKnown prints the sessions of all folders and the runs of the current folder.
func listKnown(a *app.App, all, asJSON bool) error {
	list, total, err := readKnown(a, all)
	switch {
	case err != nil:
		return err
	case asJSON:
		return writeJSONLines(a.Out, list)
	case len(list) == 0:
		_, err := fmt.Fprintln(a.Out, "no sessions yet, and no runs in this folder; mini inspect PATH shows any trajectory, mini inspect . those of this folder")
		return err
	}
	return a.PrintNames(knownDoc(list, total))
}

// pathOfRow returns the path of a row of the list, if arg is the number of a row and not the name
// of a file or folder; else arg.
func pathOfRow(a *app.App, arg string, all bool) (string, error) {
	row, notNumber := strconv.Atoi(arg)
	if cmdutil.FileExists(arg) || notNumber != nil {
		return arg, nil //nolint:nilerr // a path
	}
	list, _, err := readKnown(a, all)
	if err == nil && (row < 1 || row > len(list)) {
		err = usage.Errorf("%s: there is no such file or folder, and the list of mini inspect has %s", arg, text.Count(len(list), "row"))
	}
	if err != nil {
		return arg, err
	}
	return list[row-1].Path, nil
}

// readKnown returns the sessions of all folders and the runs of the current folder, the newest
// first, and the number of all of them. Without all, it returns at most maxKnown.
func readKnown(a *app.App, all bool) (list []known, total int, err error) {
	stored := sessions.ListAll(filepath.Join(userdirs.StateDir(), "mini", "sessions"))
	runs, err := readRuns(a, cmdutil.RunsDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, 0, err
	}
	total = len(stored) + len(runs)
	if !all { // the others need not be read
		stored, runs = stored[:min(len(stored), maxKnown)], runs[:min(len(runs), maxKnown)]
	}
	list = make([]known, 0, len(stored)+len(runs))
	for _, session := range stored {
		i := session.Info()
		path := i.Journal
		if cmdutil.FileExists(i.Trajectory) {
			path = i.Trajectory
		}
		list = append(list, known{
			Kind: "session", Path: path, Folder: i.Folder, Task: strings.TrimSpace(text.FirstLine(strings.TrimSpace(i.Task))),
			Model: i.Model, Started: i.Started, Outcome: i.End, Cost: i.Cost, CostIsMinimum: i.Unpriced,
		})
	}
	for _, r := range runs {
		outcome := r.stateText()
		if r.Resolved != nil {
			outcome = fmt.Sprintf("%d of %d resolved", r.Resolved.Resolved, r.Resolved.Of)
		}
		list = append(list, known{
			Kind: "run", Path: r.Folder, Task: cmp.Or(r.Dataset, "-"), Model: r.Model, Started: r.Started, Outcome: outcome,
			Cost: r.Cost, CostIsMinimum: r.CostUnknown > 0,
		})
	}
	slices.SortStableFunc(list, func(a, b known) int { return b.Started.Compare(a.Started) })
	if !all {
		list = list[:min(len(list), maxKnown)]
	}
	return list, total, nil
}

// knownDoc returns the list as a table, and how to open a row.
func knownDoc(list []known, total int) *doc.Doc {
	rows := [][]string{{"", "started", "task", "folder", "model", "outcome", "cost"}}
	var amounts []float64
	for _, k := range list {
		amounts = append(amounts, float64(k.Cost))
	}
	cost := unit.CostColumn(amounts...)
	for i, k := range list {
		folder, started := k.Folder, ""
		if k.Kind == "run" {
			folder = k.Path
		}
		if !k.Started.IsZero() {
			started = k.Started.Local().Format("2006-01-02 15:04")
		}
		rows = append(rows, []string{
			strconv.Itoa(i + 1), started, text.OneLine(k.Task), shortPath(folder), cmp.Or(k.Model, "-"), k.Outcome, cost(float64(k.Cost), !k.CostIsMinimum),
		})
	}
	d := &doc.Doc{}
	d.Table("rlsislr", rows)
	d.Blank()
	if total > len(list) {
		d.Line(0, "%d more: mini inspect --all", total-len(list))
	}
	d.Line(0, "to open row 1: mini inspect 1")
	return d
}

// changedFlag returns the first of the flags that is set; "" if none is.
func changedFlag(cmd *cobra.Command, names ...string) string {
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			return name
		}
	}
	return ""
}

// shortPath returns path with ~ for the user's home.
func shortPath(path string) string {
	home, err := os.UserHomeDir()
	if rel, ok := strings.CutPrefix(path, home+string(filepath.Separator)); err == nil && home != "" && ok {
		return filepath.Join("~", rel)
	}
	return path
}
