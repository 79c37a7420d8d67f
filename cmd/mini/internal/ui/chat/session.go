package chat

import (
	"context"
	"fmt"
	"sync"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/internal/text"
)

// Config configures a Session. Frontend and Inbox are required.
type Config struct {
	Frontend Frontend
	// Inbox passes messages to the agent. It must be the Inbox of the agent.Session.
	Inbox *agent.Inbox
	// Events is the bus that the agent publishes to; if nil, no events are shown.
	Events *events.Bus
	// Policy decides before the mode does; may be nil. The mode decides on commands for which
	// the policy has no rule, or a rule that asks.
	Policy agent.Approver
	// Rules adds rules to the policy for commands that the user always allows; nil if that is not
	// possible. SaveRule stores one for later sessions in the folder; nil if that is not possible.
	Rules    Rules
	SaveRule func(command string) error
	// Unattended is the decision in yolo mode on a command that the policy asks about;
	// agent.Deny rejects it, any other value runs it.
	Unattended agent.DecisionAction
	// Snapshot compares the user's files with the start of the session; nil if that is not
	// possible.
	Snapshot Snapshot
	// ChangedGit returns the names of git's own files that have changed since the start of the
	// session, which are untrusted; may be nil.
	ChangedGit func() []string
	// Execute runs the user's own commands; nil if that is not possible.
	Execute Executor
	// SwitchModel makes the named model answer the next steps and returns its name. If it fails,
	// nothing has changed. It may be called while the agent works, one call at a time. nil if
	// the model cannot be switched.
	SwitchModel func(ctx context.Context, name string) (string, error)
	// ListModels returns the names of the models that the server of the current model has, which are
	// untrusted, and the name of the server. The error says on one line why there are none. nil if there
	// is no server.
	ListModels func(ctx context.Context) (names []string, server string, err error)
	// Sessions lists the sessions of the folder whose task contains a text; nil if they are not kept.
	Sessions func(query string) string
	// NoNewReason says why /new cannot begin another conversation; empty if it can.
	NoNewReason string
	// Mode is the initial mode.
	Mode Mode
	// ConfirmExit asks after a submission for a new task.
	ConfirmExit bool
	// NonInteractive means that there is no user to ask: commands that need an approval are
	// denied, limits are not raised, and a submission ends the session.
	NonInteractive bool
	// State is the initial state of the status line.
	State State
}

// Rules are the commands that run without a question, by their first words.
type Rules interface {
	// ProposeCommand returns the first words of a command that say what it does, such as "go
	// test"; "" if a rule for them could not allow the command.
	ProposeCommand(req agent.ApprovalRequest) string
	// AllowCommand allows commands that begin with these words.
	AllowCommand(command string) error
}

// Snapshot records the user's files at the start of the session and at each step.
type Snapshot interface {
	// Diff returns the changes since the snapshot; Changes.Patch is empty if there are none.
	Diff(ctx context.Context) (Changes, error)
	// Undo restores the files, except those that have changed since Diff returned seen. It
	// returns a summary for the user.
	Undo(ctx context.Context, seen Changes) (string, error)
	// RecordStep returns the changes since the last call of RecordStep or SkipChanges, and
	// records them as those of a step. SkipChanges leaves them out: they are the user's.
	RecordStep(ctx context.Context, step int) (Changes, error)
	SkipChanges(ctx context.Context) error
	// LastStep returns the changes of the last recorded step that is not undone, if any. UndoStep
	// undoes it, except in files that have changed since, and returns a summary for the user.
	LastStep(ctx context.Context) (Changes, error)
	UndoStep(ctx context.Context) (string, error)
}

// Changes are the changes since a Snapshot, or those of a step.
type Changes struct {
	Patch string
	// Summary is the size of the changes, on one line.
	Summary string
	// Files are the first of the changed files; Count is the number of all.
	Files []FileChange
	Count int
	// Step is the number of the step.
	Step int
	// TreeID identifies the compared state, for Snapshot.Undo.
	TreeID string
	// SinceName names the start of the comparison in messages to the user; empty if that is the
	// start of the session.
	SinceName string
}

