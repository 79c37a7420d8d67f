package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/cmd/mini/internal/doctor"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/replay"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/trajectories"
)

// job is a batch that is ready to be run.
type job struct {
	*benchOptions
	cfg    *configs.Resolved
	work   workload
	agent  *agent.Agent
	models runner.Models
	dir    string
	// earlier is what the folder holds already.
	earlier *runner.Run
	// can is what commands can ask for, told what the model is told of it.
	can  *abilities
	told agent.Abilities
	// display is the kind of progress that fits.
	display string
	// branch is where attempts begin, where that is not their beginning.
	branch *runner.Branch
	// obstacle is why a dry run's batch would not start.
	obstacle error
	// verdicts are how the evaluation ended; nil where there was none.
	verdicts *evaluate.Summary
}

// run works the batch and says how it ended.
func (j *job) run(ctx, kill context.Context, s Streams) error {
	p := newProgress(j.display, s, heading{
		dataset: j.work.dataset.Name, model: modelName(j.cfg), folder: j.dir, ids: ids(j.work.rows), judged: j.cfg.Run.Eval,
	})
	defer p.Close()
	if j.cfg.Run.Eval {
		if err := checkCache(j.cfg.Eval.Cache); err != nil {
			return err
		}
	}
	if j.events == "-" {
		return usagef("--events -: stdout has the results of a batch; name a file")
	}
	l, err := openEvents(j.events, s, withoutValues(j.cfg))
	if err != nil {
		return err
	}
	defer l.Close()
	if j.can, err = newAbilities(ctx, j.cfg); err != nil {
		return before(err)
	}
	defer j.can.Close() //nolint:errcheck // what it had connected to ends with the process
	if j.told, err = j.can.told(); err != nil {
		return before(err)
	}
	if err := sayUntold(s.Err, j.agent, j.told); err != nil {
		return before(err)
	}
	// The engine is asked before the folder is made: where none answers, no
	// empty run is left behind.
	var log *runner.Log
	boxes, err := newSandboxes(ctx, kill, j.cfg, j.isDemo(), j.fallsBack(), j.dir, s.Err, func(e runner.Event) { log.Emit(e) })
	if err != nil {
		return err
	}
	boxes.scrubOnce(j.cfg)
	if err := boxes.fit(ctx, j.todo()); err != nil {
		return errors.Join(before(err), boxes.Close())
	}
	folder, err := runner.Open(j.dir)
	if err != nil {
		return errors.Join(before(err), boxes.Close())
	}
	defer folder.Close() //nolint:errcheck // the lock ends with the process
	folder.OwnVerdicts(ownVerdict)
	var g *judge
	d := &desk{folder: folder, models: j.models, images: boxes.images}
	log = runner.NewLog(folder, func(e runner.Event) { //nolint:contextcheck // what an event starts has the judge's context
		p.Event(e)
		g.event(e)
		d.watch.Event(e)
	})
	log.Redact = withoutValues(j.cfg)
	d.open(ctx, log)
	defer d.Close() //nolint:errcheck // a second time, where the run came to its end
	p.desk = d
	listen(j.models, log.Emit)
	if g, err = j.newJudge(ctx, s.Err, boxes, folder, log); err != nil {
		return errors.Join(err, boxes.Close())
	}
	supervise, err := newSupervisors(j.cfg, boxes.class)
	if err != nil {
		return errors.Join(before(err), boxes.Close())
	}
	j.can.warn(s.Err)
	ignore, err := replay.ParseIgnore(j.cfg.Replay.Ignore)
	if err != nil {
		return errors.Join(before(err), boxes.Close())
	}
	b := runner.Batch{
		Supervise: supervise, Tools: j.can.forAttempt,
		Folder: folder, Agent: j.agent, Sandboxes: boxes, Models: j.models, ModelName: modelName(j.cfg), Log: log,
		Workers: j.cfg.Run.Workers, Samples: j.cfg.Run.Attempts, MaxTries: j.cfg.Run.MaxTries, MaxProviderFailures: j.cfg.Run.MaxProviderFailures,
		Budget: runner.Budget{Cost: j.cfg.Run.TotalCostLimit, Calls: j.cfg.Run.TotalCalls},
		Redo:   j.redo, ResumeAttempts: j.cfg.Run.ResumeAttempts, Force: j.force, Ignore: ignore, Sync: j.cfg.Run.Fsync, Keep: keeps(j.cfg.Run.Keep), Branch: j.branch,
		Control: &d.control,
	}
	if l != nil {
		b.Events = l.attempt
	}
	if g != nil {
		b.Sandboxes, b.Submitted = g, g.submission
	}
	sum, err := j.begin(ctx, p.Writer(), &b, boxes.class)
	if g != nil {
		verdicts, failed := g.wait(ctx, p.Writer(), err)
		j.verdicts, err = &verdicts, errors.Join(err, failed, folder.EnterVerdicts())
	}
	err = errors.Join(err, d.Close())
	p.Close() // the summary goes on the screen as it was
	err = errors.Join(err, boxes.Close(), j.conclude(ctx, s, sum, folder, boxes.class, err))
	return outOfRoom(err, sum.Instances > 0 && j.complete(sum))
}

