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
	// Tree is git's hash of the tree that Patch makes of the state at the start.
	Tree string
	// Exact says that the patch was applied to that state, and gave Tree, byte
	// for byte. Otherwise Problem says what git said.
	Exact   bool
	Problem string
	// Omitted names files and folders that changed and were left out: those
	// that are too large, that cannot be read, or that git does not take. At
	// most maxOmitted are named; OmittedCount counts all.
	Omitted      []Omission
	OmittedCount int
}

// Omission is a file that was left out, or a folder, which ends with a slash.
type Omission struct{ Name, Reason string }

func (o Omission) String() string { return o.Name + " (" + o.Reason + ")" }

const maxOmitted = 20

// rung is how large new files, and others, may be: bytes, as parts of the size
// of a patch. A new folder may be four times as large.
type rung struct{ fresh, old float64 }

// ladder is climbed until the patch is small enough, or can be taken at all:
// what the agent made (environments, build products, dumps) goes before what
// it changed, and what is large before what is small.
var ladder = []rung{{1, 20}, {0.25, 1}, {1. / 64, 0.25}, {0, 1. / 64}}

// Diff is what changed since the start. It fails where the commit of that time
// is gone from the repository, where there is no room, and where no part of the
// change is small enough.
func (t *Tree) Diff(ctx context.Context) (Diff, error) {
	if t.Base == "" {
		return Diff{}, nil
	}
	return climb(ctx, func(r rung) (Diff, error) { return t.diff(ctx, r) })
}

// climb tries with less and less, as long as that may help.
func climb[T any](ctx context.Context, try func(rung) (T, error)) (result T, failed error) {
	for _, r := range ladder {
		result, err := try(r)
		if err == nil || ctx.Err() != nil || !errors.Is(err, errLarge) && !errors.Is(err, errSlow) {
			return result, err
		}
		if failed == nil || errors.Is(err, errLarge) {
			failed = err
		}
	}
	return result, failed
}

var errLarge = errors.New("the change is too large for a patch")

// take runs a script on the tree of the files as they are, which ends with a
// patch of at most so many bytes.
func (t *Tree) take(ctx context.Context, r rung, limit int, script string) (answer, error) {
	sizes := fmt.Sprintf("limit=%d\nnew=%d\nold=%d\n", limit, int64(float64(limit)*r.fresh), int64(float64(limit)*r.old))
	script = sizes + t.start.functions() + treeScript + script
	a, err := t.ask(ctx, script, nil, share(ctx))
	if err == nil && a.state != "large" && !isText(a.patch) {
		a, err = t.ask(ctx, script, attributes(a.patch), share(ctx))
	}
	if err == nil && a.state == "large" {
		err = fmt.Errorf("%w of %d bytes", errLarge, limit)
	}
	return a, err
}

func (t *Tree) diff(ctx context.Context, r rung) (Diff, error) {
	a, err := t.take(ctx, r, t.cfg.MaxPatch, diffScript)
	switch {
	case errors.Is(err, errLarge):
		return Diff{}, fmt.Errorf("take diff: %w (agent.max_patch_bytes)", err)
	case err != nil:
		return Diff{}, fmt.Errorf("take diff: %w", err)
	}
	d := Diff{Patch: a.patch, Tree: a.tree, Exact: a.state == "exact", OmittedCount: a.count}
	if !d.Exact {
		d.Problem = printable(a.words)
	}
	for entry := range bytes.SplitSeq(a.omitted, []byte{0}) {
		reason, name, ok := bytes.Cut(entry, []byte("\t"))
		if ok && len(d.Omitted) < maxOmitted {
			d.Omitted = append(d.Omitted, Omission{printable(bytes.TrimPrefix(name, []byte("./"))), printable(reason)})
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

// rooms are how much has to be free, in KiB, and how much when that was not
// enough.
var rooms = []int{32 << 10, 2 << 20}

// ask runs a script on the shadow, for so long.
func (t *Tree) ask(ctx context.Context, script string, attrs []byte, limit time.Duration) (answer, error) {
	var s strings.Builder
	fmt.Fprintf(&s, "marker=%s\ntag=%s\nbase=%s\nstart=%s\ndir=%s\ncommon=%s\ntop=%s\n",
		marker, t.tag, quote(t.Base), quote(t.start.Tree), quote(t.dir), quote(t.common), quote(t.top))
	s.WriteString(file("settings", t.settings))
	s.WriteString(file("attributes", attrs))
	s.WriteString(file("exclude", []byte(strings.Join(t.cfg.Exclude, "\n"))))
	s.WriteString(file("junk", t.junk()))
	s.WriteString(file("start_patch", t.start.Patch))
	s.WriteString(shadowScript + script)
	var res env.Result
	for _, room := range rooms {
		var err error
		res, err = execute(ctx, t.box, fmt.Sprintf("room=%d\n", room)+s.String(), limit)
		if err != nil {
			return answer{}, err
		}
		if res.ExitCode == noRoom || !isNoRoom(res) {
			break
		}
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
