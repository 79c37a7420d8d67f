package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/ui"
	"github.com/minibench/mini/cmd/mini/internal/ui/progress"
	"github.com/minibench/mini/internal/table"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/compare"
	"github.com/minibench/mini/runner/control"
)

// onceWriter drops what was written before, such as notes that apply to all combinations.
type onceWriter struct {
	w    io.Writer
	mu   sync.Mutex
	seen map[string]bool
}

// notesWriter returns the writer for the notes about n jobs.
func notesWriter(w io.Writer, n int) io.Writer {
	if n == 1 {
		return w
	}
	return &onceWriter{w: w, seen: map[string]bool{}}
}

// Write implements io.Writer.
func (o *onceWriter) Write(note []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen[string(note)] {
		return len(note), nil
	}
	o.seen[string(note)] = true
	return o.w.Write(note)
}

// maxLabel is the maximum length of the values in a label. The display limits the length of a
// label with the instance.
const maxLabel = 20

// setLabels sets what precedes the instance ids of each job in the display: the values of the
// combination or, if those of some combination are long, its number. For programs, it is the name of
// the combination. The label of a single job is empty.
func setLabels(jobs []*Job) {
	isLong := slices.ContainsFunc(jobs, func(j *Job) bool { return j.combination != nil && len(j.combination.values) > maxLabel })
	for i, j := range jobs {
		switch {
		case j.combination == nil:
		case j.Progress == progress.JSON:
			j.label = j.name() + "/"
		case isLong:
			j.label = fmt.Sprintf("%d/", i+1)
		default:
			j.label = j.combination.values + "/"
		}
	}
}

// mergedEvents passes the events of several runs to one display, as if they were one run.
type mergedEvents struct {
	mu                sync.Mutex
	show              func(runner.Event)
	runs              []mergedRun
	started, finished int // number of runs
}

// mergedRun has the numbers of tasks of a run.
type mergedRun struct{ total, skipped int }

// from returns the function that shows the events of run i. label precedes their instance ids.
func (m *mergedEvents) from(i int, label string) func(runner.Event) {
	if label == "" {
		return m.show
	}
	return func(e runner.Event) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if e.Instance != "" {
			e.Instance = label + e.Instance
		}
		switch e.Type {
		case runner.RunStarted:
			m.runs[i] = mergedRun{e.Total, e.Skipped}
			m.started++
			if e.Total, e.Skipped = m.sums(); m.started < len(m.runs) {
				return
			}
		case runner.RunFinished:
			if m.finished++; m.finished < len(m.runs) {
				return
			}
		case runner.ControlApplied: // its total has no skipped tasks
			m.runs[i].total = e.Total + m.runs[i].skipped
			total, skipped := m.sums()
			e.Total = total - skipped
			if e.Instance == "" && e.Source == runner.SourceLiveView && i > 0 {
				return // the request was sent to all runs
			}
		}
		m.show(e)
	}
}

func (m *mergedEvents) sums() (total, skipped int) {
	for _, r := range m.runs {
		total, skipped = total+r.total, skipped+r.skipped
	}
	return total, skipped
}

// sweepController executes the requests of the live view of a sweep.
type sweepController []*Job

// find returns the job of a task and the task's id in that run.
func (c sweepController) find(task string) (*Job, string) {
	for _, a := range c {
		if id, ok := strings.CutPrefix(task, a.label); ok {
			return a, id
		}
	}
	return nil, ""
}

// Execute implements live.Controller. A request without a task is for all runs.
func (c sweepController) Execute(request runner.ControlRequest) (effect string, err error) {
	if request.TaskID != "" {
		a, id := c.find(request.TaskID)
		if a == nil {
			return "", &runner.UnknownTaskError{TaskID: request.TaskID}
		}
		request.TaskID = id
		return a.ctl.Execute(request)
	}
	for _, a := range c {
		text, runErr := a.ctl.Execute(request)
		if runErr == nil {
			effect = text // some runs may have ended
		}
		err = runErr
	}
	if effect != "" {
		err = nil
	}
	return effect, err
}

// Resources implements live.Controller.
func (c sweepController) Resources() ([]control.Provider, control.Disk) { return c[0].ctl.Resources() }

// JournalPath implements live.Controller.
func (c sweepController) JournalPath(instance string, attempt int) string {
	a, id := c.find(instance)
	if a == nil {
		return ""
	}
	return a.ctl.JournalPath(id, attempt)
}

// printSweep prints the results of a sweep: a table, or JSON.
func printSweep(a *app.App, all []*Job) (err error) {
	dir := all[0].topFolder()
	if all[0].Options.JSON {
		results := make([]map[string]any, len(all))
		for i, a := range all {
			var scoreErr error
			results[i], scoreErr = a.jsonResult()
			results[i]["combination"], results[i]["settings"] = a.name(), a.combination.settings
			err = errors.Join(err, scoreErr)
		}
		return errors.Join(err, json.NewEncoder(a.Out).Encode(map[string]any{"folder": dir, "combinations": results}))
	}
	rows := [][]string{{"combination", "results", "resolved", "95% interval", "no verdict", "cost"}}
	verdicts := false
	for _, a := range all {
		run, err := compare.Load(a.Dir)
		if err != nil {
			return err
		}
		sum := compare.Summarize(run, compare.Drop)
		row := []string{
			a.name(), fmt.Sprintf("%d of %d", a.sum.Results(), a.sum.ExpectedResults()), "-", "-",
			fmt.Sprint(sum.MissingAttempts), unit.Cost(float64(sum.Cost.Total), sum.Cost.Known),
		}
		if sum.Rate.Instances > 0 {
			row[2], verdicts = unit.Percent(sum.Rate.Mean), true
		}
		if i := sum.Rate.Interval; i != nil {
			row[3] = unit.Range(i.Low, i.High)
		}
		rows = append(rows, row)
	}
	columns := "irrrrr"
	if !verdicts {
		columns = "irr"
		for i, row := range rows {
			rows[i] = []string{row[0], row[1], row[5]}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "sweep %s\n\n%s", text.Printable(dir), table.Table(ui.TableWidth(a.Out), columns, rows))
	for _, a := range all {
		err = errors.Join(err, printKept(&b, a.sum.KeptSandboxes, a.sandboxes.Class, a.Dir))
	}
	next := "mini report COMBINATION shows a run; mini eval evaluates it"
	if verdicts {
		next = "mini compare " + text.ShellQuote(dir) + "/* compares the combinations"
	}
	fmt.Fprintf(&b, "\n%s\n", text.Printable(next))
	_, writeErr := io.WriteString(a.Out, b.String())
	return errors.Join(err, writeErr)
}
