package config

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/usage"
)

func newConfigConvert(s cmdutil.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "convert FILE",
		Short: "Convert a configuration file of mini-swe-agent",
		Long: `Prints a configuration file of mini-swe-agent as one of mini: keys in mini's
sections, and Go templates in place of Jinja. Messages on stderr say what was
left out. A prompt whose translation would render another text stays in Jinja,
which mini renders too. The file is not changed.`,
		Example: "  mini config convert mini-swe-agent.yaml > mine.yaml",
		Args:    cmdutil.ExactlyOne("one YAML file of mini-swe-agent"),
		RunE: func(_ *cobra.Command, args []string) error {
			data, notes, err := configs.Convert(args[0])
			if errors.Is(err, os.ErrNotExist) {
				return usage.Errorf("%s: no such file; name a YAML file of mini-swe-agent", args[0])
			}
			if err != nil {
				return err
			}
			for _, note := range notes {
				if _, err := fmt.Fprintln(s.Err, cmdutil.Sanitize(note)); err != nil {
					return err
				}
			}
			text := string(data)
			if s.OutIsTerminal {
				text = cmdutil.Sanitize(text)
			}
			_, err = fmt.Fprint(s.Out, text)
			return err
		},
	}
}
