package report

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/ui/browser"
	"github.com/minibench/mini/cmd/mini/internal/ui/terminal"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/trajectories/query"
)

// inspectOptions holds the flags of mini inspect.
type inspectOptions struct {
	filter, sort string
	all          bool
	plain, json  bool
	step         int
	reasoning    bool
	noReasoning  bool
	stepIsSet    bool              // --step is set; 0 is a valid step
	parsedFilter query.Filter      // of --filter
	sortOrder    browser.SortOrder // of --sort
	path         string
}

// NewInspect returns the command mini inspect.
func NewInspect(a *app.App) *cobra.Command {
	o := &inspectOptions{}
	cmd := &cobra.Command{
		Use:     "inspect [PATH]",
		Aliases: []string{"i", "inspector"},
		Short:   "Browse trajectories",
		Long: `Lists the trajectories of a run, a folder or a file, in all formats that mini
import reads, and shows them step by step: reasoning, replies, commands, outputs,
the patch and the test log. A single trajectory opens directly. Press ? for the
keys; they include those of mini-swe-agent's inspector. Without PATH, mini inspect
lists the sessions of all folders and the runs in this folder's ` + cmdutil.DefaultRunsDir + `,
newest first, with numbers: mini inspect 3 opens the third. With flags that select
or print trajectories it takes the newest run.

Without a terminal, or with --plain, mini inspect prints the list, or the whole
trajectory if there is only one. It only reads; the run may be still running.

CONDITIONS must all match: 'status:limit verdict:unresolved cost>1 cost<5
text:"no such file" django'. text: searches the trajectories; a word without a
field searches the ids; label: finds the labels of mini label.`,
		Example: `  mini inspect
  mini inspect 3
  mini inspect runs/first
  mini inspect runs/first --filter 'status:limit cost>1' --sort -cost
  mini inspect theirs/django__django-11099.traj.json
  mini inspect --plain runs/first/ID --step 3 | grep Error`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage.Errorf("mini inspect takes one file or folder, not %d; see mini inspect --help", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.stepIsSet = cmd.Flags().Changed("step")
			if len(args) == 0 {
				if changedFlag(cmd, "filter", "sort", "reasoning", "no-reasoning", "step", "plain") == "" {
					return listKnown(a, o.all, o.json)
				}
				newest, err := cmdutil.OneRunOrNewest(a.Err, "mini inspect", args)
				if err != nil {
					return err
				}
				args = []string{newest}
			}
			var err error
			if o.path, err = pathOfRow(a, args[0], o.all); err != nil {
				return err
			}
			return o.run(cmd.Context(), a)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.filter, "filter", "f", "", "show only trajectories that match these `CONDITIONS`")
	f.StringVar(&o.sort, "sort", "id", "sort by this `FIELD`; -FIELD reverses the order")
	f.BoolVarP(&o.all, "all", "a", false, "include attempts that do not count; without PATH, list more than the newest 20")
	f.BoolVar(&o.reasoning, "reasoning", false, "show the model's reasoning (key r)")
	f.BoolVar(&o.noReasoning, "no-reasoning", false, "hide the model's reasoning")
	f.BoolVar(&o.plain, "plain", false, "print instead of opening the browser")
	f.BoolVar(&o.json, "json", false, "print the list as JSON lines")
	f.IntVar(&o.step, "step", 0, "print only step `N`; 0 is the prompts")
	return cmd
}

func (o *inspectOptions) run(ctx context.Context, a *app.App) error {
	if err := o.prepare(); err != nil {
		return err
	}
	out, _ := a.Out.(*os.File)
	options := browser.Options{
		Path: o.path, Filter: o.parsedFilter, FilterText: o.filter, SortOrder: o.sortOrder, AllAttempts: o.all,
		JSON: o.json, Reasoning: o.reasoning, Terminal: out, Colours: os.Getenv("NO_COLOR") == "",
	}
	if plain := o.plain || o.json || o.stepIsSet; !plain && canBrowse(a, out) {
		return o.explain(browser.Run(ctx, options))
	}
	options.Colours = options.Colours && a.OutIsTerminal && os.Getenv("TERM") != "dumb"
	if o.stepIsSet {
		options.Step = &o.step
	}
	notes, err := browser.Print(ctx, a.Out, options)
	for _, n := range notes {
		_, _ = fmt.Fprintln(a.Err, "mini: cannot read:", text.Printable(n)) // best effort
	}
	return o.explain(err)
}

// prepare validates and parses the flags.
func (o *inspectOptions) prepare() (err error) {
	if o.parsedFilter, err = query.Parse(o.filter); err != nil {
		return usage.Errorf("--filter: %w", err)
	}
	if o.sortOrder, err = browser.ParseSortOrder(o.sort); err != nil {
		return usage.Errorf("--sort: %w", err)
	}
	if o.reasoning && o.noReasoning {
		return usage.Errorf("--reasoning and --no-reasoning cannot be combined")
	}
	if o.json && o.stepIsSet {
		return usage.Errorf("--json and --step cannot be combined")
	}
	return nil
}

// canBrowse reports whether the terminal supports the full-screen browser.
func canBrowse(a *app.App, out *os.File) bool {
	if out == nil || !a.OutIsTerminal || !terminal.IsForeground(out) {
		return false
	}
	in, _ := a.In.(*os.File)
	name := os.Getenv("TERM")
	return in != nil && term.IsTerminal(int(in.Fd())) && name != "" && name != "dumb"
}

// explain turns errors about missing files and attempts into usage errors.
func (o *inspectOptions) explain(err error) error {
	var notFound *browser.NotFoundError
	switch {
	case errors.Is(err, fs.ErrNotExist) && !cmdutil.FileExists(o.path):
		return cmdutil.RunFolderError(o.path, err)
	case errors.As(err, &notFound):
		return usage.Wrap(err)
	}
	return err
}

// SortValues returns the values of --sort.
func SortValues() []string {
	var words []string
	for _, f := range browser.SortFields() {
		words = append(words, string(f), "-"+string(f))
	}
	return words
}
