package settings

import (
	"github.com/spf13/cobra"

	"github.com/minibench/mini/configs"
)

// ProfileCompletions returns the names of the profiles with descriptions, for shell completion.
func ProfileCompletions() []string {
	profiles, _ := configs.Profiles(configs.ProfileDirs()...) // omit unreadable profiles
	completions := make([]string, len(profiles))
	for i, p := range profiles {
		completions[i] = cobra.CompletionWithDesc(p.Name, p.Description)
	}
	return completions
}