// FileChange is the change of a file. Its name is untrusted.
type FileChange struct {
	events.ChangedFile
	IsNew bool
}

// event returns the changes as an event.
func (c Changes) event() events.FilesChanged {
	e := events.FilesChanged{Step: c.Step, More: c.Count - len(c.Files), Patch: text.Clip(c.Patch, maxEventPatch)}
	for _, f := range c.Files {
		e.Files = append(e.Files, f.ChangedFile)
	}
	return e
}

// maxEventPatch bounds the patch of an event, in bytes.
const maxEventPatch = 256 << 10

// IsEmpty reports whether nothing has changed.
func (c Changes) IsEmpty() bool { return c.Patch == "" }

// Session is an interactive session of a user with an agent. It is the agent's Approver and
// User, and the InputHandler of its Frontend. Its methods are safe for concurrent use.
type Session struct {
	Config
	background sync.WaitGroup // goroutines started by InputHandler methods
	switching  sync.Mutex     // held during SwitchModel
	cancel     context.CancelFunc
	ctx        context.Context //nolint:containedctx // for InputHandler methods, which have no context

	mu    sync.Mutex
	state State
	// cancelQuestion withdraws the open question; nil if none is open.
	cancelQuestion context.CancelCauseFunc
	interrupting   bool              // Ctrl-C was pressed, and the question after it is not open yet
	quit           bool              // the user has quit
	decided        bool              // the user has ended the session after a submission
	wantsNew       bool              // the user begins a new conversation after this one
	newTask        string            // its task
	cancelCommand  func()            // cancels the command of runCommand; nil if none runs
	lastShown      uint64            // sequence number of the last event shown
	watchEnded     bool              // Watch has returned
	step           int               // the agent's step, which the shown State may lag behind
	stepRecorded   <-chan struct{}   // closed when the last step is recorded; nil before the first one
	stepEnd        uint64            // the last event's sequence number when that recording began
	noSteps        bool              // the changes of each step could not be recorded
	unshownChanges []events.Envelope // of steps; Seq is that of the event that they follow
	shownChanged   *sync.Cond        // signals changes of lastShown and watchEnded
}

var (
	_ agent.Approver = (*Session)(nil)
	_ agent.User     = (*Session)(nil)
	_ InputHandler   = (*Session)(nil)
)

// New returns a session. The caller calls Watch, and Close at the end.
func New(c Config) *Session {
	s := &Session{Config: c, state: c.State, step: c.State.Step}
	s.shownChanged = sync.NewCond(&s.mu)
	s.state.Mode = c.Mode
	s.Frontend.SetState(s.state)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Close cancels the session's goroutines and waits for them.
func (s *Session) Close() {
	s.cancel()
	s.background.Wait()
}

// ParseMode parses the name of a mode; "" is confirm.
func ParseMode(name string) (Mode, error) {
	for _, m := range []Mode{Confirm, Yolo, Human} {
		if name == m.String() {
			return m, nil
		}
	}
	if name == "" {
		return Confirm, nil
	}
	return Confirm, fmt.Errorf("invalid mode %.20q: use confirm, yolo or human", name)
}

func (s *Session) currentMode() Mode {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Mode
}

// setMode changes the mode. It reports whether the mode was different.
func (s *Session) setMode(mode Mode) bool {
	s.mu.Lock()
	previous := s.state.Mode
	s.state.Mode = mode
	state := s.state
	s.mu.Unlock()
	if previous == mode {
		s.notify("Already in %s mode.", mode)
		return false
	}
	s.Frontend.SetState(state)
	s.notify("Switched to %s mode: %s.", mode, modeDescriptions[mode])
	return true
}

var modeDescriptions = [...]string{
	Confirm: "each command needs your approval",
	Yolo:    "commands run without asking",
	Human:   "you write the commands",
}

func (s *Session) notify(format string, args ...any) {
	s.Frontend.ShowNotice(Notice{Text: fmt.Sprintf(format, args...)})
}

func (s *Session) notifyError(format string, args ...any) {
	s.Frontend.ShowNotice(Notice{Text: fmt.Sprintf(format, args...), IsError: true})
}
