package runner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/trajectories"
)

// EventType is the type of an event.
type EventType string

// Events of a run.
const (
	RunStarted      EventType = "run_started"
	AttemptStarted  EventType = "attempt_started"
	AttemptResumed  EventType = "attempt_resumed" // continues after step Event.Step; Event.Total commands are rerun first
	SandboxReady    EventType = "sandbox_ready"
	CommandFinished EventType = "step"         // a command ended
	FormatError     EventType = "format_error" // the reply had no command, or several
	CommandDenied   EventType = "refused"      // Command was denied; Text is the reason
	AttemptFinished EventType = "attempt_finished"
	PullProgress    EventType = "pull"     // progress of an image pull
	Warning         EventType = "warning"  // Text is for the user
	ProviderChanged EventType = "provider" // the rate limit state of the provider changed
	SandboxKept     EventType = "kept"     // Text has instructions to access the sandbox
	// ControlApplied reports a request to Control: Action, Source and the effect in
	// Text. Total is the current number of tasks; Class is the previous outcome of
	// a requeued task.
	ControlApplied EventType = "control"
	RunFinished    EventType = "run_finished"
	// Events of evaluations (see runner/evaluate), which may run at the same
	// time as attempts.
	EvaluationStarted    EventType = "evaluation_started"  // Total (if known) and Workers
	EvaluationRunStarted EventType = "evaluation_attempt"  // a sandbox starts for a patch; Text is the purpose
	Verdict              EventType = "verdict"             // Text is the reason; Elapsed is 0 if no tests ran
	EvaluationFinished   EventType = "evaluation_finished" // Total is the number of patches with a record
	// PhaseChanged reports the current phase of an instance. Observers receive it,
	// but it is not written to events.jsonl.
	PhaseChanged EventType = "doing"
)

// Phase is the current activity of an instance.
type Phase = events.Phase

// The phases of a running instance.
const (
	PhaseStarting Phase = "starting" // the sandbox is being created; Text may name the image
	// PhaseQueued waits for the cluster to start the sandbox; Text is the reason.
	PhaseQueued Phase = "queued"
	// PhaseScrubbing removes commits after HEAD from the repository. It runs in the
	// sandbox, or once for the image in Text.
	PhaseScrubbing = events.PhaseScrubbing
	// PhaseRebuilding reruns the commands of a resumed attempt: Command is number Done of Total.
	PhaseRebuilding Phase = "rebuilding"
	PhaseThinking         = events.PhaseThinking // waits for the model's reply in step Event.Step
	PhaseRunning          = events.PhaseRunning  // Command is running
	PhaseTesting    Phase = "testing"            // runs the tests of a Harbor task
	PhaseClosing          = events.PhaseClosing  // takes the diff and closes the sandbox
	PhaseWaiting          = events.PhaseWaiting  // waits Elapsed seconds before a retry, for an image, or for the provider
	PhaseReleased   Phase = "left"               // no longer assigned to a worker
)

// PullState is the progress of an image pull.
type PullState struct {
	Image string `json:"image"`
	// Layers is the number of layers known so far, LayersDone the number of
	// complete layers.
	Layers     int `json:"layers"`
	LayersDone int `json:"layers_done"`
	// Bytes is the number of bytes downloaded, Total the number known so far,
	// which grows as layers are found.
	Bytes int64 `json:"bytes"`
	Total int64 `json:"total"`
	// Done reports that the pull has ended; Failed and Stopped (cancelled) report
	// an end without an image.
	Done    bool `json:"done,omitempty"`
	Failed  bool `json:"failed,omitempty"`
	Stopped bool `json:"stopped,omitempty"`
}

// ProviderState is the rate limit state of a model's provider.
type ProviderState struct {
	Limit        int     `json:"limit"` // of concurrent requests; 0: none
	InFlight     int     `json:"in_flight"`
	Waiting      int     `json:"waiting"`
	PauseSeconds float64 `json:"pause,omitempty"` // how long all requests wait, as the provider asked
	// MinuteFullSeconds is the wait until the limit of requests or tokens per
	// minute allows another request.
	MinuteFullSeconds float64 `json:"minute_full,omitempty"`
}

