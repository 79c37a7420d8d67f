package cli

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/config"
	"github.com/minibench/mini/cmd/mini/internal/eval"
	"github.com/minibench/mini/cmd/mini/internal/report"
	"github.com/minibench/mini/cmd/mini/internal/settings"
	"github.com/minibench/mini/cmd/mini/internal/ui/chat/headless"
	"github.com/minibench/mini/cmd/mini/internal/ui/progress"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	datasetopen "github.com/minibench/mini/datasets/open"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/runner/control"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/labels"
	"github.com/minibench/mini/runner/setup"
)

// newCompletion returns the command mini completion.
func newCompletion(a *app.App) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a completion script for your shell",
		Long: `Prints a script for your shell. With it, the shell completes commands, flags,
datasets, instance ids and the keys of settings.

bash (needs the package bash-completion), for this shell and permanently:
  source <(mini completion bash)
  mini completion bash > ~/.local/share/bash-completion/completions/mini
zsh (in a folder of $fpath), fish, PowerShell:
  mini completion zsh > "${fpath[1]}/_mini"
  mini completion fish > ~/.config/fish/completions/mini.fish
  mini completion powershell | Out-String | Invoke-Expression`,
		Example:   "  source <(mini completion bash)",
		ValidArgs: shells,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(shells, args[0]) {
				return usage.Errorf("name a shell: %s; see mini completion --help", cmd.Use)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch root := cmd.Root(); args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.Out, true)
			case "zsh":
				return root.GenZshCompletion(a.Out)
			case "fish":
				return root.GenFishCompletion(a.Out, true)
			default:
				return root.GenPowerShellCompletionWithDesc(a.Out)
			}
		},
	}
}

// setCompletions sets the completion of flags and arguments. A flag has the same
// completion in all commands, except those that set their own. The shell itself
// completes the names of files and folders.
func setCompletions(root *cobra.Command) {
	flags := map[string]cobra.CompletionFunc{
		"subset":            cmdutil.CompleteNamesOrFiles(datasetopen.Names),
		"split":             cmdutil.CompleteWords("dev", "test", "train", "validation"),
		"instance":          completeInstance,
		"agent":             cmdutil.CompleteNamesOrFiles(func() []string { return setup.AgentClasses }),
		"model-class":       cmdutil.CompleteWords(configs.ModelClasses...),
		"profile":           cmdutil.CompleteNamesOrFiles(settings.ProfileCompletions),
		"local":             cmdutil.CompleteWords("ollama", "vllm", "llama.cpp", "http://127.0.0.1:"),
		"environment-class": cmdutil.CompleteWords(configs.EnvironmentClasses...),
		"progress":          completeProgress,
		"config":            completeConfig,
		"slice":             cmdutil.CompleteWords("0:1", "0:20"),
		"network":           cmdutil.CompleteWords("none", "bridge"),
		"keep":              cmdutil.CompleteWords("none", "failed", "all"),
		"run":               cmdutil.CompleteFolders,
		"predictions":       cmdutil.CompleteNamesOrFiles(func() []string { return []string{evaluate.GoldModel, evaluate.NoopModel} }),
		"eval-network":      cmdutil.CompleteWords("bridge", "none"),
		"run-id":            cmdutil.CompleteWords(eval.DefaultRunID),
		"atif":              cmdutil.CompleteWords("1.8", "1.7"),
		"output-format":     cmdutil.CompleteWords(headless.Formats...),
		"sort":              cmdutil.CompleteWords(report.SortValues()...),
	}
	paths := []string{"output", "replies", "events", "cache", "plan", "books", "file", "dir"}
	args := map[string]cobra.CompletionFunc{
		"mini config show":       completeKeys,
		"mini config set":        completeKeys,
		"mini config unset":      completeUnset,
		"mini datasets show":     completeInstance,
		"mini datasets fetch":    cmdutil.CompleteWords(datasetopen.Aliases()...),
		"mini report":            cmdutil.CompleteFolders,
		"mini regrade":           cmdutil.CompleteFolders,
		"mini report submission": cmdutil.CompleteFolders,
		"mini grade":             cmdutil.CompleteFolders,
		"mini skills check":      cmdutil.CompleteFolders,
		"mini label":             completeLabel,
		"mini shell":             completeInstance,
		"mini ctl":               completeCtl,
	}
	cmdutil.WalkCommands(root, func(cmd *cobra.Command) {
		switch f, ok := args[cmd.CommandPath()]; {
		case ok:
			cmd.ValidArgsFunction = f
		case cmd.Args != nil && len(cmd.ValidArgs) == 0 && cmd.Args(cmd, []string{"x"}) != nil: // takes no arguments
			cmd.ValidArgsFunction = cmdutil.CompleteWords()
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			complete, ok := flags[f.Name]
			switch {
			case ok:
			case slices.Contains(paths, f.Name):
				return
			default:
				complete = cmdutil.CompleteWords()
			}
			_ = cmd.RegisterFlagCompletionFunc(f.Name, complete) // an error means that the command has set its own
		})
	})
}

