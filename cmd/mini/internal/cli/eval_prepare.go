package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/trajectories"
)

// evalJob is an evaluation that is ready to be run.
type evalJob struct {
	*evalOptions
	cfg     *configs.Resolved
	patches patches
	set     datasets.Set
	// selected are the ids of the rows that were asked for, with a patch or
	// without.
	selected []string
	tasks    []evaluate.Task
	notes    []string // what is passed over and what is odd, a sentence each
	dir      string
	key      []byte // that seals the user's verdicts; nil where there is none yet
	display  string
}

// prepare finds every mistake that can be found before a container is started.
// It writes nothing but the cache of datasets.
func (o *evalOptions) prepare(ctx context.Context, s Streams) (*evalJob, error) {
	cfg, err := o.settings(s)
	if err != nil {
		return nil, err
	}
	kind, err := evalProgress(o.progress, displayOf(s))
	if err != nil && !o.dryRun {
		return nil, err
	}
	p, err := readPatches(o.patches)
	if err != nil {
		return nil, err
	}
	if len(o.subsets) == 0 && p.run != "" {
		if err := o.adopt(p.run); err != nil {
			return nil, err
		}
	}
	if len(o.subsets) == 0 {
		return nil, usagef("--subset is needed: the rows that the patches are for; mini datasets list says more")
	}
	if _, err := grade.NewRun(".", o.runID); err != nil {
		return nil, usagef("--run-id: %w", err)
	}
	key, err := readVerdictKey()
	if err != nil {
		return nil, err
	}
	j := &evalJob{evalOptions: o, cfg: cfg, patches: p, display: kind, dir: o.folder(p), key: key}
	if err := runner.Fit(j.dir); err != nil {
		return nil, err
	}
	if err := j.load(ctx, s); err != nil {
		return nil, err
	}
	for _, text := range slices.Concat(p.warnings, j.notes) {
		_, _ = fmt.Fprintln(s.Err, "mini: warning:", report.Printable(text)) // only for people
	}
	return j, nil
}

// evalProgressKinds are those of what has no live view.
var evalProgressKinds = []string{progressPlain, progressJSON, progressNone}

// evalProgress is chooseProgress for these.
func evalProgress(kind string, d display) (string, error) {
	if kind != "" && !slices.Contains(evalProgressKinds, kind) {
		return "", usagef("--progress %.60q: mini eval has %s", kind, strings.Join(evalProgressKinds, ", "))
	}
	chosen, err := chooseProgress(kind, d)
	if chosen == progressLive {
		chosen = progressPlain
	}
	return chosen, err
}

// folder is where the evaluation goes: to its run, where the patches are from
// one.
func (o *evalOptions) folder(p patches) string {
	if o.output == "" && p.run != "" {
		return p.run
	}
	b := benchOptions{output: o.output, subsetFlags: subsetFlags{subsets: append(slices.Clone(o.subsets), p.name)}}
	return b.folder()
}

// load reads the rows that there are patches for, and makes tasks of them.
func (j *evalJob) load(ctx context.Context, s Streams) error {
	sources, err := j.open(ctx, s)
	if err != nil {
		return err
	}
	known, err := idsOf(ctx, sources)
	if err != nil {
		return err
	}
	if j.selected, err = j.selection.Apply(known); err != nil {
		return err
	}
	if err := j.unknown(known); err != nil {
		return err
	}
	byID := trajectories.Predictions{List: j.patches.list}.ByID()
	wanted := slices.DeleteFunc(slices.Clone(j.selected), func(id string) bool { return !j.patches.has(id, byID) })
	name := strings.Join(j.subsets, "+")
	if len(wanted) == 0 && len(j.selected) == 0 {
		return usagef("no instance is left of the %d in %s after --instance, --filter and --slice", len(known), name)
	}
	if len(wanted) == 0 {
		return usagef("%s: none of its predictions is for an instance of %s that was asked for", j.patches.name, name)
	}
	if j.set, err = datasets.Load(ctx, sources, datasets.Selection{IDs: wanted}); err != nil {
		return err
	}
	for i, e := range j.set.Editions {
		if i < len(j.rows) && j.rows[i].SHA256 != e.SHA256 {
			j.notes = append(j.notes, fmt.Sprintf("the rows of %s are not those that the run had (%s, now %s); the verdicts are by the new ones",
				e.Name, short(j.rows[i].SHA256), short(e.SHA256)))
		}
	}
	return j.makeTasks(byID)
}

