package replay

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/rows"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/formats"
)

// recording is an attempt to replay.
type recording struct {
	path    string
	run     string // folder of the run; "" for a single file
	id      string // untrusted instance id
	attempt int
	file    *formats.File
	row     datasets.Instance // of the dataset; if unknown, only a safe id and the recorded image
	isDemo  bool
	err     error // reason why the attempt cannot be replayed; nil if it can
}

// find returns the recordings that the arguments name. A recording that cannot be read
// has its error. find returns an error if no recording is readable, or if an instance of
// --instance has none.
func (o *Options) find(a *app.App, args []string) ([]*recording, error) {
	var recordings []*recording
	seen := map[string]bool{}
	for _, arg := range args {
		found, err := o.findIn(a, arg, seen)
		if err != nil {
			return nil, err
		}
		recordings = append(recordings, found...)
	}
	for _, id := range o.instances {
		if _, ok := datasets.MatchID(slices.Collect(maps.Keys(seen)), id); !ok {
			return nil, usage.Errorf("no attempt on %.100s found", text.Printable(id))
		}
	}
	var errs []error
	for _, r := range recordings {
		r.open()
		if r.err != nil {
			errs = append(errs, r.err)
		}
	}
	switch {
	case len(recordings) == 0:
		return nil, usage.Errorf("no attempt found in %s", strings.Join(args, ", "))
	case len(errs) == len(recordings):
		return nil, usage.Wrap(errors.Join(errs...))
	}
	return recordings, nil
}

// findIn returns the recordings of one argument: a file, a run, or the folder of an
// instance in a run. It adds the instance ids of the recordings in runs to seen.
func (o *Options) findIn(a *app.App, arg string, seen map[string]bool) ([]*recording, error) {
	info, err := os.Stat(arg)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, cmdutil.RunFolderError(arg, err)
	case err != nil:
		return nil, usage.Wrap(err)
	case !info.IsDir():
		return []*recording{{path: arg}}, nil
	}
	ids, dir := slices.Clone(o.instances), arg
	run, err := runs.Read(dir)
	if errors.Is(err, runs.ErrNotRunFolder) {
		if above, id, ok := cmdutil.FindRunAbove(dir); ok && id != "" {
			ids, dir = []string{id}, above
			run, err = runs.Read(dir)
		}
	}
	if err != nil {
		return nil, cmdutil.RunFolderError(arg, err)
	}
	for _, line := range run.ReadErrors {
		_, _ = fmt.Fprintln(a.Err, "mini: warning:", text.Printable(line)) // best effort
	}
	var known []string
	for _, in := range run.Instances {
		known = append(known, in.ID)
	}
	for i, typed := range ids {
		if id, ok := datasets.MatchID(known, typed); ok {
			ids[i] = id
		}
	}
	var recordings []*recording
	for _, in := range run.Instances {
		if len(ids) > 0 && !slices.Contains(ids, in.ID) {
			continue
		}
		for _, attempt := range o.selectAttempts(in) {
			seen[in.ID] = true
			recordings = append(recordings, &recording{path: attempt.Journal, run: dir, id: in.ID, attempt: attempt.Number})
		}
	}
	return recordings, nil
}

// selectAttempts returns the attempt of --attempt. Without the flag, it returns the
// attempt that counts of each repetition, or only of the first repetition for a
// branch. If no attempt counts, it returns the newest one.
func (o *Options) selectAttempts(in runs.Instance) []runs.Attempt {
	numbers := []int{o.attempt}
	switch n := len(in.Attempts); {
	case o.attempt != 0 || n == 0:
	case len(in.Repetitions) == 0:
		numbers[0] = in.Attempts[n-1].Number
	default:
		numbers = nil
		for _, r := range in.Repetitions {
			numbers = append(numbers, r.Attempt)
		}
		if o.isBranch() {
			numbers = numbers[:1]
		}
	}
	var selected []runs.Attempt
	for _, n := range numbers {
		if a := in.Attempt(n); a != nil {
			selected = append(selected, *a)
		}
	}
	return selected
}

// open reads the header of the file and sets the instance and the image. On an error,
// it sets r.err. It rejects files that are not regular, since reading a pipe may
// block.
func (r *recording) open() {
	info, err := os.Stat(r.path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", r.path)
	}
	if err == nil {
		r.file, err = formats.Open(r.path)
	}
	if err == nil && r.file == nil {
		err = fmt.Errorf("%s is empty", r.path)
	}
	if err == nil && r.file.Header.AgentName() != "mini" {
		err = fmt.Errorf("%s is of the agent %s, whose commands mini knows only from its messages", r.path, text.Printable(r.file.Header.AgentName()))
	}
	if err != nil {
		r.err = err
		return
	}
	h := r.file.Header
	r.id, r.attempt = cmp.Or(r.id, h.InstanceID), cmp.Or(r.attempt, h.Attempt)
	r.row = datasets.Instance{ID: folderName(cmp.Or(r.id, "attempt")), Image: h.Image}
}

// transcript reads the whole recording.
func (r *recording) transcript() (*trajectories.Attempt, error) {
	return trajectories.Fold(r.file.Records)
}

// folderName makes an untrusted id usable as part of a folder name.
func folderName(id string) string {
	name := []rune(strings.Trim(rows.InvalidFolderChars.ReplaceAllString(id, "-"), ".-"))
	return cmp.Or(string(name[:min(len(name), rows.MaxFolderName)]), "attempt")
}
