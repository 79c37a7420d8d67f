// Package headless is the frontend of a session for scripts: it asks nothing, and writes only the result of
// the task, or the conversation as lines of JSON. The forms are those of claude -p; docs/session.md says what
// differs.
package headless

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/cmd/mini/internal/ui/chat"
	"github.com/minibench/mini/internal/sanitize"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/trajectories"
)

// Format is what a Frontend writes.
type Format string

// The formats: the result as text, the result as an object of JSON, and a line of JSON for each message.
const (
	Text       Format = "text"
	JSON       Format = "json"
	StreamJSON Format = "stream-json"
)

// Formats are all formats.
var Formats = []string{string(Text), string(JSON), string(StreamJSON)}

// Config configures a Frontend.
type Config struct {
	// Print writes to stdout.
	Print  func(text string) error
	Err    io.Writer
	Format Format
	// Session identifies the session for --resume; empty if it cannot be resumed.
	Session string
	// IsYolo is set if commands run without asking.
	IsYolo bool
	// OnBrokenOutput is called when a line cannot be written.
	OnBrokenOutput func()
}

// Frontend implements chat.Frontend. It must be the agent.Observer of the session, too, because a slow reader
// of stdout must not lose messages.
type Frontend struct {
	Config
	started time.Time

	mu          sync.Mutex
	result      string    // text of the last reply that has one
	calls       []toolUse // commands of the last reply without a result
	turns       int
	apiDuration time.Duration
	denials     []denial
	limit       string // that was reached
	printErr    error
}

var (
	_ chat.Frontend  = (*Frontend)(nil)
	_ agent.Observer = (*Frontend)(nil)
)

// New returns a frontend.
func New(c Config) *Frontend { return &Frontend{Config: c, started: time.Now(), denials: []denial{}} }

// SetSession sets Config.Session.
func (f *Frontend) SetSession(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Session = id
}

// Ask implements chat.Frontend: there is no user.
func (*Frontend) Ask(context.Context, chat.Question) (string, error) { return "", chat.ErrQuit }

// ShowNotice implements chat.Frontend.
func (f *Frontend) ShowNotice(n chat.Notice) {
	if !n.IsDiff {
		f.notef("%s", n.Text)
	}
}

// ShowEvent implements chat.Frontend; Observe handles the events.
func (*Frontend) ShowEvent(events.Envelope) {}

// SetState implements chat.Frontend.
func (*Frontend) SetState(chat.State) {}

// HandleInput does nothing: there is no user.
func (*Frontend) HandleInput(chat.InputHandler) {}

// HasShownOutcome returns false: Finish shows it.
func (*Frontend) HasShownOutcome() bool { return false }

// Close does nothing.
func (*Frontend) Close() {}

// Draft returns "".
func (*Frontend) Draft() string { return "" }

// notef prints a line to stderr.
func (f *Frontend) notef(format string, args ...any) {
	_, _ = fmt.Fprintln(f.Err, "mini:", sanitize.Text(fmt.Sprintf(format, args...))) // best effort
}

// maxCommand is how much of a denied command is printed, in bytes.
const maxCommand = 200

// Observe implements agent.Observer.
func (f *Frontend) Observe(e events.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch data := events.Content(e).(type) {
	case events.RunStarted:
		f.stream(newInitLine(data, f.Session, f.IsYolo))
	case events.LimitReached:
		f.limit = data.Limit
	case trajectories.CommandDecision:
		if data.Action == trajectories.Allow {
			return
		}
		f.denials = append(f.denials, f.denial(data.Command))
		f.notef("not run: %s: %s", text.Clip(text.OneLine(data.Command), maxCommand), data.Reason)
	case trajectories.Compaction:
		f.stream(newCompactLine(data, f.Session))
	case trajectories.Message:
		recorded, _ := e.(events.Recorded)
		f.observeMessage(data, recorded.Call)
	}
}

// observeMessage writes a message of the conversation. It leaves out the prompts.
func (f *Frontend) observeMessage(m trajectories.Message, call *trajectories.Call) {
	switch {
	case m.Cause == trajectories.CauseReply:
		f.turns++
		if call != nil {
			f.apiDuration += time.Duration(call.Duration - call.Waited)
		}
		shown := withoutCommands(m)
		if shown != "" {
			f.result = shown
		}
		f.calls = toolUses(m, f.turns)
		f.stream(newAssistantLine(m, call, shown, f.calls, f.turns, f.Session))
	case m.Cause == trajectories.CausePrompt:
	case len(f.calls) > 0 && slices.Contains(resultCauses, m.Cause):
		use := f.calls[0]
		f.calls = f.calls[1:]
		f.stream(newToolResultLine(m, use, f.Session))
	default:
		f.stream(newUserLine(m, f.Session))
	}
}

// resultCauses are the causes of messages that answer a command.
var resultCauses = []trajectories.Cause{
	trajectories.CauseObservation, trajectories.CauseRejection, trajectories.CauseNotRun, trajectories.CauseMalformedPatch,
}

// denial returns the entry of a denied command.
func (f *Frontend) denial(command string) denial {
	use := newToolUse("", command)
	for _, c := range f.calls {
		if c.Input.Command == command {
			use = c
			break
		}
	}
	return denial{use.Name, use.ID, use.Input}
}

// withoutCommands returns the text of a reply without thinking and without the blocks of its commands.
func withoutCommands(m trajectories.Message) string {
	content := protocol.WithoutThinking(m.Content)
	if len(m.ToolCalls) > 0 {
		return strings.TrimSpace(content) // the commands are not in the text
	}
	for _, command := range m.Actions {
		i := strings.LastIndex(content, command)
		if i < 0 || command == "" {
			continue
		}
		before, after := content[:i], content[i+len(command):]
		// The line above opens the block, the one below closes it. A tag may be on the same line.
		before = before[:strings.LastIndexByte(strings.TrimSuffix(before, "\n"), '\n')+1]
		_, after, _ = strings.Cut(strings.TrimPrefix(after, "\n"), "\n")
		content = before + after
	}
	return strings.TrimSpace(content)
}

// stream writes a line of StreamJSON.
func (f *Frontend) stream(line any) {
	if f.Format == StreamJSON {
		f.printLine(line)
	}
}

func (f *Frontend) print(text string) {
	if f.printErr != nil {
		return
	}
	if f.printErr = f.Print(text); f.printErr != nil && f.OnBrokenOutput != nil {
		f.OnBrokenOutput()
	}
}

// Finish writes the result of the task, whose journal began with the given spending; trajectory is its file.
func (f *Frontend) Finish(out trajectories.Outcome, before trajectories.Spending, trajectory string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if out.Source == trajectories.SourceSubmitted && len(out.Submission) > 0 {
		f.result = string(out.Submission)
	}
	switch {
	case f.Format != Text:
		f.printLine(f.newResultLine(out, before, trajectory))
	case out.Class == trajectories.Submitted && f.result != "":
		f.print(strings.TrimRight(f.result, "\n") + "\n")
	}
	if n := len(f.denials); n > 0 && !f.IsYolo {
		f.notef("%s %s not run; a rule in policy.rules allows a command, and -y runs all", text.Count(n, "command"), text.Verb(n, "was", "were"))
	}
	return f.printErr
}
