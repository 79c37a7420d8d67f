package cmdutil

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/model/localservers"
	"github.com/minibench/mini/runner/runs"
)

// WithSubcommands adds subcommands to c and returns c. Called without a subcommand, c prints
// its help.
func WithSubcommands(c *cobra.Command, subcommands ...*cobra.Command) *cobra.Command {
	c.Args = NoArgs
	c.RunE = func(*cobra.Command, []string) error { return c.Help() }
	c.AddCommand(subcommands...)
	return c
}

// NoArgs rejects arguments and suggests what the user may have meant.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if suggestion := suggestLocalValue(cmd.Flags(), args); suggestion != "" {
		return usage.Errorf("did you mean %s?", suggestion)
	}
	if cmd == cmd.Root() && strings.Contains(args[0], " ") {
		return usage.Errorf("did you mean mini -t %.60q?", args[0])
	}
	if key, _, isSetting := strings.Cut(args[0], "="); isSetting && strings.Contains(key, ".") && cmd.Flags().Lookup("config") != nil {
		return usage.Errorf("did you mean -c %.60s?", args[0])
	}
	if cmd.HasSubCommands() {
		text := fmt.Sprintf("unknown command %.60q", args[0])
		cmd.SuggestionsMinimumDistance = 2
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			text += fmt.Sprintf("; did you mean %s?", cmp.Or(configs.ClosestName(args[0], near), near[0]))
		} else if near := configs.ClosestName(args[0], []string{"help", "version"}); cmd == cmd.Root() && near != "" { // cobra does not suggest them
			text += "; did you mean " + near + "?"
		} else if cmd == cmd.Root() && len(args) > 1 {
			text += fmt.Sprintf("; a task is mini -t %.60q", strings.Join(args, " "))
		}
		return usage.Wrap(errors.New(text + "; see " + cmd.CommandPath() + " --help"))
	}
	return usage.Errorf("%s takes flags only, not %q; see %s --help", cmd.CommandPath(), args[0], cmd.CommandPath())
}

// FlagsOnly rejects arguments, as NoArgs does. If there is a single argument and the
// flag name is not set, it suggests this flag, which the user may have left out. flag
// is the spelling of the flag in the suggestion, such as -p.
func FlagsOnly(name, flag string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 && !cmd.Flags().Changed(name) {
			return usage.Errorf("%s takes flags only; did you mean %s %s?", cmd.CommandPath(), flag, args[0])
		}
		return NoArgs(cmd, args)
	}
}

// ExactlyOne requires exactly one argument. Its error contains the description.
func ExactlyOne(description string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usage.Errorf("%s takes %s, and nothing else; see %s --help", cmd.CommandPath(), description, cmd.CommandPath())
		}
		return nil
	}
}

// AtLeastOne requires one or more arguments. Its error contains the description.
func AtLeastOne(description string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage.Errorf("%s takes %s; see %s --help", cmd.CommandPath(), description, cmd.CommandPath())
		}
		return nil
	}
}

// suggestLocalValue returns --local=SERVER if the user has typed "--local SERVER", else "".
func suggestLocalValue(f *pflag.FlagSet, args []string) string {
	if l := f.Lookup("local"); l == nil || len(args) == 0 || !l.Changed || l.Value.String() != AnyLocalServer {
		return ""
	}
	if _, err := localservers.Parse(args[0]); err != nil {
		return ""
	}
	return "--local=" + args[0]
}

// AnyLocalServer is the value that the flag --local has if the user gives none. It selects any
// server on this machine that responds.
const AnyLocalServer = "any"

// DefaultRunsDir is where mini bench creates runs without -o.
const DefaultRunsDir = "mini-runs"

// RunsDir returns the folder of the runs here: DefaultRunsDir, or runs if only that exists.
func RunsDir() string {
	if info, err := os.Stat("runs"); err == nil && info.IsDir() && !FileExists(DefaultRunsDir) {
		return "runs"
	}
	return DefaultRunsDir
}

