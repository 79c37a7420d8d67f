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
		"environment-class": words(configs.EnvironmentClasses...),
		"progress":          words("plain", "live", "json", "none"),
		"config":            completeConfig,
		"slice":             words("0:1", "0:20"),
	}
	for _, name := range []string{"filter", "seed", "workers", "cost-limit", "model", "task"} {
		flags[name] = words()
	}
	args := map[string]completer{
		"mini config show":    completeShow,
		"mini datasets show":  completeShowRow,
		"mini datasets fetch": words(aliasNames()...),
		"mini report":         completeRun,
		"mini bench":          words(),
		"mini clean":          words(),
		"mini doctor":         words(),
	}
	walk(root, func(cmd *cobra.Command) {
		if f, ok := args[cmd.CommandPath()]; ok {
			cmd.ValidArgsFunction = f
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if complete, ok := flags[f.Name]; ok {
				_ = cmd.RegisterFlagCompletionFunc(f.Name, complete) // fails for a flag that has one
			}
		})
	})
}

func walk(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, c := range cmd.Commands() {
		walk(c, visit)
	}
}
