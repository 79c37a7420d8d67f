package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/agent/tools/memory"
	"github.com/minibench/mini/agent/tools/subagents"
	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/env"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/replay"
	"github.com/minibench/mini/runner/setup"
	"github.com/minibench/mini/trajectories"
)

// attemptResult is the result for one recording, as in the output of --json.
type attemptResult struct {
	InstanceID       string          `json:"instance_id"`
	Attempt          int             `json:"attempt,omitempty"`
	File             string          `json:"file"`
	Format           string          `json:"format,omitempty"`
	EnvironmentClass string          `json:"environment_class,omitempty"`
	Image            string          `json:"image,omitempty"`
	Reproduced       bool            `json:"reproduced"`
	First            *replay.Command `json:"first_divergence"`
	replay.Result
	Warnings []string `json:"warnings,omitempty"`
	// Error is the reason why the replay failed; "" if it is complete.
	Error string `json:"error,omitempty"`
}

// fullReport is the output of --json.
type fullReport struct {
	Summary  summary          `json:"summary"`
	Attempts []*attemptResult `json:"attempts"`
}

// summary has the numbers of attempts, of commands by match, and of diffs by state.
type summary struct {
	Attempts   int                      `json:"attempts"`
	Reproduced int                      `json:"reproduced"`
	Failed     int                      `json:"failed,omitempty"` // number of attempts whose replay is incomplete
	Commands   map[replay.Match]int     `json:"commands"`
	Diffs      map[replay.DiffState]int `json:"diffs"`
	Seconds    float64                  `json:"seconds"`
}

// replayAll replays the groups one after the other, and the recordings of a group in
// parallel. The report also contains the recordings that cannot be replayed.
func (o *Options) replayAll(ctx context.Context, a *app.App, groups []*group, recordings []*recording) (*fullReport, error) {
	start := time.Now()
	results := map[*recording]*attemptResult{}
	for _, r := range recordings {
		results[r] = &attemptResult{InstanceID: r.id, Attempt: r.attempt, File: r.path, Result: replay.Result{Commands: []replay.Command{}, Diff: replay.Diff{State: replay.NotTaken}}}
		if r.err != nil {
			results[r].Error = r.err.Error()
		} else {
			results[r].Format = r.file.Format
		}
	}
	printer := &printer{w: a.Err}
	for _, g := range groups {
		if err := o.replayGroup(ctx, a, g, printer, results); err != nil {
			return nil, err
		}
	}
	rep := &fullReport{}
	for _, r := range recordings {
		rep.add(results[r])
	}
	rep.Summary.Seconds = time.Since(start).Seconds()
	return rep, nil
}

// replayGroup replays the recordings of a group in parallel.
func (o *Options) replayGroup(ctx context.Context, a *app.App, g *group, printer *printer, results map[*recording]*attemptResult) (err error) {
	sandboxes, err := a.Sandboxes(ctx, g.cfg, envopen.Options{Demo: g.isDemo, Notes: printer})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sandboxes.Close()) }()
	_, err = fmt.Fprintf(printer, "mini replay: %s, %s, %s\n",
		text.Count(len(g.recordings), "attempt"), text.Count(g.cfg.Run.Workers, "worker"), sandboxes.Heading())
	if err != nil {
		return err
	}
	workers := new(errgroup.Group)
	workers.SetLimit(g.cfg.Run.Workers)
	for _, r := range g.recordings {
		workers.Go(func() error {
			result := results[r]
			result.EnvironmentClass = sandboxes.Class
			if ctx.Err() != nil {
				result.Error = "not replayed: interrupted"
				return nil //nolint:nilerr // the report has the error
			}
			if err := o.replayOne(ctx, g, sandboxes, r, result); err != nil {
				result.Error = err.Error()
				if hint := cmdutil.Hint(err); hint != "" {
					result.Error += "; " + hint
				}
			}
			printer.printResult(result)
			return nil
		})
	}
	return workers.Wait()
}

// replayOne replays a recording in a new sandbox.
func (o *Options) replayOne(ctx context.Context, g *group, sandboxes runner.Sandboxes, r *recording, result *attemptResult) (err error) {
	t, err := r.transcript()
	if err != nil {
		return err
	}
	ignore, err := replay.ParseIgnore(g.cfg.Replay.Ignore)
	if err != nil {
		return err
	}
	tools, closeTools, err := newTools(ctx, g, r, t.Header, ignore)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeTools()) }()
	sandbox, err := sandboxes.Start(ctx, r.row)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return err
	}
	defer func() {
		closeCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		err = errors.Join(err, sandbox.Close(closeCtx))
	}()
	info := sandbox.Info()
	result.Image, result.Warnings = info.Image, info.Warnings
	result.Result, err = replay.Run(ctx, replay.Config{
		Environment: sandbox, Attempt: t, Command: g.agent.Command, Tools: tools, Scrub: g.cfg.Agent.Scrub,
		Ignore:                ignore,
		Worktree:              worktree.Config{Exclude: g.cfg.Agent.PatchExclude, MaxPatch: g.cfg.Agent.MaxPatch},
		StopAtFirstDivergence: o.stopAtFirst,
	})
	result.First = result.FirstDiverged()
	result.Reproduced = err == nil && result.Result.Reproduced()
	return err
}

