package worktree

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/minibench/mini/env"
)

//go:embed shadow.sh
var shadowScript string

//go:embed diff.sh
var diffScript string

// Diff is what changed in a working tree since it was opened.
type Diff struct {
	// Patch is what git apply takes, untracked files included, ignored ones
	// not: binary files as binary patches, and text that is not UTF-8
	// likewise, so that it is always valid UTF-8. A rename is a deletion and a
	// new file. Repositories nested in the tree are left out.
	Patch []byte
	// Tree is git's hash of the tree that Patch makes of the base.
	Tree string
	// Exact says that the patch was applied to a clean tree of the base, and
	// gave Tree, byte for byte. Otherwise Problem says what git said.
	Exact   bool
	Problem string
	// Omitted names files and folders that were left out for their size, or
	// because they cannot be read; a folder ends with a slash. At most
	// maxOmitted are named; OmittedCount counts all.
	Omitted      []string
	OmittedCount int
}

const maxOmitted = 20

// rung is how large new files, and others, may be: bytes, as parts of the size
// of a patch. A new folder may be four times as large.
type rung struct{ fresh, old float64 }

// ladder is climbed until the patch is small enough, or can be taken at all:
// what the agent made (environments, build products, dumps) goes before what
// it changed, and what is large before what is small.
var ladder = []rung{{1, 20}, {0.25, 1}, {1. / 64, 0.25}, {0, 1. / 64}}

// Diff is what changed since Open. It fails where the base is gone from the
// repository, and where no part of the change is small enough.
func (t *Tree) Diff(ctx context.Context) (Diff, error) {
	if t.Base == "" {
		return Diff{}, nil
	}
	var failed error
	for _, r := range ladder {
		d, err := t.diff(ctx, r)
		if _, lost := errors.AsType[*env.Error](err); err == nil || lost || ctx.Err() != nil {
			return d, err
		}
		if failed == nil || errors.Is(err, errLarge) {
			failed = err
		}
	}
	return Diff{}, failed
}

var errLarge = errors.New("the change is too large for a patch")

func (t *Tree) diff(ctx context.Context, r rung) (Diff, error) {
	limit := float64(t.cfg.MaxPatch)
	sizes := fmt.Sprintf("limit=%d\nnew=%d\nold=%d\n", t.cfg.MaxPatch, int64(limit*r.fresh), int64(limit*r.old))
	a, err := t.ask(ctx, sizes+diffScript, nil, share(ctx))
	if err == nil && a.state != "large" && !utf8.Valid(a.patch) {
		a, err = t.ask(ctx, sizes+diffScript, attributes(a.patch), share(ctx))
	}
	switch {
	case err != nil:
		return Diff{}, fmt.Errorf("take diff: %w", err)
	case a.state == "large":
		return Diff{}, fmt.Errorf("take diff: %w of %d bytes (agent.max_patch_bytes)", errLarge, t.cfg.MaxPatch)
	}
	d := Diff{Patch: a.patch, Tree: a.tree, Exact: a.state == "exact", OmittedCount: a.count}
	if !d.Exact {
		d.Problem = printable(a.words)
	}
	for name := range bytes.SplitSeq(a.omitted, []byte{0}) {
		if len(name) > 0 && len(d.Omitted) < maxOmitted {
			d.Omitted = append(d.Omitted, printable(bytes.TrimPrefix(name, []byte("./"))))
		}
	}
	return d, nil
}

// answer is what emit in shadow.sh prints.
type answer struct {
	state, tree    string
	words, omitted []byte
	patch          []byte
	count          int
}

// share is how long one try may take, so that the smaller ones after it have
// time: half of what is left.
func share(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return timeout
	}
	return max(min(timeout, time.Until(deadline)/2), time.Second)
}

// ask runs a script on the shadow, for so long.
func (t *Tree) ask(ctx context.Context, script string, attrs []byte, limit time.Duration) (answer, error) {
	var s strings.Builder
	fmt.Fprintf(&s, "marker=%s\nbase=%s\ndir=%s\ncommon=%s\ntop=%s\n", marker, t.Base, quote(t.dir), quote(t.common), quote(t.top))
	s.WriteString(file("settings", t.settings))
	s.WriteString(file("attributes", attrs))
	s.WriteString(file("junk", []byte(strings.Join(t.cfg.Exclude, "\n"))))
	s.WriteString(shadowScript + script)
	res, err := execute(ctx, t.box, s.String(), limit)
	if err != nil {
		return answer{}, err
	}
	if err := fail(res, limit); err != nil {
		return answer{}, err
	}
	return parseAnswer(res.Output)
}

var errAnswer = errors.New("what the sandbox answered is no patch of ours")

func parseAnswer(out []byte) (answer, error) {
	out, ok := bytes.CutPrefix(out, []byte(marker+"\n"))
	line, rest, cut := bytes.Cut(out, []byte("\n"))
	fields := strings.Fields(string(line[:min(len(line), 300)]))
	if !ok || !cut || len(fields) != 6 {
		return answer{}, errAnswer
	}
	var n [4]int
	for i, field := range fields[2:] {
		var err error
		if n[i], err = strconv.Atoi(field); err != nil || n[i] < 0 {
			return answer{}, errAnswer
		}
	}
	words, omitted, patch, count := n[0], n[1], n[2], n[3]
	if words > len(rest) || omitted > len(rest)-words || patch != len(rest)-words-omitted {
		return answer{}, errAnswer
	}
	a := answer{state: fields[0], words: rest[:words], omitted: rest[words : words+omitted], patch: rest[words+omitted:], count: count}
	if isHash(fields[1]) {
		a.tree = fields[1]
	}
	return a, nil
}