// complete says that every instance has a result and, where that was asked for,
// every submission a verdict.
func (j *job) complete(sum runner.Summary) bool {
	return sum.Complete() && (j.verdicts == nil || j.verdicts.Complete())
}

// explain is --dry-run.
func (j *job) explain(ctx context.Context, s Streams) error {
	p, err := newPlan(ctx, j)
	if err != nil {
		return err
	}
	if j.json {
		err = json.NewEncoder(s.Out).Encode(p)
	} else {
		err = printPlan(s.Out, p)
	}
	if err == nil && p.Obstacle != "" {
		err = usagef("it would not start; see the plan")
	}
	return err
}

// earlier reads the run that a folder holds; an empty one where it holds
// nothing, or is not there.
func earlier(dir string) (*runner.Run, error) {
	if err := runner.Fit(dir); err != nil {
		return nil, err
	}
	run, err := runner.ReadRun(dir)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, runner.ErrNoRun) {
		return &runner.Run{}, nil
	}
	return run, err
}

// suits finds what would spoil the run: another model's results in its folder,
// and more workers than this process may have files for.
func (j *job) suits() error {
	selected := map[string]bool{}
	for _, in := range j.work.rows {
		selected[in.ID] = true
	}
	left, k := len(selected), max(1, j.cfg.Run.Attempts)
	for _, in := range j.earlier.Instances {
		if j.redo && selected[in.ID] {
			continue // it has its results not for long
		}
		if selected[in.ID] && in.Missing(k) == 0 {
			left--
		}
		for _, r := range in.Samples {
			if !r.Class.Counts() || r.Sample > k {
				continue
			}
			if theirs := in.Model(r.Attempt); theirs != "" && theirs != modelName(j.cfg) {
				return usagef("%s has results of the model %.80s; predictions of two do not mix: give another folder with -o, or that model with -m", j.dir, theirs)
			}
		}
	}
	return doctor.Files(min(j.cfg.Run.Workers, left))
}

// hasRepositories refuses rows whose repositories only images have, where there are
// no images: every attempt would work in an empty folder.
func (j *job) hasRepositories() error {
	if !onHost(j.cfg.Environment.Class) || j.isDemo() || j.emptyFolder {
		return nil
	}
	if err := kept(j.cfg, j.cfg.Environment.Class); err != nil {
		return err
	}
	var without []string
	for _, in := range j.work.rows {
		if in.Repo != "" {
			without = append(without, in.ID)
		}
	}
	if len(without) == 0 {
		return nil
	}
	return usagef("%d of %s have a repository that the %s environment does not have, the first is %s; use --environment-class docker, or --empty-folder to begin in an empty folder",
		len(without), report.Count(len(j.work.rows), "row"), j.cfg.Environment.Class, without[0])
}

