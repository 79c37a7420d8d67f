package config

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/ui/ask"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/env/local"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/internal/userfiles"
)

func newConfigEdit(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "edit",
		Short: "Edit your own configuration file",
		Long: `Opens a copy of your own file in $VISUAL, $EDITOR or an installed editor. When
the editor exits, mini checks the copy and replaces the file if it is valid.
Otherwise, mini shows the errors and offers to open the editor again.`,
		Example: "  mini config edit\n  EDITOR='code --wait' mini config edit",
		Args:    cmdutil.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return usage.Wrap(editConfig(cmd.Context(), a)) },
	}
}

// newFile is the text that the editor shows if the file is missing or empty.
const newFile = `# Settings of mini; mini config show lists all of them with their values.
# agent:
#   cost_limit: 1.50        # US dollars per attempt
# model:
#   model_name: gpt-5-mini
`

// editConfig runs mini config edit. If it cannot replace the file, it keeps the
// edited copy and names it in the error.
func editConfig(ctx context.Context, a *app.App) error {
	path, err := ownConfig()
	if err != nil {
		return err
	}
	original, err := userfiles.Read(path)
	if err != nil {
		return err
	}
	command, err := editor()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mini-config-")
	if err != nil {
		return fmt.Errorf("make a copy to edit: %w", err)
	}
	session := &editSession{path: path, original: original, copy: filepath.Join(dir, filepath.Base(path)), command: command}
	initial := original
	if len(bytes.TrimSpace(original)) == 0 {
		initial = []byte(newFile)
	}
	if err := os.WriteFile(session.copy, initial, 0o600); err != nil {
		return fmt.Errorf("make a copy to edit: %w", err)
	}
	runErr := session.run(ctx, a)
	edited, err := userfiles.Read(session.copy)
	switch {
	case runErr == nil:
		err = notef(a, "saved %s", path)
	case err == nil && !bytes.Equal(edited, initial):
		return fmt.Errorf("%w; your changes are in %s", runErr, session.copy)
	case errors.Is(runErr, errUnchanged):
		err = notef(a, "nothing was changed; if your editor does not wait, set EDITOR='code --wait' or similar")
	default:
		err = runErr
	}
	return errors.Join(err, os.RemoveAll(dir))
}

// editSession holds the state of mini config edit.
type editSession struct {
	path     string // path of the configuration file
	copy     string // path of the copy that the editor opens
	original []byte // content of the file when it was copied
	command  string // opens the editor
}

// errUnchanged means that the user did not change the copy.
var errUnchanged = errors.New("nothing was changed")

// run opens the editor until the copy is valid, and then replaces the file. It returns
// an error if the user gives up or leaves the copy unchanged.
func (e *editSession) run(ctx context.Context, a *app.App) error {
	for {
		before, err := userfiles.Read(e.copy)
		if err != nil {
			return err
		}
		if err := cmp.Or(e.open(ctx, a), context.Cause(ctx)); err != nil {
			return err
		}
		edited, err := userfiles.Read(e.copy)
		if err != nil {
			return err
		}
		errs := checkText(e.path, edited)
		if bytes.Equal(edited, before) {
			return errUnchanged
		}
		if len(errs) == 0 {
			return e.store(ctx, edited)
		}
		_, _ = fmt.Fprintln(a.Err, cmdutil.Sanitize(errors.Join(errs...).Error())) // best effort
		reopen := false
		if a.Interactive {
			err = WithPrompter(a, func(p *ask.Prompter) (err error) {
				reopen, err = p.Confirm(ctx, "Edit again?")
				return err
			})
		}
		if err != nil || !reopen {
			return cmp.Or(err, usage.Errorf("%s was not changed", e.path))
		}
	}
}

// checkText returns the errors in text, the content of a configuration file.
func checkText(path string, text []byte) []error {
	d, err := configs.OpenDocument(path, text)
	if err != nil {
		return configs.SplitErrors(err)
	}
	return checkDocument(d)
}

// store writes the edited text to the file, unless another process has changed the
// file meanwhile.
func (e *editSession) store(ctx context.Context, text []byte) error {
	return userfiles.Update(ctx, e.path, func(current []byte) ([]byte, error) {
		if !bytes.Equal(current, e.original) {
			return nil, usage.Errorf("another process has changed %s", e.path)
		}
		return text, nil
	})
}

// open runs the editor on the terminal and waits for it. A shell parses the command
// of the editor, which may contain options and quotes.
func (e *editSession) open(ctx context.Context, a *app.App) error {
	cmd := exec.CommandContext(context.WithoutCancel(ctx), "sh", "-c", e.command+` "$@"`, "editor", e.copy) //nolint:gosec // G204: the command is the user's own
	cmd.Env = local.WithoutSecrets(os.Environ(), nil)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.In, a.Out, a.Err
	if m, ok := a.Err.(*cmdutil.Messages); ok && m.File() != nil {
		cmd.Stderr = m.File() // editors check whether stderr is a terminal
	}
	if err := cmd.Run(); err != nil {
		return usage.Errorf("run the editor (%s): %w; nothing was changed", e.command, err)
	}
	return nil
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