// idsOf are the different ids of the sources, in their order.
func idsOf(ctx context.Context, sources []datasets.Source) ([]string, error) {
	var all []string
	known := map[string]bool{}
	for _, source := range sources {
		ids, err := datasets.IDs(ctx, source)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			if !known[id] {
				known[id] = true
				all = append(all, id)
			}
		}
	}
	return all, nil
}

// unknown finds predictions for instances that the datasets do not have.
func (j *evalJob) unknown(known []string) error {
	has := make(map[string]bool, len(known))
	for _, id := range known {
		has[id] = true
	}
	var unknown []string
	for _, p := range j.patches.list {
		if !has[p.InstanceID] {
			unknown = append(unknown, p.InstanceID)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	text := fmt.Sprintf("%s: no row of %s is named %s", j.patches.name, strings.Join(j.subsets, ", "), someOf(unknown))
	if j.skipUnknown {
		j.notes = append(j.notes, text+"; passed over")
		return nil
	}
	if near := datasets.Near(unknown[0], known, 2); len(near) > 0 {
		text += fmt.Sprintf(" (perhaps %s)", strings.Join(near, " or "))
	}
	return usagef("%s; --skip-unknown goes on without", text)
}

// makeTasks finds rows that cannot be graded.
func (j *evalJob) makeTasks(byID map[string]trajectories.Prediction) error {
	var ungradable []string
	for _, in := range j.set.Instances {
		tasks := j.patches.tasks(in, byID)
		if len(tasks) == 0 {
			continue
		}
		if err := j.config().Check(tasks[0]); err != nil { // it is about the row
			ungradable = append(ungradable, err.Error())
			continue
		}
		j.tasks = append(j.tasks, tasks...)
	}
	if len(ungradable) == 0 {
		return nil
	}
	text := ungradable[0]
	if n := len(ungradable); n > 1 {
		text += fmt.Sprintf(" (and %d more like it)", n-1)
	}
	if !j.skipUnknown {
		return usagef("%s; --skip-unknown goes on without", text)
	}
	if len(j.tasks) == 0 {
		return usagef("no patch is left to be judged: %s", text)
	}
	j.notes = append(j.notes, text+"; passed over")
	return nil
}

// config is what the evaluation runs with, without what only the run has.
func (j *evalJob) config() evaluate.Config {
	c := evalSettings(j.cfg)
	c.RunID, c.Selected, c.Editions = j.runID, j.selected, j.set.Editions
	c.Key, c.TrustLogs = j.key, j.trustLogs
	return c
}

// evalSettings are those of the configuration, for any evaluation.
func evalSettings(cfg *configs.Resolved) evaluate.Config {
	e := cfg.Eval
	return evaluate.Config{
		RunID: defaultRunID, Workers: e.Workers, Timeout: duration(e.Timeout), MaxTries: cfg.Run.MaxTries,
		RerunFailed: e.RerunFailed, Cache: e.Cache,
		Network: e.Network, Profile: evalProfile, Engine: "docker", MiniVersion: Version,
	}
}

// checkCache finds out whether verdicts can be kept in the shared cache, before
// any is given.
func checkCache(dir string) error {
	if dir == "" {
		return nil
	}
	err := os.MkdirAll(dir, 0o755) //nolint:gosec // verdicts are for sharing
	if err == nil {
		var f *os.File
		if f, err = os.CreateTemp(dir, ".mini-"); err == nil {
			err = errors.Join(f.Close(), os.Remove(f.Name()))
		}
	}
	if err != nil {
		return usagef("no verdict can be kept in the cache: %w; see --cache and eval.cache", err)
	}
	return nil
}
