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

// Diff is what changed in a working tree since the start.
type Diff struct {
	// Patch is a patch for git apply. It includes untracked files, but not
	// ignored ones. Binary files and text that is not UTF-8 are binary patches,
	// so Patch is always valid UTF-8. A rename is a deletion and a new file.
	// Nested repositories are left out.
	Patch []byte
	// Tree is git's hash of the tree with Patch applied.
	Tree string
	// Exact reports that applying the patch to the state at the start gave
	// exactly Tree. If it did not, Problem is git's message.
	Exact   bool
	Problem string
	// Omitted lists changed files and folders that the patch leaves out because
	// they are too large or unreadable, or because git rejects them. At most
	// maxOmitted are listed; OmittedCount counts all.
	Omitted      []Omission
	OmittedCount int
}

// Omission is an omitted file or folder. The name of a folder ends with a
// slash.
type Omission struct{ Name, Reason string }

func (o Omission) String() string { return o.Name + " (" + o.Reason + ")" }

const maxOmitted = 20

// sizeLimits are the maximum sizes of new and of changed files, as multiples of
// the maximum size of a patch. A new folder may be four times as large as a new
// file.
type sizeLimits struct{ newFiles, changedFiles float64 }

// limitSteps are tried in order until the patch is small enough: new files
// (environments, build products, dumps) are left out before changed ones, and
// large files before small ones.
var limitSteps = []sizeLimits{{1, 20}, {0.25, 1}, {1. / 64, 0.25}, {0, 1. / 64}}

// Diff returns what changed since the start. It fails if the repository no
// longer has the commit of the start, if there is no disk space, or if the
// change is too large even without its large files.
func (t *Tree) Diff(ctx context.Context) (Diff, error) {
	switch {
	case t.Base == "":
		return Diff{}, nil
	case t.differ != nil:
		return t.differ.Diff(ctx)
	}
	return tryLimits(ctx, func(limits sizeLimits) (Diff, error) { return t.diff(ctx, limits) })
}

// tryLimits calls take with each of limitSteps until it succeeds or fails for
// another reason than size or time. The error prefers size to time.
func tryLimits[T any](ctx context.Context, take func(sizeLimits) (T, error)) (result T, finalErr error) {
	for _, limits := range limitSteps {
		result, err := take(limits)
		if err == nil || ctx.Err() != nil || !errors.Is(err, errTooLarge) && !errors.Is(err, errTimeout) {
			return result, err
		}
		if finalErr == nil || errors.Is(err, errTooLarge) {
			finalErr = err
		}
	}
	return result, finalErr
}

var errTooLarge = errors.New("the change is too large for a patch")

// runOnTree runs a script on the tree of the current files. The script outputs
// a patch of at most maxPatch bytes.
func (t *Tree) runOnTree(ctx context.Context, limits sizeLimits, maxPatch int, script string) (output, error) {
	sizes := fmt.Sprintf("limit=%d\nnew=%d\nold=%d\n", maxPatch, int64(float64(maxPatch)*limits.newFiles), int64(float64(maxPatch)*limits.changedFiles))
	script = sizes + t.start.shellFunctions() + treeScript + script
	out, err := t.runScript(ctx, script, nil, tryTimeout(ctx))
	if err == nil && out.state != "large" && !isText(out.patch) {
		out, err = t.runScript(ctx, script, binaryAttributes(out.patch), tryTimeout(ctx))
	}
	if err == nil && out.state == "large" {
		err = fmt.Errorf("%w of %d bytes", errTooLarge, maxPatch)
	}
	return out, err
}

