package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/replay"
	"github.com/minibench/mini/runner/report"
)

// replayed is what came of one recording, as --json has it.
type replayed struct {
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
	// Error says why it was not replayed, or not to its end.
	Error string `json:"error,omitempty"`
}

// replayReport is all of it.
type replayReport struct {
	Summary  replaySummary `json:"summary"`
	Attempts []*replayed   `json:"attempts"`
}

// replaySummary counts attempts, and their commands by how they matched.
type replaySummary struct {
	Attempts   int                  `json:"attempts"`
	Reproduced int                  `json:"reproduced"`
	Failed     int                  `json:"failed,omitempty"` // not replayed, or not to their end
	Commands   map[replay.Match]int `json:"commands"`
	Diffs      map[replay.State]int `json:"diffs"`
	Seconds    float64              `json:"seconds"`
}

// replayAll replays group after group, and within each as many at once as there
// are workers.
func (o *replayOptions) replayAll(ctx, kill context.Context, s Streams, groups []*replayGroup, all []*recording) (*replayReport, error) {
	start := time.Now()
	done := map[*recording]*replayed{}
	for _, r := range all {
		done[r] = &replayed{InstanceID: r.id, Attempt: r.attempt, File: r.path, Result: replay.Result{Commands: []replay.Command{}, Diff: replay.Diff{State: replay.NotTaken}}}
		if r.failed != nil {
			done[r].Error = r.failed.Error()
		} else {
			done[r].Format = r.file.Format
		}
	}
	tell := &teller{w: s.Err, left: len(all)}
	for _, g := range groups {
		if err := o.replayGroup(ctx, kill, g, tell, done); err != nil {
			return nil, err
		}
	}
	rep := &replayReport{}
	for _, r := range all {
		rep.add(done[r])
	}
	rep.Summary.Seconds = time.Since(start).Seconds()
	return rep, nil
}

func (o *replayOptions) replayGroup(ctx, kill context.Context, g *replayGroup, tell *teller, done map[*recording]*replayed) (err error) {
	boxes, err := newSandboxes(ctx, kill, g.cfg, g.isDemo, false, "", tell.w, report.NewPlain(tell, nil).Event)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, boxes.Close()) }()
	if err := tell.begin(g, boxes.class); err != nil {
		return err
	}
	workers := new(errgroup.Group)
	workers.SetLimit(g.cfg.Run.Workers)
	for _, r := range g.all {
		workers.Go(func() error {
			res := done[r]
			res.EnvironmentClass = boxes.class
			if ctx.Err() != nil {
				res.Error = "not replayed: stopped before its turn"
				return nil //nolint:nilerr // the report says so
			}
			if err := o.replayOne(ctx, g, boxes, r, res); err != nil {
				res.Error = err.Error()
				if hint := hintOf(err); hint != "" {
					res.Error += "; " + hint
				}
			}
			tell.done(res)
			return nil
		})
	}
	return workers.Wait()
}

// replayOne is one recording in a sandbox of its own.
func (o *replayOptions) replayOne(ctx context.Context, g *replayGroup, boxes runner.Sandboxes, r *recording, res *replayed) (err error) {
	t, err := r.gather()
	if err != nil {
		return err
	}
	ignore, err := replay.ParseIgnore(g.cfg.Replay.Ignore)
	if err != nil {
		return err
	}
	tools, closed, err := replayTools(ctx, g, r, t.Header, ignore)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closed()) }()
	box, err := boxes.Start(ctx, r.row)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		err = errors.Join(err, box.Close(end))
	}()
	info := box.Info()
	res.Image, res.Warnings = info.Image, info.Warnings
	res.Result, err = replay.Run(ctx, replay.Config{
		Environment: box, Transcript: t, Command: g.agent.Command, Tools: tools, Scrub: g.cfg.Agent.Scrub,
		Ignore:      ignore,
		Worktree:    worktree.Config{Exclude: g.cfg.Agent.PatchExclude, MaxPatch: g.cfg.Agent.MaxPatch},
		StopAtFirst: o.stopAtFirst,
	})
	res.First = res.Result.First()
	res.Reproduced = err == nil && res.Result.Reproduced()
	return err
}

func (rep *replayReport) add(r *replayed) {
	s := &rep.Summary
	if s.Commands == nil {
		s.Commands, s.Diffs = map[replay.Match]int{}, map[replay.State]int{}
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

// teller says on stderr how it goes. It is for people: what cannot be written is
// no failure.
type teller struct {
	mu   sync.Mutex
	w    io.Writer
	left int
}

// Write implements io.Writer.
func (t *teller) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.w.Write(p)
}

func (t *teller) begin(g *replayGroup, class string) error {
	_, err := fmt.Fprintf(t, "mini replay: %s, %s, %s sandboxes\n",
		report.Count(len(g.all), "attempt"), report.Count(g.cfg.Run.Workers, "worker"), class)
	return err
}

func (t *teller) done(r *replayed) {
	text := report.Count(len(r.Commands), "command")
	switch {
	case r.Error != "":
		text = r.Error
	case r.First != nil:
		text += fmt.Sprintf(", the first that diverged at step %d", r.First.Step)
	case r.Diff.State == replay.Differs:
		text += ", and another diff"
	case r.Count(replay.OutputDiffers) > 0:
		text += ", all ended as recorded, " + outputsDiffer(r.Count(replay.OutputDiffers))
	case r.Count(replay.Unrecorded) > 0:
		text += fmt.Sprintf(", %d of them not recorded, the others as recorded", r.Count(replay.Unrecorded))
	default:
		text += ", all as recorded"
	}
	_, _ = fmt.Fprintf(t, "  %s  %s\n", report.Printable(r.InstanceID), report.Printable(text))
}

func outputsDiffer(n int) string {
	if n == 1 {
		return "1 output differs"
	}
	return fmt.Sprintf("%d outputs differ", n)
}
