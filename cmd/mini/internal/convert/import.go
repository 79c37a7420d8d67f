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

// ImportOptions are the flags of mini import.
type ImportOptions struct {
	output        string
	verbose, json bool
	byFolder      bool // sessions of mini are instances with the names of their folders
}

// NewImport returns the command mini import.
func NewImport(a *app.App) *cobra.Command {
	o := &ImportOptions{}
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
		RunE: func(cmd *cobra.Command, args []string) error { return runImport(cmd.Context(), a, o, args) },
	}
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "", "folder of the `RUN` to create or extend")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "print a line for each attempt, and the data that it lost")
	f.BoolVar(&o.json, "json", false, "print a line of JSON for each attempt and each unreadable file")
	return cmd
}

// MakeRun makes a run in the new folder dir of the trajectories in paths, to show them. It prints only what it
// cannot read.
func MakeRun(ctx context.Context, a *app.App, dir string, paths []string) error {
	quiet := *a
	quiet.Out = io.Discard
	err := runImport(ctx, &quiet, &ImportOptions{output: dir, byFolder: true}, paths)
	if errors.Is(err, cmdutil.ErrIncomplete) && cmdutil.FileExists(filepath.Join(dir, datasets.RunFile)) {
		return nil // there are others
	}
	return err
}

func runImport(ctx context.Context, a *app.App, o *ImportOptions, paths []string) error {
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
	imp := &importer{
		a: a, verbose: o.verbose, byFolder: o.byFolder, run: runImporter,
		instances: map[string]bool{}, classes: map[trajectories.Class]int{}, formats: map[string]int{},
	}
	if o.json {
		imp.json = json.NewEncoder(a.Out)
		imp.json.SetEscapeHTML(false)
	}
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
	if !o.json {
		imp.printSummary(o.output)
	}
	if imp.outErr == nil && imp.failed > 0 {
		return cmdutil.ErrIncomplete
	}
	return imp.outErr
}

