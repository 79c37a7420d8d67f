package replay

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/rows"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/runner"
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
	row     datasets.Instance
	isDemo  bool
	failed  error // reason why it cannot be replayed
}

// find returns the recordings that the arguments name. It returns an error only
// if none of them is readable.
func (o *options) find(s cmdutil.Streams, args []string) ([]*recording, error) {
	var all []*recording
	seen := map[string]bool{}
	for _, arg := range args {
		found, err := o.findIn(s, arg, seen)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	for _, id := range o.instances {
		if !seen[id] {
			return nil, usage.Errorf("no attempt on %.100s found", text.Printable(id))
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
		return nil, usage.Errorf("no attempt found in %s", strings.Join(args, ", "))
	case len(failed) == len(all):
		return nil, usage.Wrap(errors.Join(failed...))
	}
	return all, nil
}

// findIn returns the recordings of one argument: a file, a run, or the folder
// of an instance in a run. It adds the ids of its instances to seen.
func (o *options) findIn(s cmdutil.Streams, arg string, seen map[string]bool) ([]*recording, error) {
	info, err := os.Stat(arg)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, cmdutil.RunFolderError(arg, err)
	case err != nil:
		return nil, usage.Wrap(err)
	case !info.IsDir():
		return []*recording{{path: arg}}, nil
	}
	only, dir := o.instances, arg
	run, err := runner.ReadRun(dir)
	if errors.Is(err, runner.ErrNotRunFolder) {
		if above, id, ok := cmdutil.FindRunAbove(dir); ok && id != "" {
			only, dir = []string{id}, above
			run, err = runner.ReadRun(dir)
		}
	}
	if err != nil {
		return nil, cmdutil.RunFolderError(arg, err)
	}
	for _, line := range run.ReadErrors {
		_, _ = fmt.Fprintln(s.Err, "mini: warning:", text.Printable(line)) // best effort
	}
	var all []*recording
	for _, in := range run.Instances {
		if len(only) > 0 && !slices.Contains(only, in.ID) {
			continue
		}
		for _, a := range o.selectAttempts(in) {
			seen[in.ID] = true
			all = append(all, &recording{path: a.Journal, run: dir, id: in.ID, attempt: a.Number})
		}
	}
	return all, nil
}

// selectAttempts returns the attempt of --attempt. By default it returns the
// attempts that count, one for each repetition (only the first for a branch),
// or else the newest attempt.
func (o *options) selectAttempts(in runner.Instance) []runner.Attempt {
	numbers := []int{o.attempt}
	if o.attempt == 0 && len(in.Repetitions) > 0 {
		numbers = nil
		for _, r := range in.Repetitions {
			numbers = append(numbers, r.Attempt)
		}
		if o.isBranch() {
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

// open reads the header of the file. It rejects files that are not regular,
// since reading a pipe may block.
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
	if err != nil {
		r.failed = err
		return
	}
	h := r.file.Header
	r.id, r.attempt = cmp.Or(r.id, h.InstanceID), cmp.Or(r.attempt, h.Attempt)
	r.row = datasets.Instance{ID: folderName(cmp.Or(r.id, "attempt")), Image: h.Image}
}

// transcript reads the whole recording.
func (r *recording) transcript() (*trajectories.Transcript, error) {
	return trajectories.BuildTranscript(r.file.Records)
}

// folderName makes an untrusted id usable as part of a folder name.
func folderName(id string) string {
	name := []rune(strings.Trim(rows.InvalidFolderChars.ReplaceAllString(id, "-"), ".-"))
	return cmp.Or(string(name[:min(len(name), rows.MaxFolderName)]), "attempt")
}
