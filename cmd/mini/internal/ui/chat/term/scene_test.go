package term

import (
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/cmd/mini/internal/ui/chat"
	models "github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// scene tests a model without a Bubble Tea program: with an emulated terminal, a recording
// handler and a fake clock.
type scene struct {
	t        testing.TB
	m        *model
	handler  *recordingHandler
	terminal *emulator
	now      time.Time
	question *pendingQuestion
	onPage   func(p page) // called with each page before it is painted; may be nil
}

func newScene(t testing.TB, w, h int) *scene {
	s := &scene{t: t, handler: newRecordingHandler(), terminal: newEmulator(t, w, h)}
	s.now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s.m = newModel(Config{}, newScreen(s.terminal, true, nil))
	s.m.handler.set(s.handler)
	s.m.clock = func() time.Time { return s.now }
	s.send(tea.WindowSizeMsg{Width: w, Height: h})
	s.setState(func(*chat.State) {})
	return s
}

// setState changes the state of the session. Its first call sets the state of a running session.
func (s *scene) setState(change func(*chat.State)) {
	state := s.m.transcript.State
	if state.Started.IsZero() {
		state = chat.State{
			Model: "anthropic/claude-sonnet-4-5", StepLimit: 250, CostLimit: 3, Cost: 0.0312, Step: 1,
			Usage: models.Usage{Prompt: 12345, Completion: 678}, Started: s.now.Add(-83 * time.Second), ShowThinking: true,
		}
	}
	change(&state)
	s.m.feed.setState(state)
	s.send(feedMsg{})
}

// show sends items and paints the result.
func (s *scene) show(items ...any) {
	for _, item := range items {
		if e, ok := item.(events.Event); ok {
			item = events.Content(e)
		}
		s.m.feed.push(item)
	}
	s.send(feedMsg{})
}

func (s *scene) send(msg tea.Msg) {
	s.t.Helper()
	s.m.Update(msg)
	s.paint()
}

func (s *scene) paint() {
	s.t.Helper()
	if s.m.failure != nil {
		s.t.Fatal(s.m.failure)
	}
	if s.onPage != nil {
		s.onPage(s.m.screen.next)
	}
	s.m.screen.paintNext()
}

// ask opens a question.
func (s *scene) ask(q chat.Question) {
	s.question = &pendingQuestion{Question: q, reply: make(chan answer, 1)}
	s.show(s.question)
}

// answer returns the answer to the question.
func (s *scene) answer() string {
	select {
	case a := <-s.question.reply:
		if a.err != nil {
			return a.err.Error()
		}
		return "= " + a.text
	default:
		return "nothing"
	}
}

// inputs returns the handler's calls since the previous call of inputs.
func (s *scene) inputs() string {
	var all []string
	for {
		select {
		case act := <-s.handler.calls:
			all = append(all, act)
		default:
			return strings.Join(all, "|")
		}
	}
}

// keys sends key presses: characters, and names of keys in angle brackets.
func (s *scene) keys(keys string) {
	s.t.Helper()
	for keys != "" {
		if name, rest, ok := strings.Cut(strings.TrimPrefix(keys, "<"), ">"); ok && keys[0] == '<' {
			s.send(keyNamed(s.t, name))
			keys = rest
			continue
		}
		r := []rune(keys)[0]
		s.send(tea.KeyPressMsg{Code: r, Text: string(r)})
		keys = keys[len(string(r)):]
	}
}

func keyNamed(t testing.TB, name string) tea.KeyPressMsg {
	t.Helper()
	var mod tea.KeyMod
	parts := strings.Split(name, "+")
	for _, p := range parts[:len(parts)-1] {
		mod |= map[string]tea.KeyMod{"ctrl": tea.ModCtrl, "alt": tea.ModAlt, "shift": tea.ModShift}[p]
	}
	last := parts[len(parts)-1]
	code, ok := map[string]rune{
		"enter": tea.KeyEnter, "tab": tea.KeyTab, "esc": tea.KeyEscape, "up": tea.KeyUp, "down": tea.KeyDown,
		"left": tea.KeyLeft, "backspace": tea.KeyBackspace, "home": tea.KeyHome, "pgup": tea.KeyPgUp,
	}[last]
	if !ok {
		code = []rune(last)[0]
	}
	k := tea.KeyPressMsg{Code: code, Mod: mod}
	if k.String() != name {
		t.Fatalf("the key %q is %q", name, k.String())
	}
	return k
}

// turn shows a turn with reasoning and a reply.
func (s *scene) turn(step int, thought, reply string, commands ...string) {
	s.show(events.PhaseStarted{Phase: events.PhaseThinking, Step: step}, events.TextDelta{Step: step, Text: thought, Thinking: true},
		events.TextDelta{Step: step, Text: reply}, replies(reply, thought, commands...))
}

func (s *scene) run(command, output string, code int) {
	s.show(starts(command), events.OutputChunk{Data: []byte(output)},
		events.Recorded{Data: trajectories.Execution{Command: command, ExitCode: code, Duration: 1200 * 1e6, Bytes: int64(len(output))}})
}

func starts(command string) events.PhaseStarted {
	return events.PhaseStarted{Phase: events.PhaseRunning, Command: command}
}

func replies(text, reasoning string, commands ...string) events.Recorded {
	m := trajectories.Message{Cause: trajectories.CauseReply, Actions: commands}
	m.Content, m.Reasoning = text, reasoning
	return events.Recorded{Data: m}
}

func message(cause trajectories.Cause, text string) events.Recorded {
	m := trajectories.Message{Cause: cause}
	m.Content = text
	return events.Recorded{Data: m}
}

func denies(command, by, rule, reason string) events.Recorded {
	return events.Recorded{Data: trajectories.CommandDecision{
		Command: command, Decision: trajectories.Decision{Action: trajectories.Deny, By: by, Rule: rule, Reason: reason},
	}}
}
