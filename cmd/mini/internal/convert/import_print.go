package convert

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/formats"
)

// importStats summarizes an import. Attempts counts imported attempts, Skipped counts
// attempts that were imported before, and Failed counts unreadable files and rows.
type importStats struct {
	Attempts, Skipped, Failed int
	Other                     int // files found in folders, in unknown formats
	NoOutcome                 int // attempts without an outcome
	instances                 map[string]bool
	classes                   map[trajectories.Class]int
	models                    []string // the first two different names
	losses                    []importLoss
	formats                   map[string]int // number of attempts by format
}

// importLoss is one kind of data that attempts in a format lost in the import.
type importLoss struct {
	format, description string
	count               int // number of lost items
	attempts            int // number of attempts that lost items
}

// add counts an imported attempt.
func (s *importStats) add(t *formats.File, added runner.ImportedAttempt) {
	if s.instances == nil {
		s.instances, s.formats, s.classes = map[string]bool{}, map[string]int{}, map[trajectories.Class]int{}
	}
	s.Attempts++
	s.instances[t.Header.InstanceID] = true
	s.formats[t.Format]++
	if added.Outcome == nil {
		s.NoOutcome++
	} else {
		s.classes[added.Outcome.Class]++
	}
	if name := t.Header.ModelName; name != "" && len(s.models) < 2 && !slices.Contains(s.models, name) {
		s.models = append(s.models, name)
	}
	for _, text := range t.Losses {
		loss := formats.ParseLoss(text)
		i := slices.IndexFunc(s.losses, func(known importLoss) bool { return known.format == t.Format && known.description == loss.Description })
		if i < 0 {
			i = len(s.losses)
			s.losses = append(s.losses, importLoss{format: t.Format, description: loss.Description})
		}
		s.losses[i].count += loss.Count
		s.losses[i].attempts++
	}
}

// importPrinter prints the progress of an import, as lines for people or as
// JSON.
type importPrinter struct {
	out, err io.Writer
	json     *json.Encoder
	jsonErr  error // the first error of json
	verbose  bool
}

func newImportPrinter(s cmdutil.Streams, o *importOptions) *importPrinter {
	p := &importPrinter{out: s.Out, err: s.Err, verbose: o.verbose}
	if o.json {
		p.json = json.NewEncoder(s.Out)
		p.json.SetEscapeHTML(false)
	}
	return p
}

// importLine is a line of mini import --json.
type importLine struct {
	File       string             `json:"file"`
	Row        int                `json:"row,omitempty"`
	Format     string             `json:"format,omitempty"`
	InstanceID string             `json:"instance_id,omitempty"`
	Attempt    int                `json:"attempt,omitempty"`
	Class      trajectories.Class `json:"class,omitempty"`
	ExitStatus string             `json:"exit_status,omitempty"`
	Lost       []string           `json:"lost,omitempty"`
	Skipped    string             `json:"skipped,omitempty"` // the attempt that was imported before
	Error      string             `json:"error,omitempty"`
	Others     int                `json:"other_rows,omitempty"` // number of further unreadable rows
}

// added prints an imported attempt and its losses, with --verbose or --json only.
func (p *importPrinter) added(path string, f *formats.File, attempt runner.ImportedAttempt) {
	line := importLine{
		File: path, Row: f.Row, Format: f.Format, InstanceID: f.Header.InstanceID, Attempt: attempt.Attempt, Lost: f.Losses,
	}
	outcome := "no outcome"
	if attempt.Outcome != nil {
		line.Class, line.ExitStatus = attempt.Outcome.Class, attempt.Outcome.ExitStatus
		outcome = string(line.Class)
	}
	if p.json != nil {
		p.printJSON(line)
		return
	}
	if !p.verbose {
		return
	}
	p.print("%s attempt %d  %s  %s, from %s\n", line.InstanceID, line.Attempt, outcome, line.Format, location(path, f.Row))
	for _, lost := range f.Losses {
		p.print("    lost: %s\n", lost)
	}
}

// skipped prints that an attempt was imported before; existing names it in the run.
func (p *importPrinter) skipped(path string, f *formats.File, existing string) {
	if p.json != nil {
		p.printJSON(importLine{File: path, Row: f.Row, Format: f.Format, InstanceID: f.Header.InstanceID, Skipped: existing})
		return
	}
	_, _ = fmt.Fprintf(p.err, "mini: skipped %s: already imported as %s\n", text.Printable(location(path, f.Row)), text.Printable(existing))
}

// failed prints the first error of a file and the number of others.
func (p *importPrinter) failed(path string, err error, others int) {
	if p.json != nil {
		p.printJSON(importLine{File: path, Error: err.Error(), Others: others})
	}
	also := ""
	switch {
	case others == 1:
		also = "; 1 more row was not read"
	case others > 1:
		also = fmt.Sprintf("; %d more rows were not read", others)
	}
	_, _ = fmt.Fprintf(p.err, "mini: %s%s\n", text.Printable(err.Error()), also) // best effort
}

// location returns path with the number of the row, or path alone if row is 0.
func location(path string, row int) string {
	if row > 0 {
		return fmt.Sprintf("%s, row %d", path, row)
	}
	return path
}

// print formats and prints a line. It sanitizes the strings in args, which come from
// files.
func (p *importPrinter) print(format string, args ...any) {
	for i, a := range args {
		if s, ok := a.(string); ok {
			args[i] = text.Printable(s)
		}
	}
	_, _ = fmt.Fprintf(p.out, format, args...)
}

// printJSON prints a line with --json. printSummary returns the first error.
func (p *importPrinter) printJSON(line importLine) {
	if err := p.json.Encode(line); err != nil && p.jsonErr == nil {
		p.jsonErr = err
	}
}

// printSummary prints the totals and the losses of each format. With --json, it prints
// nothing.
func (p *importPrinter) printSummary(run string, s *importStats) error {
	if p.json != nil {
		return p.jsonErr
	}
	if _, err := fmt.Fprintf(p.out, "%s of %s in %s\n", text.Count(s.Attempts, "attempt"),
		text.Count(len(s.instances), "instance"), text.Printable(run)); err != nil {
		return err
	}
	for _, part := range []struct {
		n    int
		text string
	}{
		{s.NoOutcome, "without an outcome"},
		{s.Skipped, "skipped: imported before"},
		{s.Other, "skipped: not trajectories"},
		{s.Failed, "unreadable, see above"},
	} {
		if part.n > 0 {
			p.print("  %d %s\n", part.n, part.text)
		}
	}
	for _, f := range slices.Sorted(maps.Keys(s.formats)) {
		p.printFormat(f, s)
	}
	return nil
}

// printFormat prints the number of attempts and the losses of a format.
func (p *importPrinter) printFormat(name string, s *importStats) {
	p.print("%s: %s\n", name, text.Count(s.formats[name], "attempt"))
	losses := slices.DeleteFunc(slices.Clone(s.losses), func(l importLoss) bool { return l.format != name })
	slices.SortStableFunc(losses, func(a, b importLoss) int { return cmp.Compare(b.count, a.count) })
	if len(losses) == 0 {
		p.print("  nothing was lost\n")
	}
	for _, l := range losses {
		times := ""
		if l.count > l.attempts {
			times = fmt.Sprintf("%d times ", l.count)
		}
		p.print("  lost: %s (%sin %s)\n", l.description, times, text.Count(l.attempts, "attempt"))
	}
}
