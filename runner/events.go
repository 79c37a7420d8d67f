package runner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// EventType says what an event is.
type EventType string

// What happens in a run.
const (
	RunStarted      EventType = "run_started"
	AttemptStarted  EventType = "attempt_started"
	AttemptResumed  EventType = "attempt_resumed" // it goes on after Step; Total commands rebuild its sandbox
	SandboxReady    EventType = "sandbox_ready"
	Step            EventType = "step"         // a command ended
	FormatError     EventType = "format_error" // a reply had no, or several, commands
	Refused         EventType = "refused"      // Command was not let run; Text says why
	AttemptFinished EventType = "attempt_finished"
	Pull            EventType = "pull"     // an image is being pulled
	Warning         EventType = "warning"  // something the user should know
	Provider        EventType = "provider" // what the model's provider lets through is another
	Kept            EventType = "kept"     // a sandbox stays; Text says how to get at it
	// Controlled is what somebody has told the run to do (see Control): Action, By,
	// and what came of it as Text. Total is how many tasks the run has now, and Class
	// how one had ended that is tried again.
	Controlled  EventType = "control"
	RunFinished EventType = "run_finished"
	// Of evaluations (see runner/evaluate). Their instances may be those of a
	// run that goes on beside them.
	EvaluationStarted  EventType = "evaluation_started"  // with Total where it is known, and Workers
	EvaluationAttempt  EventType = "evaluation_attempt"  // a sandbox is being made for a patch, and Text says what for
	Verdict            EventType = "verdict"             // Verdict has its class, Text the reason, Elapsed the seconds, 0 where nothing was run; Again as in attempts
	EvaluationFinished EventType = "evaluation_finished" // Total patches have a verdict
	// Doing says what an instance is in the middle of. It is for those who
	// watch, and is not written to events.jsonl: the other events say enough
	// of what came of it.
	Doing EventType = "doing"
)

// Phase is what an instance is in the middle of.
type Phase = agent.Phase

// The phases of an instance at work.
const (
	Starting Phase = "starting" // its sandbox is being made; Text may name the image
	// Scrubbing removes from the repository what came after its HEAD, in the sandbox
	// or, once for all sandboxes of it, in the image that Text names.
	Scrubbing = agent.Scrubbing
	// Rebuilding runs the commands of an attempt that goes on: Command is Done of Total.
	Rebuilding Phase = "rebuilding"
	Thinking         = agent.Thinking // the model was asked for Step
	Running          = agent.Running  // Command runs
	Closing          = agent.Closing  // the diff is taken and the sandbox closed
	Waiting          = agent.Waiting  // for Elapsed seconds, before the next attempt or for its image; or for the model's provider
	Left       Phase = "left"         // no worker has it any more
)

// PullState is how far the pull of an image has come.
type PullState struct {
	Image string `json:"image"`
	// Layers are those known so far, LayersDone those in place.
	Layers     int `json:"layers"`
	LayersDone int `json:"layers_done"`
	// Bytes have been downloaded of Total, which grows as layers are found.
	Bytes int64 `json:"bytes"`
	Total int64 `json:"total"`
	// Done says that the pull has ended, Failed that it has not ended well, and
	// Stopped that it was given up.
	Done    bool `json:"done,omitempty"`
	Failed  bool `json:"failed,omitempty"`
	Stopped bool `json:"stopped,omitempty"`
}

// ProviderState is what the provider of a model lets through.
type ProviderState struct {
	Limit    int     `json:"limit"` // requests at once; 0: no bound is known
	InFlight int     `json:"in_flight"`
	Waiting  int     `json:"waiting"`
	Pause    float64 `json:"pause,omitempty"` // seconds for which it asked all to wait
	// Full is for how many seconds the limit a minute, of requests or tokens,
	// lets nobody through.
	Full float64 `json:"minute_full,omitempty"`
}

