package bench

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/ui"
	"github.com/minibench/mini/cmd/mini/internal/ui/progress"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/doc"
	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/internal/usage"
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

// liveController executes the requests of the live view, for one run or the runs of a sweep.
type liveController []*Job

// find returns the job of a task and the task's id in that run.
func (c liveController) find(task string) (*Job, string) {
	for _, a := range c {
		if id, ok := strings.CutPrefix(task, a.label); ok {
			return a, id
		}
	}
	return nil, ""
}

// Execute implements live.Controller. A request without a task is for all runs.
func (c liveController) Execute(request runner.ControlRequest) (effect string, err error) {
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
func (c liveController) Resources() ([]control.Provider, control.Disk) { return c[0].ctl.Resources() }

// JournalPath implements live.Controller.
func (c liveController) JournalPath(instance string, attempt int) string {
	a, id := c.find(instance)
	if a == nil {
		return ""
	}
	return a.folder.Journal(id, attempt)
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
	d := &doc.Doc{}
	d.Line(0, "sweep %s", dir)
	d.Blank()
	d.Table(columns, rows)
	var b strings.Builder
	b.WriteString(d.Text(ui.TableWidth(a.Out)))
	for _, a := range all {
		err = errors.Join(err, a.printKept(&b))
	}
	next := "mini report COMBINATION shows a run; mini eval evaluates it"
	if verdicts {
		next = "mini compare " + text.ShellQuote(dir) + "/* compares the combinations"
	}
	fmt.Fprintf(&b, "\n%s\n", text.Printable(next))
	_, writeErr := io.WriteString(a.Out, b.String())
	return errors.Join(err, writeErr)
}

// maxCombinations is the maximum number of combinations of a sweep.
const maxCombinations = 100

// Limits of folder names, in bytes. File systems allow 255.
const (
	maxValueName       = 40
	maxCombinationName = 200
)

// combination is one combination of the values of a sweep.
type combination struct {
	name     string            // of the folder
	values   string            // the values as in the name, without the keys
	settings map[string]string // values by key
	layers   []configs.Layer
}

// combine returns all combinations of the values. The last setting varies fastest.
func combine(vary []configs.Varied) ([]combination, error) {
	n := 1
	for _, v := range vary {
		if n *= len(v.Values); n > maxCombinations {
			return nil, usage.Errorf("the values of --vary or vary have more than %d combinations; leave some out, or run several sweeps", maxCombinations)
		}
	}
	labels := shortKeys(vary)
	all := []combination{{}}
	for i, v := range vary {
		var longer []combination
		for _, c := range all {
			for _, value := range v.Values {
				next := combination{settings: map[string]string{v.Key: value.Text}, layers: append(slices.Clip(c.layers), value.Layer)}
				for key, text := range c.settings {
					next.settings[key] = text
				}
				text := fileName(value.Text, maxValueName)
				next.name = strings.TrimPrefix(c.name+","+labels[i]+"="+text, ",")
				next.values = strings.TrimPrefix(c.values+","+text, ",")
				longer = append(longer, next)
			}
		}
		all = longer
	}
	seen := map[string]bool{}
	for i := range all {
		all[i].name = limitName(all[i].name, all[i].name, maxCombinationName)
		folded := strings.ToLower(all[i].name) // some file systems ignore case
		if seen[folded] {
			return nil, usage.Errorf("two combinations have the folder name %s; leave one of the values out", all[i].name)
		}
		seen[folded] = true
	}
	return all, nil
}

// shortKeys returns, for each setting, the shortest end of its key that no other varied key has:
// model_name for model.model_name.
func shortKeys(vary []configs.Varied) []string {
	labels := make([]string, len(vary))
	for i, v := range vary {
		parts := strings.Split(v.Key, ".")
		for n := len(parts) - 1; n >= 0; n-- {
			labels[i] = strings.Join(parts[n:], ".")
			if !slices.ContainsFunc(vary, func(o configs.Varied) bool { return o.Key != v.Key && strings.HasSuffix("."+o.Key, "."+labels[i]) }) {
				break
			}
		}
		labels[i] = fileName(labels[i], maxValueName)
	}
	return labels
}

// unsafeChars matches characters that need quotes in a shell, or separate the parts of a name.
var unsafeChars = lazyregexp.New(`[^A-Za-z0-9._+-]+`)

// fileName returns a text as part of a file name. If that is not the text itself, it ends in a
// hash of the text, so that the names of different texts differ.
func fileName(s string, limit int) string {
	if s == "" {
		return "empty"
	}
	return limitName(unsafeChars.ReplaceAllString(s, "-"), s, limit)
}

// limitName limits a name and, if it is not equal to s then, adds a hash of s.
func limitName(name, s string, limit int) string {
	if len(name) > limit {
		name = name[:limit]
	}
	if name == s && name != "" {
		return name
	}
	sum := sha256.Sum256([]byte(s))
	return name + "-" + hex.EncodeToString(sum[:4])
}

// varied returns the settings that --vary and the files of -c vary; --vary replaces the values of a
// file. It returns an error for a setting that cannot vary, or that a flag or -c KEY=VALUE sets, too.
func (o *Options) varied(a *app.App) ([]configs.Varied, error) {
	err := a.LoadDotenv()
	if err == nil {
		err = o.Collect(o.BuiltinConfigs()...)
	}
	var overlay *configs.Overlay
	if err == nil {
		overlay, err = o.Overlay(o.BuiltinConfigs()...)
	}
	switch {
	case err != nil && len(o.vary) == 0:
		return nil, nil // resolve returns this error, after those that it finds before
	case err != nil:
		return nil, err
	}
	vary := overlay.Vary()
	fromFlags := map[string]bool{}
	for _, arg := range o.vary {
		v, err := configs.ParseVaried(arg)
		switch {
		case err != nil:
			return nil, err
		case fromFlags[v.Key]:
			return nil, usage.Errorf("%s is given twice; list all its values in one --vary", v.Origin)
		}
		fromFlags[v.Key] = true
		vary = v.AddTo(vary)
	}
	for _, v := range vary {
		for _, value := range v.Values {
			for _, key := range value.Layer.Keys() {
				if !canVary(key) {
					return nil, usage.Errorf("%s: %s is the same for all combinations of a sweep; set it with its flag or -c", v.Origin, key)
				}
			}
		}
		isFlag := func(layer string) bool {
			return strings.HasPrefix(layer, "-c ") || strings.HasPrefix(layer, "--") && !strings.HasPrefix(layer, "--profile ")
		}
		if origin, ok := overlay.IsSet(v.Key, isFlag); ok {
			return nil, usage.Errorf("%s: %s sets it, too; leave one out", v.Origin, origin)
		}
	}
	return vary, nil
}

// canVary reports whether a setting can vary in a sweep: it affects the results, and does not
// belong to what all combinations share.
func canVary(key string) bool {
	return runner.AffectsResults(key) && key != "environment.helper_dir" && key != "environment.pull_timeout"
}

// name returns the name of the combination; "" without a sweep.
func (j *Job) name() string {
	if j.combination == nil {
		return ""
	}
	return j.combination.name
}

// topFolder returns the folder of -o: that of the run, or the one with the runs of a sweep.
func (j *Job) topFolder() string {
	if j.combination == nil {
		return j.Dir
	}
	return filepath.Dir(j.Dir)
}

// located adds the combination to an error.
func (j *Job) located(err error) error {
	if err == nil || j.combination == nil {
		return err
	}
	return fmt.Errorf("combination %s: %w", j.combination.name, err)
}

// combinationsText returns the number of combinations in words.
func combinationsText(n int) string { return text.Count(n, "combination") }