// ExactlyOneRun requires one argument, the folder of a run.
func ExactlyOneRun(cmd *cobra.Command, args []string) error {
	if len(args) == 1 && args[0] != "" {
		return nil
	}
	text := cmd.CommandPath() + " takes the folder of a run, and nothing else"
	if run := newestRun(RunsDir()); run != "" {
		text += "; the newest one here is " + run
	}
	return usage.Errorf("%s; see %s --help", text, cmd.CommandPath())
}

// OneRunOrNewest returns the only argument, the folder of a run. Without arguments it returns the
// newest run in RunsDir, and says so on w.
func OneRunOrNewest(w io.Writer, command string, args []string) (string, error) {
	if len(args) == 1 && args[0] != "" {
		return args[0], nil
	}
	newest := newestRun(RunsDir())
	if len(args) > 0 || newest == "" {
		return "", usage.Errorf("%s takes the folder of a run, and none is in %s; see %s --help", command, RunsDir(), command)
	}
	_, _ = fmt.Fprintf(w, "mini: the newest run here is %s\n", text.ShellQuote(newest)) // best effort
	return newest, nil
}

// RunFolderError turns an error of reading the run in dir into a usage error. If dir is missing or
// not a run, the usage error suggests a run that the user may have meant, if there is one.
func RunFolderError(dir string, err error) error {
	missing := errors.Is(err, os.ErrNotExist)
	if !missing && !errors.Is(err, runs.ErrNotRunFolder) {
		return usage.Wrap(err)
	}
	if run, id, ok := FindRunAbove(dir); ok && !missing {
		if id != "" {
			return usage.Errorf("%s belongs to the instance %s of a run; its folder is %s", dir, id, text.ShellQuote(run))
		}
		return usage.Errorf("%s belongs to a run; its folder is %s", dir, text.ShellQuote(run))
	}
	if newest := cmp.Or(newestRun(dir), newestRun(filepath.Join(dir, "rollouts"))); newest != "" { // rollouts: mini serve
		return usage.Errorf("%s contains runs but is not a run; the newest one is %s", dir, text.ShellQuote(newest))
	}
	if !missing {
		return usage.Errorf("%w; mini import makes a run from trajectories of other agents", err)
	}
	text := fmt.Sprintf("%s: there is no such folder", dir)
	if newest := newestRun(RunsDir()); newest != "" {
		text += "; the newest run here is " + newest
	}
	return usage.Errorf("%s", text)
}

// newestRun returns the most recently modified run in a folder of runs, or "".
func newestRun(dir string) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	newest, modTime := "", time.Time{}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if info, err := e.Info(); err == nil && e.IsDir() && info.ModTime().After(modTime) && isRun(path) {
			newest, modTime = path, info.ModTime()
		}
	}
	return newest
}

// FindRunAbove returns the folder of the run that contains path; ok is false if none of the four
// folders above path is a run. id is the instance that path belongs to, or "". run is relative if
// path is relative.
func FindRunAbove(path string) (run, id string, ok bool) {
	dir, err := filepath.Abs(path)
	if err != nil {
		return "", "", false
	}
	run = path
	for range 4 { // RUN/<id>/attempts/<n>/journal.jsonl
		id = filepath.Base(dir)
		run, dir = filepath.Join(run, ".."), filepath.Dir(dir)
		if !isRun(dir) {
			continue
		}
		if !FileExists(filepath.Join(dir, id, "attempts")) && !FileExists(filepath.Join(dir, id, id+".traj.json")) {
			id = ""
		}
		return run, id, true
	}
	return "", "", false
}

// isRun reports whether dir is a run folder. Every run has run.json from the start.
func isRun(dir string) bool { return FileExists(filepath.Join(dir, "run.json")) }

// WalkCommands calls visit for cmd and all its subcommands.
func WalkCommands(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, c := range cmd.Commands() {
		WalkCommands(c, visit)
	}
}

// CompleteWords completes words of a fixed list. It completes no file names.
func CompleteWords(list ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp)
}

// CompleteNamesOrFiles completes names, and files if no name matches.
func CompleteNamesOrFiles(names func() []string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return names(), cobra.ShellCompDirectiveDefault
	}
}

// CompleteFolders completes folders.
func CompleteFolders(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}
