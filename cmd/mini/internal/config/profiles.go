package config

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/usage"
)

// newConfigProfiles returns the command mini config profiles.
func newConfigProfiles(a *app.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "profiles",
		Short: "List profiles for --profile",
		Long: `Lists the profiles that mini and mini bench accept with --profile: the built-in
ones, and the YAML files in the folder "profiles" beside your config.yaml. Your
profile overrides a built-in one of the same name. To show the settings of a
profile, run mini config show --profile NAME.`,
		Example: "  mini config profiles\n  mini config show task --profile coder",
		Args:    cmdutil.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			profiles, err := configs.Profiles(configs.ProfileDirs()...)
			if err != nil {
				return usage.Wrap(err)
			}
			if asJSON {
				return cmdutil.WriteJSON(a.Out, profiles)
			}
			var b strings.Builder
			for _, p := range profiles {
				origin := ""
				if p.Path != "" {
					origin = "  (" + p.Path + ")"
				}
				fmt.Fprintf(&b, "%-12s %s\n", p.Name, p.Description+origin)
			}
			_, err = io.WriteString(a.Out, cmdutil.Sanitize(b.String()))
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a list of {name, about, path}")
	return cmd
}