// EventsVersion is the version of the format of events.jsonl. Fields and types may be
// added to a version; existing ones keep their names and meaning.
const EventsVersion = 1

// Event is one event of a run and one line of events.jsonl. Fields that do not
// apply to its Type are empty.
type Event struct {
	Type EventType `json:"type"`
	// Version is EventsVersion in RunStarted and EvaluationStarted events.
	Version  int       `json:"version,omitempty"`
	Time     time.Time `json:"time"`
	Instance string    `json:"instance,omitempty"`
	Attempt  int       `json:"attempt,omitempty"`
	// Repetition is the repetition of the instance, 0 if there is only one. In a
	// RunStarted event it is the number of repetitions per instance.
	Repetition int     `json:"sample,omitempty"`
	Step       int     `json:"step,omitempty"`
	Cost       float64 `json:"cost,omitempty"` // of the attempt so far, US dollars
	// Command is the start of the command, on one line.
	Command  string   `json:"command,omitempty"`
	ExitCode int      `json:"returncode,omitempty"`
	TimedOut bool     `json:"timed_out,omitempty"`
	Elapsed  float64  `json:"elapsed,omitempty"` // seconds
	Text     string   `json:"text,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// WillRetry reports that the attempt, or the test run of a Verdict, will be
	// retried.
	WillRetry bool                  `json:"again,omitempty"`
	Outcome   *trajectories.Outcome `json:"-"`
	Total     int                   `json:"total,omitempty"`
	Done      int                   `json:"done,omitempty"` // of Total
	Skipped   int                   `json:"skipped,omitempty"`
	Workers   int                   `json:"workers,omitempty"`
	Summary   *runs.Summary         `json:"summary,omitempty"`
	// Class and ExitStatus are copied from the outcome.
	Class      trajectories.Class `json:"class,omitempty"`
	ExitStatus string             `json:"exit_status,omitempty"`
	// Verdict is the class of a verdict, ResultModel the model that made the patch.
	Verdict     string `json:"verdict,omitempty"`
	ResultModel string `json:"model,omitempty"`
	// Action is the requested action, Source the origin of the request.
	Action Action `json:"action,omitempty"`
	Source string `json:"by,omitempty"`
	// Pull is set for pull events.
	Pull *PullState `json:"pull,omitempty"`
	// Provider is set for provider events.
	Provider *ProviderState `json:"provider,omitempty"`
	Phase    Phase          `json:"-"`
	// AttemptStats is set when an attempt finishes. Its fields are inlined in JSON.
	*AttemptStats
}

// TaskID returns the instance ID, with the repetition if there are several:
// "id#2".
func (e Event) TaskID() string {
	if e.Repetition == 0 {
		return e.Instance
	}
	return fmt.Sprintf("%s#%d", e.Instance, e.Repetition)
}

// AttemptStats holds the usage and patch size of an attempt.
type AttemptStats struct {
	Steps      int         `json:"steps"` // model calls
	Usage      model.Usage `json:"usage"`
	PatchBytes int         `json:"patch_bytes"`
}

// IsTransient reports whether the event is not written to events.jsonl.
func (e Event) IsTransient() bool { return e.Type == PhaseChanged }

// Line encodes the event as a line of events.jsonl, with the newline.
func (e Event) Line() ([]byte, error) {
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		return nil, fmt.Errorf("encode event: %w", err)
	}
	return line.Bytes(), nil
}

// EventLog writes the events of a run to its folder and passes them to an observer. Its
// methods are safe for concurrent use.
type EventLog struct {
	// Redact removes the secrets of this machine from text, like
	// trajectories.Header.Redact. It is applied to every line of events.jsonl;
	// nil removes nothing. Set it before the first event.
	Redact func(text []byte) []byte

	mu      sync.Mutex
	folder  *Folder
	onEvent func(Event)
}

// NewLog returns the log of a run. It calls onEvent with one event at a time;
// onEvent must be quick and may be nil.
func NewLog(folder *Folder, onEvent func(Event)) *EventLog {
	return &EventLog{folder: folder, onEvent: onEvent}
}

// Emit sets the time of an event, writes it to the folder and passes it to the
// observer.
func (l *EventLog) Emit(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.Time = time.Now()
	if e.Type == RunStarted || e.Type == EvaluationStarted {
		e.Version = EventsVersion
	}
	if e.Outcome != nil {
		e.Class, e.ExitStatus = e.Outcome.Class, e.Outcome.ExitStatus
		e.Cost, e.Step, e.Text = float64(e.Outcome.Cost), e.Outcome.Steps, e.Outcome.Error
		e.Elapsed = e.Outcome.ActiveDuration().Seconds()
		e.AttemptStats = &AttemptStats{Steps: e.Outcome.Steps, Usage: e.Outcome.Usage, PatchBytes: len(e.Outcome.Submission)}
	}
	if e.Type == Verdict && !e.WillRetry {
		l.folder.forgetVerdicts(e.Instance)
	}
	if !e.IsTransient() {
		l.folder.writeEvent(e, l.Redact)
	}
	if l.onEvent != nil {
		l.onEvent(e)
	}
}

// maxCommand limits the length of a command in an event, in bytes without the
// ellipsis. The journal has the whole command.
const maxCommand = 200

// shorten shortens a command for an event. It redacts before it cuts, because
// Redact does not recognize a part of a secret.
func (l *EventLog) shorten(command string) string {
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

// observer emits the events of an attempt and counts its cost. Subagents of the
// attempt use it concurrently.
type observer struct {
	mu      sync.Mutex
	log     *EventLog
	budget  *budgetTracker
	breaker *circuitBreaker
	task    *task
	attempt int
	step    int
	cost    float64
	phase   Phase
}

// Observe implements agent.Observer.
func (o *observer) Observe(e events.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r, ok := e.(events.Recorded); ok {
		o.step, o.cost = r.Step, float64(r.Spent.Cost)
	}
	if c, ok := events.Content(e).(trajectories.ModelCall); ok {
		o.budget.addCost(c.OfChild(0).Cost)
	}
	switch d := events.Content(e).(type) {
	case events.PhaseStarted:
		o.startPhase(d.Phase, d.Command)
	case trajectories.Call:
		if d.Error == "" {
			o.breaker.onAnswer()
		}
	case trajectories.Execution:
		e := o.event(CommandFinished)
		e.Command, e.ExitCode, e.TimedOut = o.log.shorten(d.Command), d.ExitCode, d.TimedOut
		o.log.Emit(e)
	case trajectories.CommandDecision:
		if d.Action != trajectories.Allow {
			e := o.event(CommandDenied)
			e.Command, e.Text = o.log.shorten(d.Command), o.log.shorten(d.Reason)
			o.log.Emit(e)
		}
	case trajectories.Message:
		if d.Cause == trajectories.CauseFormatError {
			o.log.Emit(o.event(FormatError))
		}
	case trajectories.Outcome:
		if d.ExitStatus == agent.ErrRepeatedFormatError.Error() { // the agent records no message for the last format error
			e := o.event(FormatError)
			e.Text = "limit of consecutive format errors reached"
			o.log.Emit(e)
		}
	}
}

func (o *observer) event(t EventType) Event {
	return o.task.event(Event{Type: t, Attempt: o.attempt, Step: o.step, Cost: o.cost})
}

func (o *observer) startPhase(p Phase, command string) {
	if p == PhaseClosing && o.phase == PhaseClosing {
		return
	}
	o.phase = p
	e := o.event(PhaseChanged)
	e.Phase, e.Command = p, o.log.shorten(command)
	if p == PhaseThinking || p == PhaseWaiting {
		e.Step++ // o.step counts finished calls; this call is the next step
	}
	o.log.Emit(e)
}

// reportRebuild emits the event that the rerun of command number done of total
// starts.
func (o *observer) reportRebuild(done, total int, command string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.event(PhaseChanged)
	e.Phase, e.Done, e.Total, e.Command = PhaseRebuilding, done, total, o.log.shorten(command)
	o.log.Emit(e)
}