// importer imports files into a run, and prints what it imported.
type importer struct {
	a        *app.App
	verbose  bool
	byFolder bool
	json     *json.Encoder // prints lines of JSON; nil for lines for people
	outErr   error         // the first error of the output
	run      *runner.Importer

	attempts, skipped, failed int // imported attempts, those imported before, and unreadable files and rows
	other                     int // files found in folders, in unknown formats
	noOutcome                 int // attempts without an outcome
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

// importFile imports the attempts of a file. It counts the errors of the file and prints
// the first one, but skips a file in an unknown format that was found in a folder. The
// returned error is one of the run's folder.
func (imp *importer) importFile(f trajectoryFile) error {
	if f.Err != nil {
		imp.printError(f.Path, f.Err, 0)
		return nil
	}
	var firstErr error
	failed, isOther := 0, f.inFolder // isOther: all rows are in unknown formats
	for t, err := range formats.OpenAll(f.Path) {
		if err == nil {
			var runErr error
			if err, runErr = imp.importAttempt(f.Path, t); runErr != nil {
				return runErr
			}
		}
		isOther = isOther && errors.Is(err, formats.ErrUnknownFormat)
		if err != nil {
			firstErr = cmp.Or(firstErr, err)
			failed++
		}
	}
	switch {
	case isOther:
		imp.other++
	case failed > 0:
		imp.printError(f.Path, firstErr, failed-1)
	}
	return nil
}

// importAttempt imports an attempt unless the run has it already. fileErr is an error in
// the attempt's instance id or records, runErr is an error of the run's folder.
func (imp *importer) importAttempt(path string, t *formats.File) (fileErr, runErr error) {
	origin := runner.ImportSource{SHA256: t.SHA256, Row: t.Row}
	if existing := imp.run.FindAttempt(origin); existing != "" {
		imp.skipped++
		if imp.json != nil {
			imp.printJSON(importLine{File: path, Row: t.Row, Format: t.Format, InstanceID: t.Header.InstanceID, Skipped: existing})
		} else {
			_, _ = fmt.Fprintf(imp.a.Err, "mini: skipped %s: already imported as %s\n", text.Printable(location(path, t.Row)), text.Printable(existing))
		}
		return nil, nil
	}
	id := t.Header.InstanceID
	if imp.byFolder {
		id = sessionName(path, id)
	}
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
	imp.added(path, t, added)
	return nil, nil
}

// sessionName returns the name of a session of mini: that of its file or, if it is the usual one, that of its
// folder. It returns the id of other trajectories.
func sessionName(path, id string) string {
	name, isSession := strings.CutSuffix(filepath.Base(path), ".journal.jsonl")
	switch {
	case !isSession:
		return id
	case name != "task":
		return name
	}
	abs, err := filepath.Abs(path)
	if dir := filepath.Base(filepath.Dir(abs)); err == nil && datasets.CheckID(dir) == nil {
		return dir
	}
	return id
}

// writeManifest writes a manifest into a run that has none, unless no attempt was
// imported.
func (imp *importer) writeManifest(folder *runner.Folder) error {
	if folder.HasManifest() || imp.attempts == 0 {
		return nil
	}
	m := runs.Manifest{
		MiniVersion: version.Version, Dataset: runs.Dataset{Name: "imported"},
		Model: runs.ClassAndName{Class: runs.ImportedClass},
	}
	if len(imp.models) == 1 {
		m.Model.Name = imp.models[0]
	} else if len(imp.models) > 1 {
		m.Model.Name = "several models"
	}
	if _, err := folder.StartSession(m, []byte("# This run was made by mini import.\n")); err != nil {
		return err
	}
	return folder.EndSession(runs.Summary{Instances: len(imp.instances), Classes: imp.classes})
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

// added counts an imported attempt, and prints it and its losses with --verbose or --json.
func (imp *importer) added(path string, t *formats.File, added runner.ImportedAttempt) {
	line := importLine{
		File: path, Row: t.Row, Format: t.Format, InstanceID: t.Header.InstanceID, Attempt: added.Attempt, Lost: t.Losses,
	}
	if added.Outcome == nil {
		imp.noOutcome++
	} else {
		line.Class, line.ExitStatus = added.Outcome.Class, added.Outcome.ExitStatus
		imp.classes[line.Class]++
	}
	imp.attempts++
	imp.instances[line.InstanceID] = true
	imp.formats[t.Format]++
	if name := t.Header.ModelName; name != "" && len(imp.models) < 2 && !slices.Contains(imp.models, name) {
		imp.models = append(imp.models, name)
	}
	if imp.json != nil {
		imp.printJSON(line)
	} else if imp.verbose {
		imp.print("%s attempt %d  %s  %s, from %s", line.InstanceID, line.Attempt, cmp.Or(line.Class, "no outcome"), line.Format, location(path, t.Row))
	}
	for _, lost := range t.Losses {
		if imp.json == nil && imp.verbose {
			imp.print("    lost: %s", lost)
		}
		loss := formats.ParseLoss(lost)
		i := slices.IndexFunc(imp.losses, func(known importLoss) bool { return known.format == t.Format && known.description == loss.Description })
		if i < 0 {
			i = len(imp.losses)
			imp.losses = append(imp.losses, importLoss{format: t.Format, description: loss.Description})
		}
		imp.losses[i].count += loss.Count
		imp.losses[i].attempts++
	}
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

func (imp *importer) printJSON(line importLine) {
	imp.outErr = cmp.Or(imp.outErr, imp.json.Encode(line))
}

// print formats and prints a line. It sanitizes the line, since names come from files.
func (imp *importer) print(format string, args ...any) {
	_, err := fmt.Fprintln(imp.a.Out, text.Printable(fmt.Sprintf(format, args...)))
	imp.outErr = cmp.Or(imp.outErr, err)
}

// printError counts and prints the first error of a file and the number of others.
func (imp *importer) printError(path string, err error, others int) {
	imp.failed += 1 + others
	if imp.json != nil {
		imp.printJSON(importLine{File: path, Error: err.Error(), Others: others})
	}
	also := ""
	if others > 0 {
		also = fmt.Sprintf("; %d more %s not read", others, text.Verb(others, "row was", "rows were"))
	}
	_, _ = fmt.Fprintf(imp.a.Err, "mini: %s%s\n", text.Printable(err.Error()), also) // best effort
}

// location returns path with the number of the row, or path alone if row is 0.
func location(path string, row int) string {
	if row > 0 {
		return fmt.Sprintf("%s, row %d", path, row)
	}
	return path
}

// printSummary prints the totals and the losses of each format.
func (imp *importer) printSummary(run string) {
	imp.print("%s of %s in %s", text.Count(imp.attempts, "attempt"), text.Count(len(imp.instances), "instance"), run)
	for i, n := range []int{imp.noOutcome, imp.skipped, imp.other, imp.failed} {
		if n > 0 {
			imp.print("  %d %s", n, []string{"without an outcome", "skipped: imported before", "skipped: not trajectories", "unreadable, see above"}[i])
		}
	}
	slices.SortStableFunc(imp.losses, func(a, b importLoss) int { return cmp.Compare(b.count, a.count) })
	for _, name := range slices.Sorted(maps.Keys(imp.formats)) {
		imp.print("%s: %s", name, text.Count(imp.formats[name], "attempt"))
		isOther := func(l importLoss) bool { return l.format != name }
		lost := slices.DeleteFunc(slices.Clone(imp.losses), isOther)
		for _, l := range lost {
			times := ""
			if l.count > l.attempts {
				times = fmt.Sprintf("%d times ", l.count)
			}
			imp.print("  lost: %s (%sin %s)", l.description, times, text.Count(l.attempts, "attempt"))
		}
		if len(lost) == 0 {
			imp.print("  nothing was lost")
		}
	}
}
