package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/convert"
)

// recording is an attempt that is to be replayed.
type recording struct {
	path    string // of its file
	run     string // the folder of its run; empty for a file
	id      string // as the recording says it; fit for no path
	attempt int
	file    *convert.File
	row     datasets.Instance
	isDemo  bool
	failed  error // why it cannot be replayed
}

// find reads what the arguments name. What cannot be read is kept with the
// reason, as long as there is something that can be.
func (o *replayOptions) find(s Streams, args []string) ([]*recording, error) {
	var all []*recording
	met := map[string]bool{}
	for _, arg := range args {
		found, err := o.findIn(s, arg, met)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	for _, id := range o.instances {
		if !met[id] {
			return nil, usagef("there is no attempt on %.100s in what is to be replayed", report.Printable(id))
		}
	}
	var failed []error
	for _, r := range all {
		r.open()
		if r.failed != nil {
			failed = append(failed, r.failed)
		}
	}
	switch {
	case len(all) == 0:
		return nil, usagef("there is no attempt to replay in %s", strings.Join(args, ", "))
	case len(failed) == len(all):
		return nil, before(errors.Join(failed...))
	}
	return all, nil
}

// findIn is what one argument names: a file, a run, or an instance's folder in a
// run.
func (o *replayOptions) findIn(s Streams, arg string, met map[string]bool) ([]*recording, error) {
	info, err := os.Stat(arg)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, noRun(arg, err)
	case err != nil:
		return nil, before(err)
	case !info.IsDir():
		return []*recording{{path: arg}}, nil
	}
	only, dir := o.instances, arg
	run, err := runner.ReadRun(dir)
	if errors.Is(err, runner.ErrNoRun) {
		if above, id, ok := runAbove(dir); ok && id != "" {
			only, dir = []string{id}, above
			run, err = runner.ReadRun(dir)
		}
	}
	if err != nil {
		return nil, noRun(arg, err)
	}
	for _, text := range run.Unread {
		_, _ = fmt.Fprintln(s.Err, "mini: warning:", report.Printable(text)) // only for people
	}
	var all []*recording
	for _, in := range run.Instances {
		if len(only) > 0 && !slices.Contains(only, in.ID) {
			continue
		}
		for _, a := range o.which(in) {
			met[in.ID] = true
			all = append(all, &recording{path: a.Journal, run: dir, id: in.ID, attempt: a.Number})
		}
	}
	return all, nil
}

// which are the attempts that were asked for: else those that count, one for each
// sample, of which a branch takes the first; else the newest.
func (o *replayOptions) which(in runner.Instance) []runner.Attempt {
	numbers := []int{o.attempt}
	if o.attempt == 0 && len(in.Samples) > 0 {
		numbers = nil
		for _, r := range in.Samples {
			numbers = append(numbers, r.Attempt)
		}
		if o.branches() {
			numbers = numbers[:1]
		}
	}
	var all []runner.Attempt
	for _, n := range numbers {
		for _, a := range slices.Backward(in.Attempts) {
			if n == 0 || a.Number == n {
				all = append(all, a)
				break
			}
		}
	}
	return all
}

// open finds out what the file is. One that is no plain file could keep its
// reader waiting for ever.
func (r *recording) open() {
	info, err := os.Stat(r.path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a plain file", r.path)
	}
	if err == nil {
		r.file, err = convert.Open(r.path)
	}
	if err == nil && r.file == nil {
		err = fmt.Errorf("%s is empty", r.path)
	}
	if err != nil {
		r.failed = err
		return
	}
	h := r.file.Header
	r.id, r.attempt = cmp.Or(r.id, h.InstanceID), cmp.Or(r.attempt, h.Attempt)
	r.row = datasets.Instance{ID: folderName(cmp.Or(r.id, "attempt")), Image: h.Image}
}

// gather is all of the recording.
func (r *recording) gather() (*trajectories.Transcript, error) {
	return trajectories.Gather(r.file.Records)
}

// folderName makes a part of a folder's name of an id that may be anybody's.
func folderName(id string) string {
	name := []rune(strings.Trim(unfit.ReplaceAllString(id, "-"), ".-"))
	return cmp.Or(string(name[:min(len(name), maxName)]), "attempt")
}
