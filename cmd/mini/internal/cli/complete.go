package cli

import (
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/minibench/mini/configs"
)

func newCompletion(s Streams) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Let your shell complete commands, flags, ids and settings",
		Long: `Prints a script with which your shell completes what you type after mini:
commands, flags, datasets, ids of instances, keys of settings.

bash (with its package bash-completion), for now and for good:
  source <(mini completion bash)
  mini completion bash > ~/.local/share/bash-completion/completions/mini
zsh (in a folder of your fpath), fish, PowerShell:
  mini completion zsh > "${fpath[1]}/_mini"
  mini completion fish > ~/.config/fish/completions/mini.fish
  mini completion powershell | Out-String | Invoke-Expression`,
		Example:   "  source <(mini completion bash)",
		ValidArgs: shells,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(shells, args[0]) {
				return usagef("which shell? Say %s; see mini completion --help", cmd.Use)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch root := cmd.Root(); args[0] {
			case "bash":
				return root.GenBashCompletionV2(s.Out, true)
			case "zsh":
				return root.GenZshCompletion(s.Out)
			case "fish":
				return root.GenFishCompletion(s.Out, true)
			default:
				return root.GenPowerShellCompletionWithDesc(s.Out)
			}
		},
	}
}

// completer offers words for what is being typed.
type completer = cobra.CompletionFunc

// setCompletions gives every flag and argument of the tree its completer, by
// its name: a flag means the same wherever it is.
func setCompletions(root *cobra.Command) {
	flags := map[string]completer{
		"subset":            completeSubset,
		"split":             words("dev", "test", "train", "validation"),
		"instance":          completeRow,
		"model-class":       words(configs.ModelClasses...),
		"profile":           completeProfile,
		"local":             words("ollama", "vllm", "llama.cpp", "http://127.0.0.1:"),
		"environment-class": words(configs.EnvironmentClasses...),
		"progress":          completeProgress,
		"config":            completeConfig,
		"slice":             words("0:1", "0:20"),
		"network":           words("none", "bridge"),
		"keep":              words("none", "failed", "all"),
		"run":               completeRun,
		"predictions":       completePatches,
		"eval-network":      words("bridge", "none"),
		"run-id":            words(defaultRunID),
		"fault":             completeFault,
		"atif":              words("1.8", "1.7"),
		"sort":              words(sortWords()...),
	}
	paths := []string{"output", "replies", "events", "cache", "plan", "books", "file", "dir"}
	args := map[string]completer{
		"mini config show":       completeShow,
		"mini config set":        completeSet,
		"mini config unset":      completeUnset,
		"mini datasets show":     completeShowRow,
		"mini datasets fetch":    words(aliasNames()...),
		"mini report":            completeRun,
		"mini inspect":           completeTrajectories,
		"mini regrade":           completeRun,
		"mini report submission": completeRun,
		"mini grade":             completeFolders,
		"mini skills check":      completeFolders,
		"mini shell":             completeShowRow,
		"mini ctl":               completeCtl,
	}
	walk(root, func(cmd *cobra.Command) {
		switch f, ok := args[cmd.CommandPath()]; {
		case ok:
			cmd.ValidArgsFunction = f
		case cmd.Args != nil && len(cmd.ValidArgs) == 0 && cmd.Args(cmd, []string{"x"}) != nil: // it takes none
			cmd.ValidArgsFunction = words()
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			complete, ok := flags[f.Name]
			switch {
			case ok:
			case slices.Contains(paths, f.Name):
				return
			default:
				complete = words()
			}
			_ = cmd.RegisterFlagCompletionFunc(f.Name, complete) // fails for a flag that has one
		})
	})
}

func walk(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, c := range cmd.Commands() {
		walk(c, visit)
	}
}
