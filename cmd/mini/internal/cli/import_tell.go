package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/convert"
)

// importSum is what an import came to.
type importSum struct {
	Attempts, Skipped, Failed, Passed int
	Unended                           int // attempts without an outcome
	instances                         map[string]bool
	classes                           map[trajectories.Class]int
	models                            []string // the first two
	losses                            []importLoss
	formats                           map[string]int
}

// importLoss is what one format could not keep.
type importLoss struct {
	format, what string
	times, files int
}

func (s *importSum) add(t *convert.File, added runner.Imported) {
	if s.instances == nil {
		s.instances, s.formats, s.classes = map[string]bool{}, map[string]int{}, map[trajectories.Class]int{}
	}
	s.Attempts++
	s.instances[t.Header.InstanceID] = true
	s.formats[t.Format]++
	if added.Outcome == nil {
		s.Unended++
	} else {
		s.classes[added.Outcome.Class]++
	}
	if name := t.Header.ModelName; name != "" && len(s.models) < 2 && !slices.Contains(s.models, name) {
		s.models = append(s.models, name)
	}
	for _, text := range t.Lost {
		l := convert.LossOf(text)
		at := slices.IndexFunc(s.losses, func(x importLoss) bool { return x.format == t.Format && x.what == l.What })
		if at < 0 {
			at = len(s.losses)
			s.losses = append(s.losses, importLoss{format: t.Format, what: l.What})
		}
		s.losses[at].times += l.Times
		s.losses[at].files++
	}
}

// importTeller says what becomes of the files: as lines for people, or as JSON.
type importTeller struct {
	out, err io.Writer
	json     *json.Encoder
	verbose  bool
}

func newImportTeller(s Streams, o *importOptions) *importTeller {
	t := &importTeller{out: s.Out, err: s.Err, verbose: o.verbose}
	if o.json {
		t.json = json.NewEncoder(s.Out)
		t.json.SetEscapeHTML(false)
	}
	return t
}

// importLine is a line of --json.
type importLine struct {
	File       string             `json:"file"`
	Row        int                `json:"row,omitempty"`
	Format     string             `json:"format,omitempty"`
	InstanceID string             `json:"instance_id,omitempty"`
	Attempt    int                `json:"attempt,omitempty"`
	Class      trajectories.Class `json:"class,omitempty"`
	ExitStatus string             `json:"exit_status,omitempty"`
	Lost       []string           `json:"lost,omitempty"`
	Skipped    string             `json:"skipped,omitempty"` // the attempt that it is already
	Error      string             `json:"error,omitempty"`
	Others     int                `json:"other_rows,omitempty"` // that were not read either
}

func (t *importTeller) added(path string, f *convert.File, in runner.Imported) {
	line := importLine{
		File: path, Row: f.Row, Format: f.Format, InstanceID: f.Header.InstanceID, Attempt: in.Attempt, Lost: f.Lost,
	}
	ended := "no outcome"
	if in.Outcome != nil {
		line.Class, line.ExitStatus = in.Outcome.Class, in.Outcome.ExitStatus
		ended = string(line.Class)
	}
	if t.json != nil {
		_ = t.json.Encode(line) // a reader that is gone is found at the end
		return
	}
	if !t.verbose {
		return
	}
	t.say("%s attempt %d  %s  %s, of %s\n", line.InstanceID, line.Attempt, ended, line.Format, place(path, f.Row))
	for _, lost := range f.Lost {
		t.say("    lost: %s\n", lost)
	}
}

func (t *importTeller) skipped(path string, f *convert.File, where string) {
	if t.json != nil {
		_ = t.json.Encode(importLine{File: path, Row: f.Row, Format: f.Format, InstanceID: f.Header.InstanceID, Skipped: where})
		return
	}
	_, _ = fmt.Fprintf(t.err, "mini: %s is %s already, and is skipped\n", report.Printable(place(path, f.Row)), report.Printable(where))
}

// failed names what is wrong with a file; of many rows the first is enough.
func (t *importTeller) failed(path string, err error, others int) {
	if t.json != nil {
		_ = t.json.Encode(importLine{File: path, Error: err.Error(), Others: others})
	}
	also := ""
	switch {
	case others == 1:
		also = "; 1 more row was not read"
	case others > 1:
		also = fmt.Sprintf("; %d more rows were not read", others)
	}
	_, _ = fmt.Fprintf(t.err, "mini: %s%s\n", report.Printable(err.Error()), also) // only for people
}

func place(path string, row int) string {
	if row > 0 {
		return fmt.Sprintf("%s, row %d", path, row)
	}
	return path
}

// say prints what comes from files, so that it stays on its line.
func (t *importTeller) say(format string, args ...any) {
	for i, a := range args {
		if s, ok := a.(string); ok {
			args[i] = report.Printable(s)
		}
	}
	_, _ = fmt.Fprintf(t.out, format, args...)
}

// end sums up: how many, and what each format could not keep.
func (t *importTeller) end(run string, s *importSum) error {
	if t.json != nil {
		return nil
	}
	if _, err := fmt.Fprintf(t.out, "%s of %s in %s\n", report.Count(s.Attempts, "attempt"),
		report.Count(len(s.instances), "instance"), report.Printable(run)); err != nil {
		return err
	}
	for _, part := range []struct {
		n    int
		text string
	}{
		{s.Unended, "without an outcome: their files do not say how they ended"},
		{s.Skipped, "skipped: imported before"},
		{s.Passed, "passed over: files of the folders that are no trajectories"},
		{s.Failed, "not read, see above"},
	} {
		if part.n > 0 {
			t.say("  %d %s\n", part.n, part.text)
		}
	}
	for _, f := range slices.Sorted(maps.Keys(s.formats)) {
		t.format(f, s)
	}
	return nil
}

func (t *importTeller) format(name string, s *importSum) {
	t.say("%s: %s\n", name, report.Count(s.formats[name], "attempt"))
	losses := slices.DeleteFunc(slices.Clone(s.losses), func(l importLoss) bool { return l.format != name })
	slices.SortStableFunc(losses, func(a, b importLoss) int { return cmp.Compare(b.times, a.times) })
	if len(losses) == 0 {
		t.say("  nothing was lost\n")
	}
	for _, l := range losses {
		times := ""
		if l.times > l.files {
			times = fmt.Sprintf("%d times ", l.times)
		}
		t.say("  lost: %s (%sin %s)\n", l.what, times, report.Count(l.files, "attempt"))
	}
}
