package cli

import (
	"io"
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
				if err := root.GenBashCompletionV2(s.Out, true); err != nil {
					return err
				}
				_, err := io.WriteString(s.Out, plainBash)
				return err
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

// plainBash lets the script work where the package bash-completion is missing:
// it splits the line itself, and keeps what bash broke at = and : together.
const plainBash = `
if ! declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
    __mini_init_completion()
    {
        local i word glue=
        COMPREPLY=() words=()
        for ((i = 0; i < ${#COMP_WORDS[@]}; i++)); do
            word=${COMP_WORDS[i]}
            if ((i)) && [[ $glue || $word == [:=]* ]]; then
                words[${#words[@]}-1]+=$word
            else
                words+=("$word")
            fi
            [[ $word == *[:=] ]] && glue=1 || glue=
            ((i == COMP_CWORD)) && cword=$((${#words[@]} - 1))
        done
        cur=${words[cword]} prev=${words[cword-1]}
    }
fi
`

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
	for _, name := range []string{"filter", "seed", "workers", "attempts", "cost-limit", "model", "task", "image-budget", "attempt", "timeout", "rerun-failed", "eval-workers", "listen", "faults", "rpm", "tpm", "concurrent", "price", "step"} {
		flags[name] = words()
	}
	args := map[string]completer{
		"mini config show":       completeShow,
		"mini config set":        completeSet,
		"mini config unset":      completeUnset,
		"mini config setup":      words(),
		"mini config edit":       words(),
		"mini config path":       words(),
		"mini config profiles":   words(),
		"mini datasets show":     completeShowRow,
		"mini datasets fetch":    words(aliasNames()...),
		"mini report":            completeRun,
		"mini inspect":           completeTrajectories,
		"mini regrade":           completeRun,
		"mini report submission": completeRun,
		"mini grade":             completeFolders,
		"mini skills list":       words(),
		"mini skills check":      completeFolders,
		"mini shell":             completeShowRow,
		"mini ctl":               completeCtl,
		"mini bench":             words(),
		"mini eval":              words(),
		"mini clean":             words(),
		"mini images plan":       words(),
		"mini images pull":       words(),
		"mini images prune":      words(),
		"mini doctor":            words(),
		"mini fake-model":        words(),
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
