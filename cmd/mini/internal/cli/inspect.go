package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/minibench/mini/cmd/mini/internal/inspect"
	"github.com/minibench/mini/cmd/mini/internal/screen"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/trajectories/filter"
)

// inspectOptions are the flags of mini inspect.
type inspectOptions struct {
	filter, sort string
	all          bool
	plain, json  bool
	step         int
	reasoning    bool
	noReasoning  bool
	stepIsSet    bool
	filtering    filter.Filter
	sorting      inspect.Sorting
	path         string
}

func newInspect(s Streams) *cobra.Command {
	o := &inspectOptions{}
	cmd := &cobra.Command{
		Use:     "inspect [PATH]",
		Aliases: []string{"i", "inspector"},
		Short:   "Browse trajectories: list, search, read step by step",
		Long: `Lists the trajectories of a run, of a folder, or of a file, of every format
that mini import reads, and shows them step by step: what was thought, said, run
and printed, the patch, and the log of the tests. ? shows the keys, which are
those of mini-swe-agent's inspector and some more. PATH is the current folder
where none is given; a single trajectory is read at once.

Without a terminal, or with --plain, the list is printed, or all of one
trajectory. Nothing is written, and a run at work may be looked at.

CONDITIONS must all hold: 'status:limit verdict:unresolved cost>1 cost<5
text:"no such file" django'. A text is searched for in the trajectories, a word
without a field in their ids.`,
		Example: `  mini inspect runs/first
  mini inspect runs/first --filter 'status:limit cost>1' --sort -cost
  mini inspect theirs/django__django-11099.traj.json
  mini inspect --plain runs/first/ID --step 3 | grep Error`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("mini inspect takes one file or folder, not %d; see mini inspect --help", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.path = "."
			if len(args) == 1 {
				o.path = args[0]
			}
			o.stepIsSet = cmd.Flags().Changed("step")
			return o.run(cmd.Context(), s)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.filter, "filter", "f", "", "only what meets these `CONDITIONS`")
	f.StringVar(&o.sort, "sort", "id", "by this `FIELD`; -FIELD turns it round")
	f.BoolVarP(&o.all, "all", "a", false, "attempts that do not count too")
	f.BoolVar(&o.reasoning, "reasoning", false, "show the model's reasoning (key r)")
	f.BoolVar(&o.noReasoning, "no-reasoning", false, "hide the model's reasoning")
	f.BoolVar(&o.plain, "plain", false, "print, and take no screen")
	f.BoolVar(&o.json, "json", false, "print the list as JSON, a line each")
	f.IntVar(&o.step, "step", 0, "print only step `N`; 0: the prompts")
	return cmd
}

func (o *inspectOptions) run(ctx context.Context, s Streams) error {
	if err := o.prepare(); err != nil {
		return err
	}
	out, _ := s.Out.(*os.File)
	var err error
	if plain := o.plain || o.json || o.stepIsSet; plain || !mayDraw(s, out) {
		err = o.print(ctx, s)
	} else {
		err = inspect.Run(ctx, inspect.Config{
			Path: o.path, Terminal: out, Filter: o.filtering, Line: o.filter, Sorting: o.sorting, All: o.all,
			Reasoning: o.reasoning, Colours: os.Getenv("NO_COLOR") == "",
		})
	}
	return o.explain(err)
}

// prepare finds mistakes before anything is read.
func (o *inspectOptions) prepare() (err error) {
	if o.filtering, err = filter.Parse(o.filter); err != nil {
		return usagef("--filter: %w", err)
	}
	if o.sorting, err = inspect.ParseSorting(o.sort); err != nil {
		return usagef("--sort: %w", err)
	}
	if o.reasoning && o.noReasoning {
		return usagef("--reasoning and --no-reasoning cannot both hold")
	}
	if o.json && o.stepIsSet {
		return usagef("--json is of the list; a step is printed as text")
	}
	return nil
}

// mayDraw says whether there is a terminal that can be drawn on, and keys.
func mayDraw(s Streams, out *os.File) bool {
	if out == nil || !s.OutTerminal || !screen.Foreground(out) {
		return false
	}
	in, _ := s.In.(*os.File)
	name := os.Getenv("TERM")
	return in != nil && term.IsTerminal(int(in.Fd())) && name != "" && name != "dumb"
}

func (o *inspectOptions) print(ctx context.Context, s Streams) error {
	p := inspect.Printing{
		Path: o.path, Filter: o.filtering, Sorting: o.sorting, All: o.all, JSON: o.json, Reasoning: o.reasoning,
		Colours: s.OutTerminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
	}
	if o.stepIsSet {
		p.Step = &o.step
	}
	notes, err := inspect.Print(ctx, s.Out, p)
	for _, n := range notes {
		_, _ = fmt.Fprintln(s.Err, "mini: not read:", report.Printable(n)) // only for people
	}
	return err
}

// explain says what to do where there is nothing to be seen.
func (o *inspectOptions) explain(err error) error {
	var nothing *inspect.ErrNothing
	switch {
	case errors.Is(err, fs.ErrNotExist) && !exists(o.path):
		text := fmt.Sprintf("%s: there is no such file or folder", o.path)
		if near := newestRun(defaultRuns); near != "" {
			text += "; the newest run here is " + near
		}
		return usagef("%s", text)
	case errors.As(err, &nothing):
		return before(err)
	}
	return err
}

// sortWords are what a list can be sorted by.
func sortWords() []string {
	var all []string
	for _, f := range inspect.SortFields() {
		all = append(all, string(f), "-"+string(f))
	}
	return all
}

// completeTrajectories offers folders, and files that may be trajectories.
func completeTrajectories(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return offer(files(typed, ".json", ".jsonl", ".traj"))
}
