package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/convert"
)

// importOptions are the flags of mini import.
type importOptions struct {
	output        string
	verbose, json bool
}

func newImport(s Streams) *cobra.Command {
	o := &importOptions{}
	cmd := &cobra.Command{
		Use:   "import -o RUN FILE...",
		Short: "Make a run of other agents' trajectories",
		Long: `Reads trajectories of mini-swe-agent (releases 1 and 2), SWE-agent, OpenHands,
ATIF, lists of OpenAI messages and mini's own journals, and makes a run of them
that mini report, mini eval and the others read. Which format a file has, its
content says. Folders are walked.

An attempt is made of each file, or of each line of a file of lines. The same
instance again becomes its attempts 1, 2, ...; the same file again is skipped.
What could not be kept is listed at the end. Files that cannot be read are
named, the others go on, and the exit code is 3. A file, or a line of one, may
have 512 MB; reading it takes several times that in memory.`,
		Example: `  mini import -o runs/theirs trajs/*.traj.json
  mini import -o runs/theirs -v output.jsonl && mini eval -p runs/theirs`,
		Args: atLeastOne("files or folders of trajectories"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), s, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.output, "output", "o", "", "the `RUN` to make, or to add to")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "a line for each attempt, and what each file lost")
	f.BoolVar(&o.json, "json", false, "print JSON, a line for each attempt and each\nfile that was not read")
	return cmd
}

func (o *importOptions) run(ctx context.Context, s Streams, paths []string) error {
	if o.output == "" {
		return usagef("-o RUN is needed: the folder of the run to make, or to add to")
	}
	files, err := findTrajectories(paths, o.output)
	if err != nil {
		return before(err)
	}
	if len(files) == 0 {
		return usagef("there is no trajectory in %s; files of trajectories end in .json, .jsonl or .traj", filepath.Join(paths[0]))
	}
	folder, err := runner.Open(o.output)
	if err != nil {
		return before(err)
	}
	defer folder.Close() //nolint:errcheck // the lock ends with the process
	in, err := folder.Importer(Version)
	if err != nil {
		return before(err)
	}
	i := &importing{in: in, tell: newImportTeller(s, o)}
	for _, f := range files {
		if ctx.Err() != nil {
			break
		}
		if err := i.file(f); err != nil {
			return errors.Join(err, in.Close())
		}
	}
	if err := errors.Join(in.Close(), i.manifest(folder)); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := i.tell.end(o.output, &i.sum); err != nil {
		return err
	}
	if i.sum.Failed > 0 {
		return errIncomplete
	}
	return nil
}

// importing is an import at work.
type importing struct {
	in   *runner.Importer
	tell *importTeller
	sum  importSum
}

// file takes in every attempt of a file. The error is about the run's folder.
// In a folder there is more than trajectories: a file of it that holds none is
// passed over.
func (i *importing) file(f trajectoryFile) error {
	if f.Err != nil {
		i.sum.Failed++
		i.tell.failed(f.Path, f.Err, 0)
		return nil
	}
	var first error
	good, bad, unknown := 0, 0, 0
	for t, err := range convert.All(f.Path) {
		if err == nil {
			err = i.take(f.Path, t)
			if wrong, ok := errors.AsType[*recordsError](err); ok {
				err = wrong.err
			} else if err != nil {
				return err
			}
		}
		if err == nil {
			good++
			continue
		}
		if bad++; bad == 1 {
			first = err
		}
		if errors.Is(err, convert.ErrUnknown) {
			unknown++
		}
	}
	switch {
	case bad == 0:
	case f.inFolder && good == 0 && bad == unknown:
		i.sum.Passed++
	default:
		i.sum.Failed += bad
		i.tell.failed(f.Path, first, bad-1)
	}
	return nil
}

func (i *importing) take(path string, t *convert.File) error {
	origin := runner.Origin{SHA256: t.SHA256, Row: t.Row}
	if where := i.in.Has(origin); where != "" {
		i.sum.Skipped++
		i.tell.skipped(path, t, where)
		return nil
	}
	id := t.Header.InstanceID
	if err := datasets.CheckID(id); err != nil {
		return &recordsError{fmt.Errorf("%s: %w", path, err)}
	}
	records := t.Records
	if t.Format == trajectories.Format {
		records = convert.Adopted(t, path)
	}
	added, err := i.in.Add(id, origin, noteErrors(records, path))
	if err != nil {
		return fmt.Errorf("import %s: %w", report.Printable(path), err)
	}
	if err := i.in.AddChildren(id, added, t.Children); err != nil {
		return fmt.Errorf("import %s: %w", report.Printable(path), err)
	}
	i.sum.add(t, added)
	i.tell.added(path, t, added)
	return nil
}

// importedClass stands in run.json where the class of the model does in others.
const importedClass = "imported"

// manifest makes the folder a run's, where it was none. A run that was there
// keeps its own.
func (i *importing) manifest(folder *runner.Folder) error {
	if folder.Begun() || i.sum.Attempts == 0 {
		return nil
	}
	m := runner.Manifest{
		MiniVersion: Version, Dataset: runner.Dataset{Name: "imported"},
		Model: runner.Named{Class: importedClass},
	}
	switch len(i.sum.models) {
	case 0:
	case 1:
		m.Model.Name = i.sum.models[0]
	default:
		m.Model.Name = "several models"
	}
	if _, err := folder.Begin(m, []byte("# This run was made by mini import.\n")); err != nil {
		return err
	}
	return folder.End(runner.Summary{Instances: len(i.sum.instances), Classes: i.sum.classes})
}
