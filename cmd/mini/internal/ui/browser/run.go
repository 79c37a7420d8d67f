package browser

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"

	tea "charm.land/bubbletea/v2"

	"github.com/minibench/mini/cmd/mini/internal/ui/terminal"
	"github.com/minibench/mini/trajectories/query"
)

// Config configures Run.
type Config struct {
	Path string
	// Terminal is where the browser draws. Keys are read from standard input if that is a
	// terminal, else from the controlling terminal.
	Terminal    *os.File
	Filter      query.Filter
	FilterText  string // Filter as typed
	SortOrder   SortOrder
	AllAttempts bool
	Reasoning   bool // show reasoning at first
	Colours     bool // use colours in the pager
}

// maxFPS is how often per second Bubble Tea writes to the terminal at most. It determines the
// delay after a key.
const maxFPS = 30

// Run shows trajectories until the user quits or ctx ends. If the source has none, it returns a
// NotFoundError. Meanwhile it ignores SIGINT: in the browser Ctrl-C is a key, and a pager handles
// SIGINT itself.
func Run(ctx context.Context, c Config) error {
	src, err := OpenSource(c.Path)
	if err != nil {
		return err
	}
	m := &browser{source: src, list: newList(), reasoning: c.Reasoning, pagerColours: c.Colours}
	m.list.filter, m.list.filterText, m.list.order, m.list.allAttempts = c.Filter, c.FilterText, c.SortOrder, c.AllAttempts
	signals := make(chan os.Signal, 1)
	signal.Ignore(os.Interrupt)          // disable other handlers of this process
	signal.Notify(signals, os.Interrupt) // else child processes such as the pager ignore the signal, too
	defer signal.Stop(signals)
	err = terminal.New(c.Terminal).Run(ctx, func(ctx context.Context, suspend func()) error {
		return m.runProgram(ctx, c.Terminal, suspend)
	})
	if err == nil && len(m.list.entries) == 0 && !m.list.walking && !m.list.running {
		if m.list.walkError != nil {
			return m.list.walkError
		}
		return &NotFoundError{Path: c.Path}
	}
	return err
}

// runProgram runs a Bubble Tea program until ctx ends or the user quits.
func (m *browser) runProgram(ctx context.Context, terminal *os.File, suspend func()) error {
	ctx, cancel := context.WithCancel(ctx)
	m.ctx, m.suspend = ctx, suspend
	program := tea.NewProgram(m, tea.WithOutput(terminal), tea.WithoutSignalHandler(), tea.WithFPS(maxFPS))
	m.send = program.Send
	stop := context.AfterFunc(ctx, program.Quit)
	defer stop()
	_, err := program.Run()
	cause := context.Cause(ctx)
	cancel()
	m.walkMu.Lock() // wait for the walk: the next program walks the same source
	defer m.walkMu.Unlock()
	if cause != nil {
		return cause
	}
	if err != nil {
		return fmt.Errorf("show trajectories: %w", err)
	}
	return nil
}

// openStepInPager opens the visible step, patch or log in the user's pager.
func (m *browser) openStepInPager(r *reader) tea.Cmd {
	title, subtitle := r.title()
	step, reasoning := r.currentStep(), r.reasoning || r.mode != modeSteps
	return m.runPager(func(w io.Writer) error {
		if _, err := fmt.Fprintf(w, "=== %s\n", title); err != nil {
			return err
		}
		return writeStep(w, subtitle, step, reasoning, m.pagerColours)
	})
}

// openAllInPager opens a whole trajectory in the user's pager.
func (m *browser) openAllInPager(e *Entry) tea.Cmd {
	return m.runPager(func(w io.Writer) error {
		return PrintOptions{Path: e.Path, Reasoning: true, Colours: m.pagerColours}.print(w, e)
	})
}

// runPager runs the user's pager on the output of write, and then redraws the screen.
func (m *browser) runPager(write func(w io.Writer) error) tea.Cmd {
	var text bytes.Buffer
	if err := write(&text); err != nil {
		m.setHint(true, "%s", err)
		return nil
	}
	return tea.ExecProcess(terminal.PagerCommand(m.ctx, &text), func(err error) tea.Msg { return pagerDoneMsg{err} })
}
