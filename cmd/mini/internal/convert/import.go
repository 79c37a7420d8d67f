package convert

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/internal/version"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/formats"
)

// importOptions holds the flags of mini import.
type importOptions struct {
	output        string
	verbose, json bool
}

// NewImport returns the command mini import.
func NewImport(s cmdutil.Streams) *cobra.Command {
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
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), s, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.output, "output", "o", "", "folder of the `RUN` to create or extend")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "print a line for each attempt, and the data that it lost")
	f.BoolVar(&o.json, "json", false, "print a line of JSON for each attempt and each unreadable file")
	return cmd
}

func (o *importOptions) run(ctx context.Context, s cmdutil.Streams, paths []string) error {
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
	imp := &importer{run: runImporter, out: newImportPrinter(s, o)}
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
	m := runner.Manifest{
		MiniVersion: version.Version, Dataset: runner.Dataset{Name: "imported"},
		Model: runner.ClassAndName{Class: runner.ImportedClass},
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
	return folder.EndSession(runner.Summary{Instances: len(imp.stats.instances), Classes: imp.stats.classes})
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
