package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/env/docker"
)

func newClean(s Streams) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "clean",
		Short: "Remove what a killed mini left in the container engine",
		Long: `Removes the containers of minis on this host that no longer run. Those of a
running mini, of another host, and everything that is not mini's stay.`,
		Example: "  mini clean\n  mini clean --all     also the volumes with mini's helper",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			engine, err := docker.Open(cmd.Context(), docker.EngineConfig{})
			if err != nil {
				return before(err)
			}
			removed, err := engine.Clean(cmd.Context(), all)
			for _, name := range removed {
				if _, werr := fmt.Fprintln(s.Out, name); werr != nil {
					return errors.Join(err, werr)
				}
			}
			if len(removed) == 0 && err == nil {
				_, err = fmt.Fprintln(s.Err, "nothing was left behind")
			}
			return errors.Join(err, engine.Close())
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "also remove the volumes that hold mini's helper")
	return cmd
}
