package browser

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"time"

	"charm.land/bubbles/v2/textinput"
	"charm.land/bubbles/v2/viewport"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/cmd/mini/internal/ui/terminal"
	"github.com/minibench/mini/trajectories/query"
)

// Options configures Run and Print.
type Options struct {
	Path string
	// Filter and SortOrder apply to the list.
	Filter      query.Filter
	FilterText  string // Filter as typed
	SortOrder   SortOrder
	AllAttempts bool // include superseded attempts
	Reasoning   bool // show reasoning
	Colours     bool // keep the colours of outputs in text
	// Terminal is where Run draws. Keys are read from standard input if that is a terminal, else
	// from the controlling terminal.
	Terminal *os.File
	// JSON makes Print write the list as JSON lines.
	JSON bool
	// Step selects one step of a trajectory for Print, where 0 stands for the prompts; nil selects
	// all steps.
	Step *int
}

// browser is the Bubble Tea model: the list and the open trajectory, which covers the list.
// Bubble Tea commands walk the source and read trajectories.
type browser struct {
	ctx      context.Context //nolint:containedctx // ends when the Bubble Tea program does
	send     func(tea.Msg)   // sends a message to the program
	walkMu   sync.Mutex      // held during a walk
	terminal *os.File
	suspend  func() // nil if the process cannot be suspended
	list     *list
	reader   *reader         // nil while the list is shown
	help     *viewport.Model // nil unless the help is shown

	width, height int
	input         textinput.Model                     // of the prompt at the bottom
	submit        func(value string) (tea.Cmd, error) // handles Enter in the prompt; nil if no prompt is open
	message       string                              // the result of the last key or command
	colour        ansi.Color                          // of message
	nextWalk      time.Time                           // when the list is reloaded if a run is in progress
	stopWalk      context.CancelFunc                  // nil before the first walk
	walkNumber    int                                 // number of the current walk
}

// Messages of commands.
type (
	walkMsg struct {
		number int
		found  listing
		took   time.Duration // 0 before the end
		err    error
	}
	openedMsg struct {
		entry      *Entry
		trajectory *Trajectory // nil if the file has not changed
		err        error
	}
	tickMsg      struct{}
	pagerDoneMsg struct{ err error }
)

// maxFPS is how often per second Bubble Tea writes to the terminal at most. It determines the
// delay after a key.
const maxFPS = 30

// walkInterval is the minimum time between two reports of a walk. The pause between two walks is at
// least minReload, and reloadFactor times as long as a walk.
const (
	walkInterval = 100 * time.Millisecond
	minReload    = 2 * time.Second
	reloadFactor = 10
)

// Run shows trajectories until the user quits or ctx ends. If the source has none, it returns a
// NotFoundError. Meanwhile it ignores SIGINT: in the browser Ctrl-C is a key, and a pager handles
// SIGINT itself.
func Run(ctx context.Context, o Options) error {
	m := &browser{list: newList(o)}
	signals := make(chan os.Signal, 1)
	signal.Ignore(os.Interrupt)          // disable other handlers of this process
	signal.Notify(signals, os.Interrupt) // else child processes such as the pager ignore the signal, too
	defer signal.Stop(signals)
	err := terminal.New(o.Terminal).Run(ctx, func(ctx context.Context, suspend func()) error {
		return m.run(ctx, o.Terminal, suspend)
	})
	if err == nil && m.list.isEmpty() {
		return cmp.Or[error](m.list.walkError, &NotFoundError{Path: o.Path})
	}
	return err
}

// run runs a Bubble Tea program until ctx ends or the user quits.
func (m *browser) run(ctx context.Context, terminal *os.File, suspend func()) error {
	ctx, cancel := context.WithCancel(ctx)
	m.ctx, m.suspend, m.terminal = ctx, suspend, terminal
	program := tea.NewProgram(m, tea.WithOutput(terminal), tea.WithoutSignalHandler(), tea.WithFPS(maxFPS))
	m.send = program.Send
	stop := context.AfterFunc(ctx, program.Quit)
	defer stop()
	_, err := program.Run()
	cause := context.Cause(ctx)
	cancel()
	m.walkMu.Lock() // wait for the end of the walk
	defer m.walkMu.Unlock()
	if cause != nil {
		return cause
	}
	if err != nil {
		return fmt.Errorf("show trajectories: %w", err)
	}
	return nil
}

// Init implements tea.Model. It restarts a read that Ctrl-Z has interrupted.
func (m *browser) Init() tea.Cmd {
	cmds := []tea.Cmd{m.walk(), m.tick()}
	if r := m.reader; r != nil && r.trajectory == nil {
		cmds = append(cmds, m.readTrajectory(r.entry, nil))
	}
	return tea.Batch(cmds...)
}

