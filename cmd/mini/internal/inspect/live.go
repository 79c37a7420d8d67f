package inspect

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/minibench/mini/cmd/mini/internal/screen"
	"github.com/minibench/mini/env/local"
	"github.com/minibench/mini/trajectories/filter"
)

// Config says what to show, and where.
type Config struct {
	Path string
	// Terminal is drawn on; keys come from standard input where that is a
	// terminal, else from the controlling terminal.
	Terminal  *os.File
	Filter    filter.Filter
	Line      string // the filter as it was typed
	Sorting   Sorting
	All       bool
	Reasoning bool
	Colours   bool // the terminal has them, and they are wanted
}

// flushes bounds how late a key is answered: Bubble Tea writes to the terminal so
// many times a second at most.
const flushes = 30

// Run shows trajectories until the user quits, or ctx ends. Interrupts (SIGINT) are
// ignored meanwhile: while the screen is taken, Ctrl-C is a key, and in a pager it is
// the pager's.
func Run(ctx context.Context, c Config) error {
	src, err := OpenSource(c.Path)
	if err != nil {
		return err
	}
	m := &view{source: src, list: newList(), reasoning: c.Reasoning, colours: c.Colours}
	m.list.filter, m.list.line, m.list.sorting, m.list.all = c.Filter, c.Line, c.Sorting, c.All
	signals := make(chan os.Signal, 1)
	signal.Ignore(os.Interrupt)          // no other part of the program hears of it
	signal.Notify(signals, os.Interrupt) // and a pager does not inherit that
	defer signal.Stop(signals)
	err = screen.New(c.Terminal).Hold(ctx, func(ctx context.Context, suspend func()) error {
		return m.show(ctx, c.Terminal, suspend)
	})
	if err == nil && len(m.list.items) == 0 && !m.list.walking && !m.list.live {
		if m.list.failed != nil {
			return m.list.failed
		}
		return &ErrNothing{Path: c.Path}
	}
	return err
}

// show draws until ctx ends or the user quits.
func (m *view) show(ctx context.Context, terminal *os.File, suspend func()) error {
	ctx, cancel := context.WithCancel(ctx)
	m.ctx, m.suspend = ctx, suspend
	program := tea.NewProgram(m, tea.WithOutput(terminal), tea.WithoutSignalHandler(), tea.WithFPS(flushes))
	m.send = program.Send
	stop := context.AfterFunc(ctx, program.Quit)
	defer stop()
	_, err := program.Run()
	cause := context.Cause(ctx)
	m.end(cancel)
	if cause != nil {
		return cause
	}
	if err != nil {
		return fmt.Errorf("show trajectories: %w", err)
	}
	return nil
}

// page opens what is seen in the user's pager: the step, the patch or the log.
func (m *view) page(r *reader) tea.Cmd {
	title, facts := r.title()
	step, reasoning := r.current(), r.reasoning || r.sight != theSteps
	return m.pager(func(w *bufio.Writer) error {
		if _, err := fmt.Fprintf(w, "=== %s\n", title); err != nil {
			return err
		}
		return writeStep(w, facts, step, reasoning, m.colours)
	})
}

// pageAll opens a whole trajectory in the user's pager.
func (m *view) pageAll(it *Item) tea.Cmd {
	return m.pager(func(w *bufio.Writer) error {
		return Printing{Path: it.Path, Reasoning: true, Colours: m.colours}.print(w, it)
	})
}

// pager gives the screen to the user's pager, with what write writes, and takes it
// again.
func (m *view) pager(write func(w *bufio.Writer) error) tea.Cmd {
	path, err := pagerFile(write)
	if err != nil {
		m.say(true, "%s", err)
		return nil
	}
	cmd := pagerCommand(m.ctx, path)
	return tea.ExecProcess(cmd, func(err error) tea.Msg { return paged{err, path} })
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
// user ends it, or with the view.
func pagerCommand(ctx context.Context, path string) *exec.Cmd {
	name := strings.TrimSpace(os.Getenv("PAGER"))
	if name == "" {
		name = "more"
		if _, err := exec.LookPath("less"); err == nil {
			name = "less -R"
		}
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", name+` "$1"`, "sh", path) //nolint:gosec // it is the user's own word
	cmd.Env = local.WithoutSecrets(os.Environ(), nil)
	if os.Getenv("LESS") == "" { // a less that is named without flags would show colours as letters
		cmd.Env = append(cmd.Env, "LESS=-R")
	}
	return cmd
}