// completeProgress completes the values of --progress, which depend on the
// command.
func completeProgress(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	if cmd.Name() == "eval" {
		return eval.ProgressKinds, cobra.ShellCompDirectiveNoFileComp
	}
	return progress.Kinds, cobra.ShellCompDirectiveNoFileComp
}

// completionTimeout is the time limit of completeInstance, for which the shell waits after Tab.
const completionTimeout = 2 * time.Second

// completeInstance completes the ids of the cached datasets and the runs on the
// command line. Without a dataset there, a command that has the flag --subset but
// not --instance completes the ids of all cached datasets.
func completeInstance(cmd *cobra.Command, args []string, typed string) (ids []string, _ cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	for _, run := range args {
		found, _ := filepath.Glob(filepath.Join(run, "*", "attempts")) // an error means that run is not a valid pattern
		for _, path := range found {
			ids = append(ids, filepath.Base(filepath.Dir(path)))
		}
	}
	subsets, err := cmd.Flags().GetStringArray("subset") // an error means that the command has no --subset
	split, _ := cmd.Flags().GetString("split")
	if err == nil && len(subsets) == 0 && cmd.Flags().Lookup("instance") == nil {
		subsets = datasetopen.Names()
	}
	slices.Sort(subsets)
	for _, name := range slices.Compact(subsets) { // cobra parses the command line twice
		if source, ok := datasetopen.OpenCached(name, split); ok {
			set, _ := datasets.Load(ctx, []datasets.Source{source}, datasets.NoRows) // empty after an error
			ids = append(ids, set.IDs...)
		}
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return !strings.HasPrefix(id, typed) }) // there may be thousands
	return ids, cobra.ShellCompDirectiveNoFileComp
}

// completeConfig completes sections, then their keys with "=". The shell itself
// completes the names of files.
func completeConfig(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	if strings.Contains(typed, "=") {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completableKeys(typed, "="), cobra.ShellCompDirectiveNoSpace
}

// completeKeys completes sections, then their keys.
func completeKeys(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	keys := completableKeys(typed, "")
	switch {
	case cmd.Name() == "show" && !strings.Contains(typed, "."):
		keys = append(configs.Sections(), "bench", "task")
	case cmd.Name() == "set" && len(args) > 0:
		return nil, cobra.ShellCompDirectiveNoFileComp
	case !strings.Contains(typed, "."):
		return keys, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	return keys, cobra.ShellCompDirectiveNoFileComp
}

// completableKeys returns the sections that begin with typed, each with a dot. If typed
// contains a section and its dot, completableKeys returns the keys of the section that
// begin with typed, each with suffix.
func completableKeys(typed, suffix string) []string {
	var keys []string
	for _, key := range configs.Keys() {
		section, _, _ := strings.Cut(key, ".")
		if !strings.HasPrefix(typed, section+".") {
			key = section + "."
		} else {
			key += suffix
		}
		if strings.HasPrefix(key, typed) && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// completeUnset completes the keys that the user's configuration file sets.
func completeUnset(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	d, err := config.ReadUserConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return d.Keys(), cobra.ShellCompDirectiveNoFileComp
}

// actionDescriptions describes the actions of mini ctl.
var actionDescriptions = map[string]string{
	"status": "show the state of the batch", "pause": "start no more instances", "resume": "start instances again",
	"drain": "exit after the running instances", "requeue": "run an instance again", "kill": "stop an instance",
}

// completeCtl completes the run, then the action, then the instance.
func completeCtl(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	switch {
	case len(args) == 0:
		return cmdutil.CompleteFolders(cmd, args, typed)
	case len(args) == 2 && control.NeedsTask(args[1]):
		return completeInstance(cmd, args[:1], typed)
	case len(args) > 1:
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var actions []string
	for _, name := range control.Actions() {
		actions = append(actions, cobra.CompletionWithDesc(name, actionDescriptions[name]))
	}
	return actions, cobra.ShellCompDirectiveNoFileComp
}

// completeLabel completes the run, then the instance, then the labels of the run.
func completeLabel(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		return cmdutil.CompleteFolders(cmd, args, typed)
	case 1:
		return completeInstance(cmd, args, typed)
	}
	var words []string
	given, _ := labels.Read(args[0]) // an error means that there are no labels to complete
	for _, list := range given {
		words = append(words, list...)
	}
	slices.Sort(words)
	return slices.Compact(words), cobra.ShellCompDirectiveNoFileComp
}