// Update implements tea.Model.
func (m *browser) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.resize(msg.Width, msg.Height)
	case tea.KeyPressMsg:
		return m, m.handleKey(msg)
	case tea.PasteMsg:
		if m.submit != nil {
			return m, m.handlePromptKey(msg)
		}
	case walkMsg:
		return m, m.handleWalk(msg)
	case openedMsg:
		m.handleOpened(msg)
	case tickMsg:
		return m, m.handleTick()
	case pagerDoneMsg:
		if msg.err != nil {
			m.fail("pager failed: %s; set PAGER to another one", msg.err)
		}
	}
	return m, nil
}

// say shows a result at the bottom until the next key.
func (m *browser) say(format string, args ...any) {
	m.message, m.colour = steps.OneLine(fmt.Sprintf(format, args...)), ansi.Yellow
}

// fail shows an error at the bottom until the next key.
func (m *browser) fail(format string, args ...any) {
	m.say(format, args...)
	m.colour = ansi.Red
}

// walk cancels a running walk and returns a command that walks the source. If the list is empty,
// it is filled during the walk, else it is replaced at the end.
func (m *browser) walk() tea.Cmd {
	if m.stopWalk != nil {
		m.stopWalk()
	}
	ctx, stop := context.WithCancel(m.ctx)
	m.stopWalk, m.list.walking = stop, true
	m.walkNumber++
	number, path, filter, isEmpty := m.walkNumber, m.list.Path, m.list.Filter, len(m.list.found.entries) == 0
	return func() tea.Msg {
		m.walkMu.Lock()
		defer m.walkMu.Unlock()
		defer stop()
		start, sent := time.Now(), time.Time{}
		found, err := walk(ctx, path, filter, func(l listing) {
			if isEmpty && time.Since(sent) >= walkInterval {
				sent = time.Now()
				m.send(walkMsg{number: number, found: l})
			}
		})
		if ctx.Err() != nil {
			return nil
		}
		return walkMsg{number, found, time.Since(start), err}
	}
}

func (m *browser) handleWalk(msg walkMsg) tea.Cmd {
	l := m.list
	if msg.number != m.walkNumber {
		return nil
	}
	l.found = msg.found
	l.update()
	if msg.took == 0 {
		return nil
	}
	l.walking, l.walkError, m.nextWalk = false, msg.err, time.Now().Add(max(minReload, reloadFactor*msg.took))
	switch {
	case l.isEmpty(): // nothing to show
		return tea.Quit
	case msg.number == 1 && len(l.visible) == 1 && l.found.single:
		return m.open(l.visible[0])
	}
	return nil
}

// readTrajectory returns a command that reads a trajectory, if it differs from current.
func (m *browser) readTrajectory(entry *Entry, current *Trajectory) tea.Cmd {
	return func() tea.Msg {
		if current != nil && !current.HasChanged() {
			return nil
		}
		trajectory, err := OpenTrajectory(entry)
		return openedMsg{entry, trajectory, err}
	}
}

func (m *browser) tick() tea.Cmd {
	ctx := m.ctx
	return func() tea.Msg {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
			return tickMsg{}
		}
	}
}

// handleTick reloads the list from time to time while a run is in progress, and the open trajectory
// every second while its end is shown.
func (m *browser) handleTick() tea.Cmd {
	cmds := []tea.Cmd{m.tick()}
	if r := m.reader; r != nil && r.isFollowing() {
		cmds = append(cmds, m.readTrajectory(r.entry, r.trajectory))
	}
	if m.list.found.running && !m.list.walking && time.Now().After(m.nextWalk) {
		cmds = append(cmds, m.walk())
	}
	return tea.Batch(cmds...)
}

// open opens a trajectory. It keeps the search text of the previous trajectory or of the list.
func (m *browser) open(entry *Entry) tea.Cmd {
	searchText := m.list.Filter.Text
	if m.reader != nil && m.reader.searchText != "" {
		searchText = m.reader.searchText
	}
	m.list.cursorMoved = true
	m.reader = newReader(entry, m.list.Reasoning, searchText)
	m.resize(m.width, m.height)
	return m.readTrajectory(entry, nil)
}

func (m *browser) handleOpened(msg openedMsg) {
	r := m.reader
	if r == nil || !r.entry.isSame(msg.entry) {
		return // closed before it was read
	}
	if msg.err != nil {
		if m.fail("%s", msg.err); r.trajectory == nil {
			m.reader = nil
		}
		return
	}
	if i := m.list.index(r.entry); i >= 0 {
		r.entry = m.list.visible[i] // with the newest status
	}
	r.setTrajectory(msg.trajectory)
}
