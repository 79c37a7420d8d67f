package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/ui/progress"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/replay"
	"github.com/minibench/mini/runner/report"
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

// summary counts attempts, and commands by how they matched.
type summary struct {
	Attempts   int                      `json:"attempts"`
	Reproduced int                      `json:"reproduced"`
	Failed     int                      `json:"failed,omitempty"` // number of incomplete replays
	Commands   map[replay.Match]int     `json:"commands"`
	Diffs      map[replay.DiffState]int `json:"diffs"`
	Seconds    float64                  `json:"seconds"`
}

// replayAll replays the groups one after the other, each with parallel workers.
func (o *options) replayAll(ctx, kill context.Context, s cmdutil.Streams, groups []*group, all []*recording) (*fullReport, error) {
	start := time.Now()
	done := map[*recording]*attemptResult{}
	for _, r := range all {
		done[r] = &attemptResult{InstanceID: r.id, Attempt: r.attempt, File: r.path, Result: replay.Result{Commands: []replay.Command{}, Diff: replay.Diff{State: replay.NotTaken}}}
		if r.failed != nil {
			done[r].Error = r.failed.Error()
		} else {
			done[r].Format = r.file.Format
		}
	}
	printer := &printer{w: s.Err}
	for _, g := range groups {
		if err := o.replayGroup(ctx, kill, g, printer, done); err != nil {
			return nil, err
		}
	}
	rep := &fullReport{}
	for _, r := range all {
		rep.add(done[r])
	}
	rep.Summary.Seconds = time.Since(start).Seconds()
	return rep, nil
}

// replayGroup replays the recordings of a group in parallel.
func (o *options) replayGroup(ctx, kill context.Context, g *group, printer *printer, done map[*recording]*attemptResult) (err error) {
	sandboxes, err := envopen.New(ctx, kill, g.cfg, g.isDemo, false, "", printer.w, progress.Observe(report.NewPlainPrinter(printer, nil).Event))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sandboxes.Close()) }()
	if err := printer.begin(g, sandboxes.Class); err != nil {
		return err
	}
	workers := new(errgroup.Group)
	workers.SetLimit(g.cfg.Run.Workers)
	for _, r := range g.all {
		workers.Go(func() error {
			res := done[r]
			res.EnvironmentClass = sandboxes.Class
			if ctx.Err() != nil {
				res.Error = "not replayed: interrupted"
				return nil //nolint:nilerr // the report has the error
			}
			if err := o.replayOne(ctx, g, sandboxes, r, res); err != nil {
				res.Error = err.Error()
				if hint := cmdutil.Hint(err); hint != "" {
					res.Error += "; " + hint
				}
			}
			printer.done(res)
			return nil
		})
	}
	return workers.Wait()
}

// replayOne replays a recording in a new sandbox.
func (o *options) replayOne(ctx context.Context, g *group, sandboxes runner.Sandboxes, r *recording, res *attemptResult) (err error) {
	t, err := r.transcript()
	if err != nil {
		return err
	}
	ignore, err := replay.ParseIgnore(g.cfg.Replay.Ignore)
	if err != nil {
		return err
	}
	tools, closed, err := newTools(ctx, g, r, t.Header, ignore)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closed()) }()
	sandbox, err := sandboxes.Start(ctx, r.row)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		err = errors.Join(err, sandbox.Close(end))
	}()
	info := sandbox.Info()
	res.Image, res.Warnings = info.Image, info.Warnings
	res.Result, err = replay.Run(ctx, replay.Config{
		Environment: sandbox, Transcript: t, Command: g.agent.Command, Tools: tools, Scrub: g.cfg.Agent.Scrub,
		Ignore:      ignore,
		Worktree:    worktree.Config{Exclude: g.cfg.Agent.PatchExclude, MaxPatch: g.cfg.Agent.MaxPatch},
		StopAtFirst: o.stopAtFirst,
	})
	res.First = res.FirstDiverged()
	res.Reproduced = err == nil && res.Result.Reproduced()
	return err
}

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

// printer prints progress for people on stderr. It ignores write errors.
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

func (p *printer) begin(g *group, class string) error {
	_, err := fmt.Fprintf(p, "mini replay: %s, %s, %s sandboxes\n",
		text.Count(len(g.all), "attempt"), text.Count(g.cfg.Run.Workers, "worker"), class)
	return err
}

func (p *printer) done(r *attemptResult) {
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

func countDiffering(n int) string {
	if n == 1 {
		return "1 output differs"
	}
	return fmt.Sprintf("%d outputs differ", n)
}
