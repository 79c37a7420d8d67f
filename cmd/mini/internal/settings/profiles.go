package settings

import (
	"github.com/spf13/cobra"

	"github.com/minibench/mini/configs"
)

// Profile returns the value of --profile, or "".
func (c *Flags) Profile() string {
	if f := c.FlagSet.Lookup("profile"); f != nil && f.Changed {
		return f.Value.String()
	}
	return ""
}

// profileLayers returns the layer of the profile, or nil without --profile.
func (c *Flags) profileLayers() ([]configs.Layer, error) {
	if f := c.FlagSet.Lookup("profile"); f == nil || !f.Changed {
		return nil, nil
	}
	l, err := configs.ReadProfile(c.Profile(), configs.ProfileDirs()...)
	return []configs.Layer{l}, err
}

// ProfileCompletions returns the names of the profiles with descriptions, for shell completion.
func ProfileCompletions() []string {
	profiles, _ := configs.Profiles(configs.ProfileDirs()...) // omit unreadable profiles
	completions := make([]string, len(profiles))
	for i, p := range profiles {
		completions[i] = cobra.CompletionWithDesc(p.Name, p.Description)
	}
	return completions
}
