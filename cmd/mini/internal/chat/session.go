package chat

import (
	"context"
	"fmt"
	"sync"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/events"
)

// Config is what a session needs. Front and Talk are needed in any case.
type Config struct {
	Front Front
	// Talk is how the agent is spoken to; it is the one in its agent.Session.
	Talk *agent.Talk
	// Events is the bus that the agent publishes to; nil shows nothing.
	Events *events.Bus
	// Policy decides before the mode does; nil leaves it to the mode. Its
	// decisions by default are as none.
	Policy agent.Supervisor
	// Tree are the user's files; nil where there is no way to compare them.
	Tree Tree
	// Mode is where the session begins.
	Mode Mode
	// ConfirmExit asks at the end for a new task, and whether to keep the changes.
	ConfirmExit bool
	// Alone says that there is nobody to be asked: every question has the answer
	// that ends it.
	Alone bool
	// State is what is known before the first event.
	State State
}

// Tree is the user's files, as they were at the start of the session and as they
// are now.
type Tree interface {
	// Diff is what has changed since; Changes.Patch is empty where nothing has,
	// also before the session has begun.
	Diff(ctx context.Context) (Changes, error)
	// Undo puts the files back, but for those that changed after seen was made. It
	// says in words what it came to.
	Undo(ctx context.Context, seen Changes) (string, error)
}

// Changes are what has changed in a Tree.
type Changes struct {
	Patch string
	// Summary says how much, on one line.
	Summary string
	// Tree names the state that was looked at, for Tree.Undo.
	Tree string
	// Since names the event that changes are counted from.
	Since string
}

// Empty says that nothing has changed.
func (c Changes) Empty() bool { return c.Patch == "" }

// Session is one person's with an agent. It is the agent's Supervisor and its
// Person, and the Controls of its Front. Its methods are safe for concurrent use.
type Session struct {
	Config
	work sync.WaitGroup // what Controls have begun
	end  context.CancelFunc
	life context.Context //nolint:containedctx // of what Controls begin, which have none

	mu    sync.Mutex
	state State
	// open takes the open question back; nil where there is none.
	open    context.CancelCauseFunc
	halting bool       // an interruption was asked for, and its question did not come yet
	left    bool       // the person will not answer any more
	shown   uint64     // the newest event that was
	watched bool       // Watch has ended
	moved   *sync.Cond // one of these two has changed
}

var (
	_ agent.Supervisor = (*Session)(nil)
	_ agent.Person     = (*Session)(nil)
	_ Controls         = (*Session)(nil)
)

// New makes a session. Watch is to be called, and Close at the end.
func New(c Config) *Session {
	s := &Session{Config: c, state: c.State}
	s.moved = sync.NewCond(&s.mu)
	s.state.Mode = c.Mode
	s.Front.State(s.state)
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// Close ends what is still under way, and waits for it.
func (s *Session) Close() {
	s.end()
	s.work.Wait()
}

// ParseMode is the mode of a setting; "" is confirm.
func ParseMode(name string) (Mode, error) {
	for _, m := range []Mode{Confirm, Yolo, Human} {
		if name == m.String() {
			return m, nil
		}
	}
	if name == "" {
		return Confirm, nil
	}
	return Confirm, fmt.Errorf("%.20q is none of confirm, yolo and human", name)
}

func (s *Session) mode() Mode {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Mode
}

// switchTo changes the mode; false says that it was so already.
func (s *Session) switchTo(m Mode) bool {
	s.mu.Lock()
	was := s.state.Mode
	s.state.Mode = m
	state := s.state
	s.mu.Unlock()
	if was == m {
		s.tell("Already in %s mode.", m)
		return false
	}
	s.Front.State(state)
	s.tell("Switched to %s mode: %s.", m, modeWords[m])
	return true
}

var modeWords = [...]string{
	Confirm: "each command is asked about",
	Yolo:    "commands run without asking",
	Human:   "you write the commands",
}

func (s *Session) tell(format string, args ...any) {
	s.Front.Tell(Note{Text: fmt.Sprintf(format, args...)})
}

func (s *Session) complain(format string, args ...any) {
	s.Front.Tell(Note{Text: fmt.Sprintf(format, args...), Bad: true})
}