func (t *Tree) diff(ctx context.Context, limits sizeLimits) (Diff, error) {
	out, err := t.runOnTree(ctx, limits, t.cfg.MaxPatch, diffScript)
	switch {
	case errors.Is(err, errTooLarge):
		return Diff{}, fmt.Errorf("take diff: %w (agent.max_patch_bytes)", err)
	case err != nil:
		return Diff{}, fmt.Errorf("take diff: %w", err)
	}
	d := Diff{Patch: out.patch, Tree: out.tree, Exact: out.state == "exact", OmittedCount: out.count}
	if !d.Exact {
		d.Problem = sanitize(out.message)
	}
	for entry := range bytes.SplitSeq(out.omitted, []byte{0}) {
		reason, name, ok := bytes.Cut(entry, []byte("\t"))
		if ok && len(d.Omitted) < maxOmitted {
			d.Omitted = append(d.Omitted, Omission{sanitize(bytes.TrimPrefix(name, []byte("./"))), sanitize(reason)})
		}
	}
	return d, nil
}

// output is the parsed output of a script. The function emit in shadow.sh
// prints it.
type output struct {
	state, tree      string
	message, omitted []byte
	patch            []byte
	count            int // number of omitted names, including those cut off in omitted
}

// tryTimeout returns the timeout of one try: at most half of the remaining time,
// so that there is time for another try, but at least a second.
func tryTimeout(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return scriptTimeout
	}
	return max(min(scriptTimeout, time.Until(deadline)/2), time.Second)
}

// requiredSpace is the free disk space to require, in KiB. The second value is
// tried if the first was not enough.
var requiredSpace = []int{32 << 10, 2 << 20}

// runScript runs a script with the shadow git directory. attrs is the gitattributes
// file of that directory.
func (t *Tree) runScript(ctx context.Context, script string, attrs []byte, timeout time.Duration) (output, error) {
	var s strings.Builder
	fmt.Fprintf(&s, "marker=%s\ntag=%s\nbase=%s\nstart=%s\ndir=%s\ncommon=%s\ntop=%s\n",
		marker, t.tempTag, shellQuote(t.Base), shellQuote(t.start.Tree), shellQuote(t.gitDir), shellQuote(t.commonDir), shellQuote(t.topDir))
	s.WriteString(shellFunction("settings", t.settings))
	s.WriteString(shellFunction("attributes", attrs))
	s.WriteString(shellFunction("exclude", []byte(strings.Join(t.cfg.Exclude, "\n"))))
	s.WriteString(shellFunction("junk", t.excludeFile()))
	s.WriteString(shellFunction("start_patch", t.start.Patch))
	s.WriteString(shadowScript + script)
	var res env.Result
	for _, space := range requiredSpace {
		var err error
		res, err = execute(ctx, t.sandbox, fmt.Sprintf("room=%d\n", space)+s.String(), timeout)
		if err != nil {
			return output{}, err
		}
		if res.ExitCode == exitNoSpace || !isNoSpace(res) {
			break
		}
	}
	if err := scriptError(res, timeout); err != nil {
		return output{}, err
	}
	out, err := parseOutput(res.Output)
	if err != nil {
		return output{}, fmt.Errorf("%w: %.200q", err, res.Output)
	}
	return out, nil
}

var errInvalidOutput = errors.New("invalid output of a script in the sandbox")

func parseOutput(data []byte) (output, error) {
	data, ok := bytes.CutPrefix(data, []byte(marker+"\n"))
	line, rest, cut := bytes.Cut(data, []byte("\n"))
	fields := strings.Fields(string(line[:min(len(line), 300)]))
	if !ok || !cut || len(fields) != 6 {
		return output{}, errInvalidOutput
	}
	var n [4]int
	for i, field := range fields[2:] {
		var err error
		if n[i], err = strconv.Atoi(field); err != nil || n[i] < 0 {
			return output{}, errInvalidOutput
		}
	}
	message, omitted, patch, count := n[0], n[1], n[2], n[3]
	if message > len(rest) || omitted > len(rest)-message || patch != len(rest)-message-omitted {
		return output{}, errInvalidOutput
	}
	parsed := output{state: fields[0], message: rest[:message], omitted: rest[message : message+omitted], patch: rest[message+omitted:], count: count}
	if isHash(fields[1]) {
		parsed.tree = fields[1]
	}
	return parsed, nil
}