// add appends a result and counts it in the summary.
func (rep *fullReport) add(r *attemptResult) {
	s := &rep.Summary
	if s.Commands == nil {
		s.Commands, s.Diffs = map[replay.Match]int{}, map[replay.DiffState]int{}
	}
	rep.Attempts = append(rep.Attempts, r)
	s.Attempts++
	if r.Reproduced {
		s.Reproduced++
	}
	if r.Error != "" {
		s.Failed++
	}
	for _, c := range r.Commands {
		s.Commands[c.Match]++
	}
	s.Diffs[r.Diff.State]++
}

// printer prints progress for people on stderr. printResult ignores write errors.
type printer struct {
	mu sync.Mutex
	w  io.Writer
}

// Write implements io.Writer.
func (p *printer) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.w.Write(data)
}

// printResult prints the result of an attempt in one line.
func (p *printer) printResult(r *attemptResult) {
	line := text.Count(len(r.Commands), "command")
	switch {
	case r.Error != "":
		line = r.Error
	case r.First != nil:
		line += fmt.Sprintf(", first divergence at step %d", r.First.Step)
	case r.Diff.State == replay.Differs:
		line += ", diff differs"
	case r.Count(replay.OutputDiffers) > 0:
		line += ", all ended as recorded, " + countDiffering(r.Count(replay.OutputDiffers))
	case r.Count(replay.Unrecorded) > 0:
		line += fmt.Sprintf(", %d not recorded, all others as recorded", r.Count(replay.Unrecorded))
	default:
		line += ", all as recorded"
	}
	_, _ = fmt.Fprintf(p, "  %s  %s\n", text.Printable(r.InstanceID), text.Printable(line))
}

// countDiffering formats the number of outputs that differ.
func countDiffering(n int) string {
	if n == 1 {
		return "1 output differs"
	}
	return fmt.Sprintf("%d outputs differ", n)
}

// newTools returns the tools for the commands of a recording, or nil if the attempt had
// none. They return the recorded answers, and run the commands of subagents again. Of
// the configured tools, only those that work within the sandbox and that the recording
// allowed are available; none contacts other hosts. Without an error, the caller must
// call closeTools.
func newTools(ctx context.Context, g *group, r *recording, h trajectories.Header, ignore replay.IgnoreRules) (_ *replay.Tools, closeTools func() error, err error) {
	hadTools, allowed := recordedTools(h)
	if !hadTools {
		return nil, func() error { return nil }, nil
	}
	cfg := *g.cfg
	cfg.Tools.Search, cfg.Tools.Host, cfg.Tools.MCP, cfg.Tools.Allow, cfg.Tools.Recall = nil, nil, nil, nil, false
	cfg.Memory, cfg.Agents = memory.Config{}, subagents.Config{}
	tools, err := setup.NewTools(ctx, &cfg)
	if err != nil {
		return nil, nil, err
	}
	toolbox, err := tools.Server(setup.AttemptPaths{Instance: r.row})
	if err != nil {
		return nil, nil, errors.Join(err, tools.Close())
	}
	replayTools := &replay.Tools{}
	if toolbox != nil {
		replayTools.Local = slices.DeleteFunc(toolbox.Capabilities().InSandbox, func(name string) bool { return len(allowed) > 0 && !slices.Contains(allowed, name) })
		if p, ok := toolbox.(interface {
			Prepare(ctx context.Context, sandbox env.Environment) error
		}); ok {
			replayTools.Prepare = p.Prepare
		}
	}
	children := replay.SubagentReplayer{Journals: trajectories.ChildJournals(r.path), Command: g.agent.Command, Local: replayTools.Local, Ignore: ignore}
	replayTools.Rerun = children.Rerun
	return replayTools, tools.Close, nil
}

// recordedTools reports whether the attempt had tools, and returns the names of those
// that were allowed; nil allows all.
func recordedTools(h trajectories.Header) (hadTools bool, allowed []string) {
	var config struct {
		Tools *struct {
			Allow []string `json:"allow"`
		} `json:"tools"`
		Skills, Memory, Agents json.RawMessage
	}
	_ = json.Unmarshal(h.Config, &config) // other agents' configurations have no tools
	if config.Tools != nil {
		allowed = config.Tools.Allow
	}
	return config.Tools != nil || len(config.Skills)+len(config.Memory)+len(config.Agents) > 0, allowed
}