// Event is one thing that happened; it is a line of events.jsonl. Fields that
// say nothing about its type are empty.
type Event struct {
	Type     EventType `json:"type"`
	Time     time.Time `json:"time"`
	Instance string    `json:"instance,omitempty"`
	Attempt  int       `json:"attempt,omitempty"`
	// Sample is which of several results of the instance this is about, 0 where one
	// was asked for; of RunStarted, how many each instance is to have.
	Sample int     `json:"sample,omitempty"`
	Step   int     `json:"step,omitempty"`
	Cost   float64 `json:"cost,omitempty"` // of the attempt so far, US dollars
	// Command is the beginning of the command, on one line.
	Command  string   `json:"command,omitempty"`
	ExitCode int      `json:"returncode,omitempty"`
	TimedOut bool     `json:"timed_out,omitempty"`
	Elapsed  float64  `json:"elapsed,omitempty"` // seconds
	Text     string   `json:"text,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Again says that the instance will be tried again.
	Again   bool                  `json:"again,omitempty"`
	Outcome *trajectories.Outcome `json:"-"`
	Total   int                   `json:"total,omitempty"`
	Done    int                   `json:"done,omitempty"` // of Total
	Skipped int                   `json:"skipped,omitempty"`
	Workers int                   `json:"workers,omitempty"`
	Summary *Summary              `json:"summary,omitempty"`
	// Class and ExitStatus are the outcome's, for the file.
	Class      trajectories.Class `json:"class,omitempty"`
	ExitStatus string             `json:"exit_status,omitempty"`
	// Verdict is the class of a verdict, and ResultModel whose patch it is on.
	Verdict     string `json:"verdict,omitempty"`
	ResultModel string `json:"model,omitempty"`
	// Action is what By wants of the run.
	Action Action `json:"action,omitempty"`
	By     string `json:"by,omitempty"`
	// Pull is what a pull event is about.
	Pull *PullState `json:"pull,omitempty"`
	// Provider is what a provider event is about.
	Provider *ProviderState `json:"provider,omitempty"`
	Phase    Phase          `json:"-"`
	// Took is what an attempt took that finished, beside its cost and time; its
	// fields stand among the event's own. It is nil for other events.
	*Took
}

// Who is the instance, with the sample where there are several: "id#2".
func (e Event) Who() string {
	if e.Sample == 0 {
		return e.Instance
	}
	return fmt.Sprintf("%s#%d", e.Instance, e.Sample)
}

// Took is what an attempt took, and what it left.
type Took struct {
	Steps      int         `json:"steps"` // model calls
	Usage      model.Usage `json:"usage"`
	PatchBytes int         `json:"patch_bytes"`
}

// Transient says that an event is for those who watch only.
func (e Event) Transient() bool { return e.Type == Doing }

// Line is the event as a line of events.jsonl, its end included.
func (e Event) Line() ([]byte, error) {
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		return nil, fmt.Errorf("encode event: %w", err)
	}
	return line.Bytes(), nil
}

// Log is where the events of a run go: into its folder, and to whoever
// watches. Its methods are safe for concurrent use.
type Log struct {
	// Redact returns a text without the keys of this machine, or the text itself,
	// as that of trajectories.Header. Every event in the folder goes through it;
	// nil changes nothing. It is set before the first event.
	Redact func(text []byte) []byte

	mu     sync.Mutex
	folder *Folder
	watch  func(Event)
}

// NewLog returns the log of a run. watch may be nil; it must be quick, and is
// called with one event at a time.
func NewLog(folder *Folder, watch func(Event)) *Log {
	return &Log{folder: folder, watch: watch}
}

// Emit stamps an event with the time and passes it on.
func (l *Log) Emit(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.Time = time.Now()
	if e.Outcome != nil {
		e.Class, e.ExitStatus = e.Outcome.Class, e.Outcome.ExitStatus
		e.Cost, e.Step, e.Text = float64(e.Outcome.Cost), e.Outcome.Steps, e.Outcome.Error
		e.Elapsed = e.Outcome.Took().Seconds()
		e.Took = &Took{Steps: e.Outcome.Steps, Usage: e.Outcome.Usage, PatchBytes: len(e.Outcome.Submission)}
	}
	if e.Type == Verdict && !e.Again {
		l.folder.judged(e.Instance)
	}
	if !e.Transient() {
		l.folder.writeEvent(e, l.Redact)
	}
	if l.watch != nil {
		l.watch(e)
	}
}

// maxCommand bounds a command in an event, in bytes: events are for watching,
// the journal has it whole.
const maxCommand = 200

// shorten is a command for an event. Keys are taken out before it is cut: Redact
// does not find a part of one.
func (l *Log) shorten(command string) string {
	if l.Redact != nil {
		command = string(l.Redact([]byte(command)))
	}
	cut := command[:min(len(command), 4*maxCommand)]
	line := strings.Join(strings.Fields(strings.ToValidUTF8(cut, "")), " ")
	if len(line) > maxCommand {
		line = strings.ToValidUTF8(line[:maxCommand], "") + "…"
	}
	return line
}
