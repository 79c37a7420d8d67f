package settings

import (
	"github.com/spf13/cobra"

	"github.com/minibench/mini/configs"
)

// ProfileCompletions returns the names of the profiles with descriptions, for shell completion.
func ProfileCompletions() []string {
	all, _ := configs.Profiles(configs.ProfileDirs()...) // omit unreadable profiles
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = cobra.CompletionWithDesc(p.Name, p.About)
	}
	return names
}
