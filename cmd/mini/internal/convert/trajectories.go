package convert

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/trajectories/formats/atif"
	"github.com/minibench/mini/trajectories/formats/check"
)

// NewTrajectories returns the command mini trajectories.
func NewTrajectories(a *app.App) *cobra.Command {
	return cmdutil.WithSubcommands(&cobra.Command{
		Use:   "trajectories",
		Short: "Check trajectory files of mini and other agents",
		Long: `Checks trajectories: journals of mini, .traj.json files of mini-swe-agent and
files of other agents.`,
		Example: "  mini trajectories check runs/first",
	}, newTrajectoriesCheck(a))
}

// checkOptions holds the flags of mini trajectories check.
type checkOptions struct {
	json bool
	atif string
}

func newTrajectoriesCheck(a *app.App) *cobra.Command {
	o := &checkOptions{}
	cmd := &cobra.Command{
		Use:   "check FILE...",
		Short: "Validate trajectories against their formats",
		Long: `Validates trajectories: journals of mini, .traj.json files of mini-swe-agent
(1 and 1.1) and ATIF (1.0 to 1.8). It prints a line for each problem: the file,
the field and the reason. Notes do not count as problems.

FILE may be a folder, such as a run: mini checks all trajectories in it and skips
other files. A hyphen (-) means stdin. The exit code is 0 if all files are valid,
and 3 if a file has problems or cannot be read.`,
		Example: `  mini trajectories check runs/first
  mini trajectories check trajectory.json --atif 1.7 --json`,
		Args: cmdutil.AtLeastOne("files or folders of trajectories"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), a, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.atif, "atif", "1.8", "`VERSION` of the ATIF specification: 1.7 or 1.8")
	f.BoolVar(&o.json, "json", false, "print one JSON document on stdout")
	return cmd
}

// atifVersions maps the values of --atif to specifications.
var atifVersions = map[string]atif.SpecVersion{"1.7": atif.Spec17, "1.8": atif.Spec18}

// checkedFile is the report on a file in the output of --json.
type checkedFile struct {
	File string `json:"file"`
	*check.Report
}

// checkResult is the output of --json.
type checkResult struct {
	Files        []checkedFile `json:"files"`
	Checked      int           `json:"checked"`
	WithProblems int           `json:"with_problems"`
	PassedOver   int           `json:"passed_over"` // number of other files in folders, not checked
}

func (o *checkOptions) run(ctx context.Context, a *app.App, args []string) error {
	version, ok := atifVersions[o.atif]
	if !ok {
		return usage.Errorf("--atif %.60q: must be 1.7 or 1.8", o.atif)
	}
	var result checkResult
	addReport := func(name string, r *check.Report) {
		file := checkedFile{name, r}
		result.Files = append(result.Files, file)
		if len(r.Problems) > 0 {
			result.WithProblems++
		}
		if file.Problems = append([]check.Problem{}, r.Problems...); !o.json {
			_, _ = io.WriteString(a.Out, file.text()) // PrintResult returns write errors
		}
	}
	for _, arg := range args {
		if arg == "-" {
			addReport("-", check.Read("stdin", a.In, check.Options{ATIF: version}))
			continue
		}
		files := []string{arg}
		if info, err := os.Stat(arg); err == nil && info.IsDir() {
			found, skipped, err := check.Find(arg)
			result.PassedOver += skipped
			if files = found; err == nil && len(found) == 0 {
				err = errors.New("the folder contains no trajectories")
			}
			if err != nil {
				addReport(arg, &check.Report{Problems: []check.Problem{{Reason: err.Error()}}})
			}
		}
		for _, path := range files {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			addReport(path, check.File(path, check.Options{ATIF: version}))
		}
	}
	result.Checked = len(result.Files)
	line := fmt.Sprintf("%d checked: %d valid, %d with problems", result.Checked, result.Checked-result.WithProblems, result.WithProblems)
	if result.PassedOver > 0 {
		line += "; " + text.Count(result.PassedOver, "other file") + " skipped"
	}
	err := cmdutil.PrintResult(a.Streams, o.json, result, line+"\n")
	if err == nil && result.WithProblems > 0 {
		err = cmdutil.ErrIncomplete
	}
	return err
}

// maxListedProblems is the maximum number of problems, and of notes, that are printed
// for a file.
const maxListedProblems = 20

// text formats the report for people.
func (c checkedFile) text() string {
	var b strings.Builder
	write := func(prefix string, list []check.Problem) {
		for i, p := range list {
			location := c.File
			if p.Line > 0 {
				location = fmt.Sprintf("%s:%d", c.File, p.Line)
			}
			if i == maxListedProblems {
				fmt.Fprintf(&b, "%s\n", text.Printable(fmt.Sprintf("%s: %sand %d more; --json lists all", c.File, prefix, len(list)-i)))
				return
			}
			fmt.Fprintf(&b, "%s\n", text.Printable(fmt.Sprintf("%s: %s%s", location, prefix, p)))
		}
	}
	write("", c.Problems)
	write("note: ", c.Notes)
	return b.String()
}
