package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/images"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/evaluate"
)

// evalProfile names what evalConfig gives, in verdicts; another profile makes
// other verdicts.
const evalProfile = "root, SYS_ADMIN, no bound on memory"

// evalPIDs is more than any suite of tests has at once, and less than a machine
// can take. The official containers have no bound.
const evalPIDs = 32768

// evalConfig is what all containers of evaluations have in common: what the
// official harness gives them. Nothing of the agent's isolation applies, but
// for the platform, which says which images there are.
//
// SYS_ADMIN lets a patch forge what the helper reports; with the official
// harness it can as well, and some browsers start no other way. The log is
// judged, and no more than that: see the flags of verdicts.
func evalConfig(cfg *configs.Resolved, run, network string) docker.Config {
	return docker.Config{
		Platform:      cfg.Environment.Platform,
		User:          "root",
		Interpreter:   []string{"/bin/bash", "-c"},
		Network:       network,
		MemoryBytes:   -1,
		PIDs:          evalPIDs,
		CapDrop:       []string{}, // not nil: what the engine gives by itself
		CapAdd:        []string{"SYS_ADMIN"},
		NewPrivileges: true,
		Force:         true,
		Run:           runLabel(run),
	}
}

// evalBoxes makes the sandboxes of evaluations, on the engine that the agent's
// are on: the two share its images, and end together.
type evalBoxes struct {
	*sandboxes
	base docker.Config
}

// Start implements evaluate.Sandboxes. What happens to the instance is told by
// who evaluates it.
func (b evalBoxes) Start(ctx context.Context, in datasets.Instance) (env.Environment, error) {
	c := b.base
	c.Instance, c.Image = in.ID, in.ImageName()
	box, err := b.engine.Start(ctx, c)
	if err != nil {
		return nil, err // not a typed nil
	}
	return b.track(box), nil
}

// Identify implements evaluate.Identifying.
func (b evalBoxes) Identify(ctx context.Context, in datasets.Instance) (evaluate.Image, error) {
	img, here, err := b.images.Look(ctx, evalNeed(b.base, in))
	if err != nil || !here {
		return evaluate.Image{}, err
	}
	return evaluate.Image{ID: img.ID, Digest: img.Digest, Arch: img.Arch}, nil
}

// Expect has images pulled ahead of the evaluations.
func (b evalBoxes) Expect(ctx context.Context, todo []datasets.Instance) (stop func()) {
	return b.images.Expect(ctx, b.evalNeeds(todo))
}

func (b evalBoxes) evalNeeds(rows []datasets.Instance) []images.Need {
	needs := make([]images.Need, len(rows))
	for i, in := range rows {
		needs[i] = evalNeed(b.base, in)
	}
	return needs
}

// evalNeed is the image that an instance is evaluated in: always its own.
func evalNeed(c docker.Config, in datasets.Instance) images.Need {
	return images.Need{Ref: in.ImageName(), Platform: c.Platform, For: in.ID}
}

// evaluating are the sandboxes in which the submissions of a run are judged.
func (s *sandboxes) evaluating(ctx context.Context, cfg *configs.Resolved, run string) (evalBoxes, error) {
	b := evalBoxes{s, evalConfig(cfg, run, cfg.Eval.Network)}
	return b, s.engine.Check(ctx, anyImage(b.base))
}

// warn says what patches could do to the engine's machine.
func (b evalBoxes) warn(ctx context.Context, w io.Writer) {
	if text, err := b.engine.Exposure(ctx, b.base); err == nil && text != "" { // an engine that does not answer is met again
		_, _ = fmt.Fprintln(w, said("warning: "+text)) // only for people
	}
}

// newEvalBoxes are those of an evaluation alone.
func newEvalBoxes(
	ctx, kill context.Context, cfg *configs.Resolved, run string, w io.Writer, emit func(runner.Event),
) (evalBoxes, error) {
	s := &sandboxes{class: "docker", live: map[env.Environment]bool{}}
	if err := s.connect(ctx, cfg, w, emit); err != nil {
		return evalBoxes{}, before(err)
	}
	b, err := s.evaluating(ctx, cfg, run)
	if err != nil {
		return b, errors.Join(before(err), s.close())
	}
	s.endWith(kill)
	return b, nil
}