// fallsBack says that without an engine the commands would run on this
// machine. That is only for the demo, and for who asked for nothing else.
func (j *job) fallsBack() bool {
	return j.isDemo() && byDefault(j.cfg) && os.Getenv("DOCKER_HOST") == ""
}

// begin writes down what is run, says it, and runs it.
func (j *job) begin(ctx context.Context, said io.Writer, b *runner.Batch, environmentClass string) (runner.Summary, error) {
	config, err := j.cfg.YAML()
	if err != nil {
		return runner.Summary{}, before(err)
	}
	if b.Header, err = headerOf(j.cfg, environmentClass); err != nil {
		return runner.Summary{}, before(err)
	}
	can, err := j.can.manifest()
	if err != nil {
		return runner.Summary{}, before(err)
	}
	if c := j.cfg.Agent.Compaction; can == nil && c != "" && c != "off" {
		can = &runner.Abilities{Compaction: c}
	}
	changed, err := b.Folder.Begin(runner.Manifest{
		Profile: j.profile(), Abilities: can,
		MiniVersion: Version,
		Dataset:     j.work.dataset,
		Model:       runner.Named{Class: j.cfg.Model.Class, Name: modelName(j.cfg)},
		Environment: runner.Named{Class: environmentClass, Name: j.cfg.Environment.Image},
	}, config)
	if err != nil {
		return runner.Summary{}, before(err)
	}
	if err := announce(said, j.command(), j.cfg, j.work.dataset.Name, len(j.work.rows), environmentClass, b.Folder.Dir()); err != nil {
		return runner.Summary{}, before(err)
	}
	if len(changed) > 0 {
		b.Log.Emit(runner.Event{
			Type: runner.Warning,
			Text: "an earlier session in this folder had another " + strings.Join(changed, " and another ") + "; its results stay",
		})
	}
	return b.Run(ctx, j.work.rows)
}

// command is what the user called.
func (j *job) command() string {
	if j.branch != nil {
		return "mini replay"
	}
	return "mini bench"
}

// announce says in two lines what is about to happen.
func announce(w io.Writer, command string, cfg *configs.Resolved, set string, n int, class, dir string) error {
	_, err := fmt.Fprintf(w, "%s: %s, %s, %s, %s sandboxes, model %s\nfiles go to %s\n",
		command, report.Printable(set), report.Count(n, "instance"), report.Count(cfg.Run.Workers, "worker"), class, report.Printable(modelName(cfg)), report.Printable(dir))
	if err == nil && cfg.Model.Class == "scripted" {
		_, err = fmt.Fprintln(w, "the replies are scripted: no model is called, and all else is real")
	}
	return err
}

// conclude writes the summary and picks how the command ends.
func (j *job) conclude(ctx context.Context, s Streams, sum runner.Summary, folder *runner.Folder, class string, failed error) error {
	if failed != nil && sum.Instances == 0 {
		return nil // it never came to a run
	}
	err := folder.End(sum)
	if j.json {
		res, failed := j.result(sum, folder.Dir())
		err = errors.Join(err, failed, json.NewEncoder(s.Out).Encode(res))
	} else {
		err = errors.Join(err, glance(s.Out, sum, folder.Dir(), ids(j.work.rows)), j.sayUnjudged(s.Out), sayHowMany(s.Out, sum.Kept, class, folder.Dir()))
	}
	switch {
	case err != nil || failed != nil:
		return err
	case j.complete(sum):
		return nil // also when it was interrupted on its last steps
	case ctx.Err() != nil:
		return fmt.Errorf("%w; %s", agent.ErrInterrupted, j.again(folder))
	case sum.Halt != nil:
		return &codedError{fmt.Errorf("%w; %s", sum.Halt, j.again(folder)), exitIncomplete}
	}
	if sum.Drained {
		return fmt.Errorf("%w: the run was drained; %s", errIncomplete, j.again(folder))
	}
	if sum.Exhausted {
		return fmt.Errorf("%w: the run's budget is spent (%s); with a larger one it goes on where it stopped", errIncomplete, budgetText(j.cfg.Run))
	}
	return errIncomplete
}

