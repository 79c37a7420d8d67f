package convert

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/internal/version"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/formats"
)

// importOptions holds the flags of mini import.
type importOptions struct {
	output        string
	verbose, json bool
}

// NewImport returns the command mini import.
func NewImport(a *app.App) *cobra.Command {
	o := &importOptions{}
	cmd := &cobra.Command{
		Use:   "import -o RUN FILE...",
		Short: "Import trajectories from other agents",
		Long: `Imports trajectories into a run that mini report, mini eval and other commands
read. It reads trajectories of mini-swe-agent (releases 1 and 2), SWE-agent,
OpenHands and ATIF, lists of OpenAI messages, and journals of mini. It detects
the format by the content, and searches folders for trajectories.

Each file, or each line of a JSONL file, becomes an attempt. Several attempts
on an instance get the numbers 1, 2, ... Files that were imported before are
skipped. The summary lists the data that a format could not keep. If files
cannot be read, mini import names them, imports the others and exits with 3.
A file or line may have up to 512 MB and needs several times that in memory.`,
		Example: `  mini import -o runs/theirs trajs/*.traj.json
  mini import -o runs/theirs -v output.jsonl && mini eval -p runs/theirs`,
		Args: cmdutil.AtLeastOne("files or folders of trajectories"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), a, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.output, "output", "o", "", "folder of the `RUN` to create or extend")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "print a line for each attempt, and the data that it lost")
	f.BoolVar(&o.json, "json", false, "print a line of JSON for each attempt and each unreadable file")
	return cmd
}

func (o *importOptions) run(ctx context.Context, a *app.App, paths []string) error {
	if o.output == "" {
		return usage.Errorf("-o RUN is required: the folder of the run to create or extend")
	}
	files, err := findTrajectories(paths, o.output)
	if err != nil {
		return usage.Wrap(err)
	}
	if len(files) == 0 {
		return usage.Errorf("%s contains no trajectories; their names end in .json, .jsonl or .traj", filepath.Clean(paths[0]))
	}
	folder, err := runner.Open(o.output)
	if err != nil {
		return usage.Wrap(err)
	}
	defer folder.Close() //nolint:errcheck // the process releases the lock anyway
	runImporter, err := folder.Importer(version.Version)
	if err != nil {
		return usage.Wrap(err)
	}
	imp := &importer{run: runImporter, out: newImportPrinter(a, o)}
	for _, f := range files {
		if ctx.Err() != nil {
			break
		}
		if err := imp.importFile(f); err != nil {
			return errors.Join(err, runImporter.Close())
		}
	}
	if err := errors.Join(runImporter.Close(), imp.writeManifest(folder)); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := imp.out.printSummary(o.output, &imp.stats); err != nil {
		return err
	}
	if imp.stats.Failed > 0 {
		return cmdutil.ErrIncomplete
	}
	return nil
}

// importer imports files into a run.
type importer struct {
	run   *runner.Importer
	out   *importPrinter
	stats importStats
}

// importFile imports the attempts of a file. It counts the errors of the file and prints
// the first one, but skips a file in an unknown format that was found in a folder. The
// returned error is one of the run's folder.
func (imp *importer) importFile(f trajectoryFile) error {
	if f.Err != nil {
		imp.stats.Failed++
		imp.out.failed(f.Path, f.Err, 0)
		return nil
	}
	var firstErr error
	imported, failed, unknown := 0, 0, 0
	for t, err := range formats.OpenAll(f.Path) {
		if err == nil {
			var runErr error
			if err, runErr = imp.importAttempt(f.Path, t); runErr != nil {
				return runErr
			}
		}
		if err == nil {
			imported++
			continue
		}
		if failed++; failed == 1 {
			firstErr = err
		}
		if errors.Is(err, formats.ErrUnknownFormat) {
			unknown++
		}
	}
	switch {
	case failed == 0:
	case f.inFolder && imported == 0 && failed == unknown:
		imp.stats.Other++
	default:
		imp.stats.Failed += failed
		imp.out.failed(f.Path, firstErr, failed-1)
	}
	return nil
}

// importAttempt imports an attempt unless the run has it already. fileErr is an error in
// the attempt's instance id or records, runErr is an error of the run's folder.
func (imp *importer) importAttempt(path string, t *formats.File) (fileErr, runErr error) {
	origin := runner.ImportSource{SHA256: t.SHA256, Row: t.Row}
	if existing := imp.run.FindAttempt(origin); existing != "" {
		imp.stats.Skipped++
		imp.out.skipped(path, t, existing)
		return nil, nil
	}
	id := t.Header.InstanceID
	if err := datasets.CheckID(id); err != nil {
		return fmt.Errorf("%s: %w", path, err), nil
	}
	records := t.Records
	if t.Format == trajectories.Format {
		records = formats.WithImportRecord(t, path)
	}
	added, err := imp.run.Add(id, origin, func(yield func(trajectories.Record, error) bool) {
		for r, err := range records {
			fileErr = cmp.Or(fileErr, err)
			if !yield(r, err) {
				return
			}
		}
	})
	switch {
	case fileErr != nil && !strings.HasPrefix(fileErr.Error(), path):
		return fmt.Errorf("%s: %w", path, fileErr), nil
	case fileErr != nil:
		return fileErr, nil
	case err == nil:
		err = imp.run.AddChildren(id, added, t.Children)
	}
	if err != nil {
		return nil, fmt.Errorf("import %s: %w", text.Printable(path), err)
	}
	imp.stats.add(t, added)
	imp.out.added(path, t, added)
	return nil, nil
}

// writeManifest writes a manifest into a run that has none, unless no attempt was
// imported.
func (imp *importer) writeManifest(folder *runner.Folder) error {
	if folder.HasManifest() || imp.stats.Attempts == 0 {
		return nil
	}
	m := runs.Manifest{
		MiniVersion: version.Version, Dataset: runs.Dataset{Name: "imported"},
		Model: runs.ClassAndName{Class: runs.ImportedClass},
	}
	switch len(imp.stats.models) {
	case 0:
	case 1:
		m.Model.Name = imp.stats.models[0]
	default:
		m.Model.Name = "several models"
	}
	if _, err := folder.StartSession(m, []byte("# This run was made by mini import.\n")); err != nil {
		return err
	}
	return folder.EndSession(runs.Summary{Instances: len(imp.stats.instances), Classes: imp.stats.classes})
}

// trajectoryFile is a file to import.
type trajectoryFile struct {
	formats.Candidate
	inFolder bool // found in a folder, not given as an argument
}

// findTrajectories returns the files in paths, and the files with names of trajectories
// in the folders in paths. It skips the folder run. An unreadable folder is in the result
// with its error. If a path is missing, findTrajectories returns an error.
func findTrajectories(paths []string, run string) ([]trajectoryFile, error) {
	runInfo, _ := os.Stat(run) // nil if it does not exist
	enter := func(dir string) bool {
		info, err := os.Stat(dir)
		return err != nil || runInfo == nil || !os.SameFile(info, runInfo)
	}
	var files []trajectoryFile
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, usage.Errorf("%s: %w", path, errors.Unwrap(err))
		}
		if !info.IsDir() {
			files = append(files, trajectoryFile{Candidate: formats.Candidate{Path: path}})
			continue
		}
		for f := range formats.FindFiles(path, enter) {
			files = append(files, trajectoryFile{f, true})
		}
	}
	return files, nil
}

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

func newImportPrinter(a *app.App, o *importOptions) *importPrinter {
	p := &importPrinter{out: a.Out, err: a.Err, verbose: o.verbose}
	if o.json {
		p.json = json.NewEncoder(a.Out)
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
