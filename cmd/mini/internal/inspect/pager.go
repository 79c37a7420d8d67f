package inspect

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/env/local"
)

func stripped(s string) string { return ansi.Strip(s) }

// page opens a part of what is read in the user's pager: the step, the patch or
// the log that is seen.
func (m *view) page(r *reader) tea.Cmd {
	title, facts := r.title()
	b := r.body
	return m.paging(func(w *bufio.Writer) error {
		if _, err := fmt.Fprintf(w, "=== %s\n=== %s\n", title, oneLine(facts)); err != nil {
			return err
		}
		return writeBody(w, b, m.colours)
	})
}

// pageAll opens a whole trajectory in the user's pager.
func (m *view) pageAll(it *Item, reasoning bool) tea.Cmd {
	return m.paging(func(w *bufio.Writer) error {
		return Printing{Path: it.Path, Reasoning: reasoning, Colours: m.colours}.print(w, []*Item{it})
	})
}

// paging gives the screen to a pager, and takes it again.
func (m *view) paging(write func(w *bufio.Writer) error) tea.Cmd {
	return tea.Exec(&pager{write: write, busy: m.busy, ctx: m.works.ctx}, func(err error) tea.Msg { return paged{err} })
}

// pager is a pager at work.
type pager struct {
	ctx    context.Context //nolint:containedctx // tea.ExecCommand has no other place for it
	write  func(w *bufio.Writer) error
	busy   *atomic.Bool // Ctrl-C is the pager's
	in     io.Reader
	out    io.Writer
	errors io.Writer
}

// SetStdin implements tea.ExecCommand.
func (p *pager) SetStdin(r io.Reader) { p.in = r }

// SetStdout implements tea.ExecCommand.
func (p *pager) SetStdout(w io.Writer) { p.out = w }

// SetStderr implements tea.ExecCommand.
func (p *pager) SetStderr(w io.Writer) { p.errors = w }

// late is how long a Ctrl-C may be on its way that was for the pager.
const late = 300 * time.Millisecond

// Run implements tea.ExecCommand. The error is for the user.
func (p *pager) Run() error {
	path, err := pagerFile(p.write)
	if err != nil {
		return err
	}
	defer os.Remove(path) //nolint:errcheck // it is in the folder for such files
	cmd, name, err := pagerCommand(p.ctx, path)
	if err != nil {
		return err
	}
	p.busy.Store(true)
	defer func() { time.AfterFunc(late, func() { p.busy.Store(false) }) }()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.in, p.out, p.errors
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if exit.ExitCode() == 127 {
			return fmt.Errorf("the pager %s is not there; set PAGER to another one", name)
		}
		return fmt.Errorf("the pager %s ended with %w", name, exit)
	}
	if err != nil {
		return fmt.Errorf("run the pager %s: %w", name, err)
	}
	return nil
}

// pagerFile writes what a pager is to show, for this user alone.
func pagerFile(write func(w *bufio.Writer) error) (path string, err error) {
	f, err := os.CreateTemp("", "mini-inspect-*.txt") // of mode 0600
	if err != nil {
		return "", fmt.Errorf("write for the pager: %w", err)
	}
	w := bufio.NewWriter(f)
	err = errors.Join(write(w), w.Flush(), f.Close())
	if err != nil {
		return "", errors.Join(fmt.Errorf("write for the pager: %w", err), os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// pagerCommand is the user's pager: $PAGER, else less, else more. It ends when the
// user ends it, or when the view is ended from outside.
func pagerCommand(ctx context.Context, path string) (cmd *exec.Cmd, name string, err error) {
	environ := local.WithoutSecrets(os.Environ(), nil)
	if name = strings.TrimSpace(os.Getenv("PAGER")); name != "" {
		cmd = exec.CommandContext(ctx, "sh", "-c", name+` "$1"`, "sh", path) //nolint:gosec // it is the user's own word
		cmd.Env = environ
		if os.Getenv("LESS") == "" { // a less that is named without flags would show colours as letters
			cmd.Env = append(cmd.Env, "LESS=-R")
		}
		return cmd, name, nil
	}
	for _, words := range [][]string{{"less", "-R"}, {"more"}} {
		if found, err := exec.LookPath(words[0]); err == nil {
			cmd = exec.CommandContext(ctx, found, append(words[1:], path)...) //nolint:gosec // one of two names
			cmd.Env = environ
			return cmd, words[0], nil
		}
	}
	return nil, "", errors.New("there is no pager: neither less nor more is here; set PAGER")
}
