package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/report"
)

// run judges the patches and says how that ended.
func (j *evalJob) run(ctx, kill context.Context, s Streams) error {
	p := newProgress(j.display, s, heading{ids: j.ids(), patches: len(j.tasks)})
	defer p.Close()
	if err := checkCache(j.cfg.Eval.Cache); err != nil {
		return err
	}
	var err error
	if j.key, err = makeVerdictKey(); err != nil {
		return before(err)
	}
	// The engine is asked before the folder is made: where none answers, nothing
	// is left behind.
	var log *runner.Log
	boxes, err := newEvalBoxes(ctx, kill, j.cfg, j.dir, s.Err, func(e runner.Event) { log.Emit(e) })
	if err != nil {
		return err
	}
	folder, err := runner.Open(j.dir)
	if err != nil {
		return errors.Join(before(err), boxes.Close())
	}
	defer folder.Close() //nolint:errcheck // the lock ends with the process
	folder.OwnVerdicts(ownVerdict)
	log = runner.NewLog(folder, p.Event)
	log.Redact = withoutValues(j.cfg)
	sum, err := j.judge(ctx, p.Writer(), boxes, folder, log)
	p.Close()
	err = errors.Join(err, boxes.Close())
	if sum.Patches() > 0 {
		err = errors.Join(err, folder.EnterVerdicts(), j.conclude(ctx, s, sum, err))
	}
	return outOfRoom(err, sum.Patches() > 0 && sum.Complete())
}

// judge runs what is not known yet.
func (j *evalJob) judge(
	ctx context.Context, said io.Writer, boxes evalBoxes, folder *runner.Folder, log *runner.Log,
) (evaluate.Summary, error) {
	c := j.config()
	c.Folder, c.Log, c.Sandboxes = folder, log, boxes
	todo, err := j.todo(ctx, c)
	if err != nil {
		return evaluate.Summary{}, before(err)
	}
	if err := boxes.images.CheckBudget(ctx, boxes.evalNeeds(todo)); err != nil && len(todo) > 0 {
		return evaluate.Summary{}, before(err)
	}
	if err := j.announce(said, len(todo)); err != nil {
		return evaluate.Summary{}, before(err)
	}
	if len(todo) > 0 && j.patches.ofRow == nil { // the row's own patch is nobody's attack
		boxes.warn(ctx, said)
	}
	defer boxes.Expect(ctx, todo)()
	return evaluate.Run(ctx, c, j.tasks)
}

// todo are the rows that a container is needed for.
func (j *evalJob) todo(ctx context.Context, c evaluate.Config) ([]datasets.Instance, error) {
	known, err := c.Known(ctx, j.dir, j.tasks)
	var todo []datasets.Instance
	for i, class := range known {
		if class == "" || class.Failed() && c.RerunFailed > 0 {
			todo = append(todo, j.tasks[i].Instance)
		}
	}
	return todo, err
}

// announce says in two lines what is about to happen.
func (j *evalJob) announce(w io.Writer, todo int) error {
	text := fmt.Sprintf("mini eval: %s, %s of %s, %s", report.Printable(strings.Join(j.subsets, "+")), report.Count(len(j.tasks), "patch"),
		report.Printable(j.patches.name), report.Count(evalWorkers(j.cfg.Eval.Workers), "worker"))
	if n := len(j.tasks) - todo; n > 0 {
		text += fmt.Sprintf("; %d without a container", n)
	}
	_, err := fmt.Fprintf(w, "%s\nfiles go to %s\n", text, report.Printable(j.dir))
	return err
}

// evalWorkers is how many evaluations run at once.
func evalWorkers(n int) int {
	if n > 0 {
		return n
	}
	return max(1, runtime.NumCPU()/2)
}

// ids are the instances that have a patch, each once.
func (j *evalJob) ids() []string {
	var ids []string
	for _, t := range j.tasks {
		if n := len(ids); n == 0 || ids[n-1] != t.Instance.ID { // the samples of one stand together
			ids = append(ids, t.Instance.ID)
		}
	}
	return ids
}

// evalResult is what mini eval --json prints.
type evalResult struct {
	Run     string           `json:"run"` // the folder
	RunID   string           `json:"run_id"`
	Summary evaluate.Summary `json:"summary"`
	Score   report.Score     `json:"score"`
	Samples *report.Samples  `json:"samples,omitempty"` // where the run has several results an instance
}

// conclude shows the score and picks how the command ends.
func (j *evalJob) conclude(ctx context.Context, s Streams, sum evaluate.Summary, failed error) error {
	e := report.Evaluation{
		RunID: j.runID, Records: sum.Records, Unfinished: sum.Unfinished,
		IDs: j.ids(), Official: sum.Official, Now: time.Now(),
	}
	if j.patches.run != "" {
		if run, err := runner.ReadRun(j.patches.run); err == nil {
			e.Run = run
		}
	}
	score := report.NewScore(e)
	var samples *report.Samples
	if e.Run != nil && len(j.patches.further) > 0 {
		samples = report.SamplesOf(e.Run, j.ids())
	}
	var err error
	if j.json {
		err = json.NewEncoder(s.Out).Encode(evalResult{j.dir, j.runID, sum, score, samples})
	} else {
		err = score.Write(s.Out, widthOf(s.Out))
		if samples != nil {
			err = errors.Join(err, samples.Write(s.Out, widthOf(s.Out)))
		}
		err = errors.Join(err, j.sayWithout(s.Out))
	}
	switch {
	case err != nil || failed != nil:
		return err
	case sum.Complete():
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%w; the same command with -o %s goes on", agent.ErrInterrupted, j.dir)
	}
	return errIncomplete
}

// sayWithout says that instances which were asked for have no patch.
func (j *evalJob) sayWithout(w io.Writer) error {
	n := len(j.selected) - len(j.ids())
	if n == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "\n%d of the %s have no patch here; the official summary counts them\n", n, report.Count(len(j.selected), "instance"))
	return err
}
