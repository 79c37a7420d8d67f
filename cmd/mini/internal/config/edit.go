package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/env/local"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/internal/userfiles"
)

func newConfigEdit(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "edit",
		Short: "Edit your own configuration file",
		Long: `Opens your own file in $VISUAL, $EDITOR or an installed editor. When the editor
exits, mini checks the file and prints each error with its line.`,
		Example: "  mini config edit\n  EDITOR='code --wait' mini config edit",
		Args:    cmdutil.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return usage.Wrap(editConfig(cmd.Context(), a)) },
	}
}

// newFile is the text of the file if it is missing or empty.
const newFile = `# Settings of mini; mini config show lists all of them with their values.
# agent:
#   cost_limit: 1.50        # US dollars per attempt
# model:
#   model_name: gpt-5-mini
`

// editConfig runs mini config edit. A shell parses the command of the editor, which may contain
// options and quotes.
func editConfig(ctx context.Context, a *app.App) error {
	path, err := ownConfig()
	if err != nil {
		return err
	}
	command, err := editor()
	if err != nil {
		return err
	}
	err = userfiles.Update(ctx, path, func(old []byte) ([]byte, error) {
		if len(bytes.TrimSpace(old)) == 0 {
			return []byte(newFile), nil
		}
		return old, nil
	})
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), "sh", "-c", command+` "$@"`, "editor", path) //nolint:gosec // G204: the command is the user's own
	cmd.Env = local.WithoutSecrets(os.Environ(), nil)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.In, a.Out, a.Err
	if m, ok := a.Err.(*cmdutil.Messages); ok && m.File() != nil {
		cmd.Stderr = m.File() // editors check whether stderr is a terminal
	}
	if err := cmd.Run(); err != nil {
		return usage.Errorf("run the editor (%s): %w", command, err)
	}
	edited, err := userfiles.Read(path)
	if err != nil {
		return err
	}
	d, err := configs.OpenDocument(path, edited)
	errs := configs.SplitErrors(err)
	if err == nil {
		errs = checkDocument(d)
	}
	if len(errs) == 0 {
		return notef(a, "%s is valid", path)
	}
	_, _ = fmt.Fprintln(a.Err, cmdutil.Sanitize(errors.Join(errs...).Error())) // best effort
	return usage.Errorf("%s has %s; correct it with mini config edit", path, text.Count(len(errs), "error"))
}

// editor returns the command that opens an editor.
func editor() (string, error) {
	for _, name := range []string{"VISUAL", "EDITOR"} {
		if command := strings.TrimSpace(os.Getenv(name)); command != "" {
			return command, nil
		}
	}
	for _, command := range []string{"editor", "nano", "vim", "vi"} {
		if _, err := exec.LookPath(command); err == nil {
			return command, nil
		}
	}
	return "", usage.Errorf("no editor was found; set EDITOR, for example EDITOR=nano")
}