// again says how what has not ended is gone on with. A branch is not: whoever
// wants it branches off once more.
func (j *job) again(folder *runner.Folder) string {
	if j.branch != nil {
		return "the same command makes a new attempt, after the same step"
	}
	return "start again with -o " + folder.Dir() + " to go on"
}

// budgetText names what bounds a run.
func budgetText(r configs.Run) string {
	var bounds []string
	if r.TotalCostLimit > 0 {
		bounds = append(bounds, fmt.Sprintf("run.total_cost_limit: $%v", r.TotalCostLimit))
	}
	if r.TotalCalls > 0 {
		bounds = append(bounds, fmt.Sprintf("run.total_calls: %d", r.TotalCalls))
	}
	return strings.Join(bounds, ", ")
}

// sayUnjudged tells of submissions where no verdict is there to be shown.
func (j *job) sayUnjudged(w io.Writer) error {
	if j.verdicts == nil || len(j.verdicts.Records) > 0 || len(j.verdicts.Unfinished) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "\nno verdict yet on %s\n", report.Count(len(j.verdicts.Unfinished), "submission"))
	return err
}

// result is what --json prints. The error is about the score, which is left out
// then.
func (j *job) result(sum runner.Summary, dir string) (map[string]any, error) {
	res := map[string]any{"run": dir, "summary": sum}
	if j.verdicts == nil {
		return res, nil
	}
	res["evaluation"] = j.verdicts
	run, err := runner.ReadRun(dir)
	if err != nil {
		return res, err
	}
	g, err := glanceOf(run, ids(j.work.rows))
	for _, score := range g.Verdicts {
		if score.RunID == defaultRunID && score.HasRun {
			res["score"] = score
		}
	}
	return res, err
}

// unfit is what has no place in the name of a folder.
var unfit = lazyregexp.New(`[^\pL\pN._-]+`)

// maxName bounds the part of a folder's name that says what was run, in
// characters.
const maxName = 60

// folder is where the run goes.
func (o *benchOptions) folder() string {
	if o.output != "" {
		return o.output
	}
	var names []string
	for _, s := range o.subsets {
		names = append(names, strings.Trim(unfit.ReplaceAllString(filepath.Base(s), "-"), ".-"))
	}
	name := []rune(strings.Join(names, "+"))
	name = name[:min(len(name), maxName)]
	first := filepath.Join("mini-runs", string(name)+"-"+time.Now().Format("20060102-150405"))
	dir := first
	for n := 2; exists(dir); n++ { // started twice in a second
		dir = fmt.Sprintf("%s-%d", first, n)
	}
	return dir
}

// headerOf is what the journals of a run have in common.
func headerOf(cfg *configs.Resolved, environmentClass string) (trajectories.Header, error) {
	redacted := cfg.Redacted()
	quiet(&redacted)
	settings := map[string]any{
		"agent": redacted.Agent, "model": redacted.Model, "environment": redacted.Environment, "run": redacted.Run,
	}
	if supervised(cfg, environmentClass) {
		settings["policy"] = redacted.Policy
	}
	addAbilities(settings, redacted)
	config, err := json.Marshal(settings)
	image := ""
	if !onHost(environmentClass) {
		image = cfg.Environment.Image
	}
	return trajectories.Header{
		Image:       image,
		MiniVersion: Version, ModelClass: cfg.Model.Class, EnvironmentClass: environmentClass, Config: config,
		Tools: cfg.Agent.Tools(), Redact: withoutValues(cfg),
	}, err
}
