package cmdutil

import (
	"github.com/spf13/cobra"
)

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
