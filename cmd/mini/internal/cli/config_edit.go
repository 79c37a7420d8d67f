package cli

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

	"github.com/minibench/mini/cmd/mini/internal/ask"
	"github.com/minibench/mini/cmd/mini/internal/home"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/env/local"
)

func newConfigEdit(s Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "edit",
		Short: "Open your own file of settings in your editor, and check it",
		Long: `Opens a copy of your own file of settings in $VISUAL, $EDITOR, or what there is.
When the editor ends the copy is checked, and becomes the file if it is right.
If not, mini says what is wrong and opens it again, or leaves the file alone.`,
		Example: "  mini config edit\n  EDITOR='code --wait' mini config edit",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return before(editConfig(cmd.Context(), s)) },
	}
}

// newFile is what somebody without settings begins with.
const newFile = `# Settings of mini; mini config show lists all of them, with their values now.
# agent:
#   cost_limit: 1.50        # US dollars an attempt
# model:
#   model_name: gpt-5-mini
`

// editConfig is `mini config edit`.
func editConfig(ctx context.Context, s Streams) (err error) {
	path, err := ownConfig()
	if err != nil {
		return err
	}
	old, err := home.Read(path)
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
	e := &editing{path: path, old: old, copy: filepath.Join(dir, filepath.Base(path)), command: command}
	text := old
	if len(bytes.TrimSpace(old)) == 0 {
		text = []byte(newFile)
	}
	if err := os.WriteFile(e.copy, text, 0o600); err != nil {
		return fmt.Errorf("make a copy to edit: %w", err)
	}
	defer func() {
		if !e.keep {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	return e.work(ctx, s, text)
}

// editing is a file of settings while somebody edits it.
type editing struct {
	path, copy string
	old        []byte // what the file had when the copy was made
	command    string
	keep       bool // the copy, since it has what somebody wrote and nobody else has
}

// work edits until the copy is right, or somebody has had enough.
func (e *editing) work(ctx context.Context, s Streams, before []byte) error {
	for {
		failed := e.open(ctx, s)
		text, err := home.Read(e.copy)
		switch {
		case err != nil:
			return err
		case (failed != nil || ctx.Err() != nil) && !bytes.Equal(text, before):
			e.keep = true
			return fmt.Errorf("%w; what you wrote is in %s", cmp.Or(failed, context.Cause(ctx)), e.copy)
		case failed != nil || ctx.Err() != nil:
			return cmp.Or(failed, context.Cause(ctx))
		case bytes.Equal(text, before):
			return sayf(s, "nothing was changed; an editor that does not wait needs to be told so, as EDITOR='code --wait'")
		}
		wrong := mistakesIn(e.path, text)
		if len(wrong) == 0 {
			return e.store(ctx, s, text)
		}
		for _, err := range wrong {
			if _, err := fmt.Fprintln(s.Err, lines(err.Error())); err != nil {
				return err
			}
		}
		again := false
		if s.Terminal {
			if err := asking(s, func(a *ask.Asker) (err error) {
				again, err = a.Yes(ctx, "Edit again?")
				return err
			}); err != nil {
				e.keep = true
				return fmt.Errorf("%w; what you wrote is in %s", err, e.copy)
			}
		}
		if !again {
			e.keep = true
			return usagef("%s is as it was; what you wrote is in %s", e.path, e.copy)
		}
	}
}

// mistakesIn are those of a text that is to be the user's own file.
func mistakesIn(path string, text []byte) []error {
	d, err := configs.OpenDocument(path, text)
	if err != nil {
		return configs.All(err)
	}
	return wrongIn(d)
}

// store makes the copy the file, unless that has changed meanwhile.
func (e *editing) store(ctx context.Context, s Streams, text []byte) error {
	err := home.Change(ctx, e.path, func(now []byte) ([]byte, error) {
		if !bytes.Equal(now, e.old) {
			return nil, usagef("%s was changed by somebody else meanwhile; what you wrote is in %s", e.path, e.copy)
		}
		return text, nil
	})
	if err != nil {
		e.keep = true
		return err
	}
	return sayf(s, "%s is right, and saved", e.path)
}

// open lets the editor have the terminal until it ends. The shell reads its
// command, which may have options and quotes.
func (e *editing) open(ctx context.Context, s Streams) error {
	cmd := exec.CommandContext(context.WithoutCancel(ctx), "sh", "-c", e.command+` "$@"`, "editor", e.copy) //nolint:gosec // G204: it is the user's own
	cmd.Env = local.WithoutSecrets(os.Environ(), nil)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.In, s.Out, s.Err
	if m, ok := s.Err.(*messages); ok && m.file() != nil {
		cmd.Stderr = m.file() // editors look whether it is a terminal
	}
	if err := cmd.Run(); err != nil {
		return usagef("the editor (%s) failed: %w; nothing was changed", e.command, err)
	}
	return nil
}

// editor is the command that opens a file.
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
	return "", usagef("which editor? Set EDITOR, as EDITOR=nano")
}
