package cli

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/minibench/mini/configs"
)

// profileDirs are where profiles of the user's own are: beside the settings.
func profileDirs() []string {
	path := userConfig()
	if path == "" {
		return nil
	}
	return []string{filepath.Join(filepath.Dir(path), "profiles")}
}

// profileFlag lets a command take a profile.
func profileFlag(f *pflag.FlagSet) {
	f.String("profile", "", "`NAME` of a profile (coder, reviewer, benchmark), or its file")
}

// profile is the one that was asked for; "" where none was, or the command takes
// none.
func (c *configFlags) profile() string {
	if f := c.set.Lookup("profile"); f != nil && f.Changed {
		return f.Value.String()
	}
	return ""
}

// profileLayers are the settings of the profile that was asked for.
func (c *configFlags) profileLayers() ([]configs.Layer, error) {
	f := c.set.Lookup("profile")
	if f == nil || !f.Changed {
		return nil, nil
	}
	l, err := configs.ReadProfile(f.Value.String(), profileDirs()...)
	return []configs.Layer{l}, err
}

// childConfig is the configuration of a child that works under a profile: its
// parent's, with the profile on top.
func childConfig(cfg *configs.Resolved, profile string) (*configs.Resolved, error) {
	l, err := configs.ReadProfile(profile, profileDirs()...)
	if err != nil {
		if text, ok := strings.CutPrefix(err.Error(), "--profile "); ok {
			err = cfg.Mistakes(configs.Wrong{Key: "agents.profiles", Text: text})
		}
		return nil, err
	}
	return cfg.With(l)
}

func newConfigProfiles(s Streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "profiles",
		Short: "List the profiles that --profile takes",
		Long: `Lists the profiles that mini and mini bench take with --profile: those that come
with mini, and the YAML files in the folder "profiles" beside your settings. Of
two with one name yours counts. What a profile sets: mini config show --profile.`,
		Example: "  mini config profiles\n  mini config show task --profile coder",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			all, err := configs.Profiles(profileDirs()...)
			if err != nil {
				return before(err)
			}
			if asJSON {
				return writeJSON(s.Out, all)
			}
			for _, p := range all {
				from := ""
				if p.Path != "" {
					from = "  (" + p.Path + ")"
				}
				if _, err := fmt.Fprintf(s.Out, "%-12s %s\n", lines(p.Name), lines(p.About+from)); err != nil {
					return fmt.Errorf("list profiles: %w", err)
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a list of {name, about, path}")
	return cmd
}
