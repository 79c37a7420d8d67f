package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/trajectories/atif"
	"github.com/minibench/mini/trajectories/check"
)

func newTrajectories(s Streams) *cobra.Command {
	return group(&cobra.Command{
		Use:   "trajectories",
		Short: "Check the files that attempts leave, of mini and of others",
		Long: `Looks after trajectories: the journals of mini, the .traj.json of
mini-swe-agent, and the files of other agents.`,
		Example: "  mini trajectories check runs/first",
	}, newTrajectoriesCheck(s))
}

// checkOptions are the flags of mini trajectories check.
type checkOptions struct {
	json bool
	atif string
}

func newTrajectoriesCheck(s Streams) *cobra.Command {
	o := &checkOptions{}
	cmd := &cobra.Command{
		Use:   "check FILE...",
		Short: "Say which fields of trajectories are against the rules, and why",
		Long: `Holds trajectories against the rules of their formats: journals of mini,
.traj.json of mini-swe-agent (1 and 1.1), ATIF (1.0 to 1.8), whoever wrote them.
Each problem has a line: the file, the field, the reason. Notes are no problems.

FILE may be a folder, as that of a run: all trajectories in it are checked, and
other files passed over. - is stdin. The exit code is 0 where all is fine, 3
where a file has problems or cannot be read.`,
		Example: `  mini trajectories check runs/first
  mini trajectories check trajectory.json --atif 1.7 --json`,
		Args: atLeastOne("files or folders of trajectories"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), s, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.atif, "atif", "1.8", "`VERSION` of the rules for ATIF files: 1.7 or 1.8")
	f.BoolVar(&o.json, "json", false, "print one JSON document on stdout")
	return cmd
}

// editions of the rules for ATIF, by the version that they came with.
var atifEditions = map[string]atif.Edition{"1.7": atif.Edition7, "1.8": atif.Edition8}

// checked is the report of a file, as --json has it.
type checked struct {
	File string `json:"file"`
	*check.Report
}

func (o *checkOptions) run(ctx context.Context, s Streams, args []string) error {
	edition, ok := atifEditions[o.atif]
	if !ok {
		return usagef("--atif: 1.7 or 1.8 is needed, %.60q is neither", o.atif)
	}
	show := o.show(s)
	bad, all, others := 0, 0, 0
	one := func(name string, r *check.Report) error {
		all++
		if len(r.Problems) > 0 {
			bad++
		}
		return show(checked{name, r})
	}
	for _, arg := range args {
		if arg == "-" {
			if err := one("-", check.Reader("stdin", s.In, check.Options{ATIF: edition})); err != nil {
				return err
			}
			continue
		}
		files := []string{arg}
		if info, err := os.Stat(arg); err == nil && info.IsDir() {
			found, passed, err := check.Find(arg)
			others += passed
			if files = found; err != nil {
				err = one(arg, &check.Report{Problems: []check.Problem{{Reason: err.Error()}}})
			} else if len(found) == 0 {
				err = one(arg, &check.Report{Problems: []check.Problem{{Reason: "there are no trajectories in this folder"}}})
			}
			if err != nil {
				return err
			}
		}
		for _, path := range files {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := one(path, check.File(path, check.Options{ATIF: edition})); err != nil {
				return err
			}
		}
	}
	return o.end(s, all, bad, others)
}

// shownProblems are printed of a file; --json has more.
const shownProblems = 20

// show prints the report of one file. As JSON the reports are the elements of a
// list, written as they come.
func (o *checkOptions) show(s Streams) func(checked) error {
	before := "{\"files\": [\n"
	return func(c checked) error {
		if o.json {
			if c.Problems == nil {
				c.Problems = []check.Problem{}
			}
			var b strings.Builder
			enc := json.NewEncoder(&b)
			enc.SetEscapeHTML(false)
			if err := enc.Encode(c); err != nil {
				return err
			}
			_, err := fmt.Fprint(s.Out, before, strings.TrimSuffix(b.String(), "\n"))
			before = ",\n"
			return err
		}
		var b strings.Builder
		put := func(what string, list []check.Problem) {
			for i, p := range list {
				at := c.File
				if p.Line > 0 {
					at = fmt.Sprintf("%s:%d", c.File, p.Line)
				}
				if i == shownProblems {
					fmt.Fprintf(&b, "%s\n", report.Printable(fmt.Sprintf("%s: %sand %d more; --json names them", c.File, what, len(list)-i)))
					return
				}
				fmt.Fprintf(&b, "%s\n", report.Printable(fmt.Sprintf("%s: %s%s", at, what, p)))
			}
		}
		put("", c.Problems)
		put("note: ", c.Notes)
		_, err := fmt.Fprint(s.Out, b.String())
		return err
	}
}

func (o *checkOptions) end(s Streams, all, bad, others int) error {
	var err error
	if o.json {
		_, err = fmt.Fprintf(s.Out, "\n], \"checked\": %d, \"with_problems\": %d, \"passed_over\": %d}\n", all, bad, others)
	} else {
		text := fmt.Sprintf("%d checked: %d fine, %d with problems", all, all-bad, bad)
		if others > 0 {
			text += "; " + report.Count(others, "other file") + " passed over"
		}
		_, err = fmt.Fprintln(s.Out, text)
	}
	if err == nil && bad > 0 {
		err = errIncomplete
	}
	return err
}
