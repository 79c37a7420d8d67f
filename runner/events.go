package runner

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/minibench/mini/trajectories"
)

// EventType says what an event is.
type EventType string

// What happens in a run.
const (
	RunStarted      EventType = "run_started"
	AttemptStarted  EventType = "attempt_started"
	SandboxReady    EventType = "sandbox_ready"
	Step            EventType = "step"         // a command ended
	FormatError     EventType = "format_error" // a reply had no, or several, commands
	AttemptFinished EventType = "attempt_finished"
	Pull            EventType = "pull"    // an image is being pulled
	Warning         EventType = "warning" // something the user should know
	RunFinished     EventType = "run_finished"
)

// Event is one thing that happened; it is a line of events.jsonl. Fields that
// say nothing about its type are empty.
type Event struct {
	Type     EventType `json:"type"`
	Time     time.Time `json:"time"`
	Instance string    `json:"instance,omitempty"`
	Attempt  int       `json:"attempt,omitempty"`
	Step     int       `json:"step,omitempty"`
	Cost     float64   `json:"cost,omitempty"` // of the attempt so far, US dollars
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
	Skipped int                   `json:"skipped,omitempty"`
	Workers int                   `json:"workers,omitempty"`
	Summary *Summary              `json:"summary,omitempty"`
	// Class and ExitStatus are the outcome's, for the file.
	Class      trajectories.Class `json:"class,omitempty"`
	ExitStatus string             `json:"exit_status,omitempty"`
}

// Log is where the events of a run go: into its folder, and to whoever
// watches. Its methods are safe for concurrent use.
type Log struct {
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
	}
	l.folder.writeEvent(e)
	if l.watch != nil {
		l.watch(e)
	}
}

// maxCommand bounds a command in an event, in bytes: events are for watching,
// the journal has it whole.
const maxCommand = 200

func shorten(command string) string {
	cut := command[:min(len(command), 4*maxCommand)]
	line := strings.Join(strings.Fields(strings.ToValidUTF8(cut, "")), " ")
	if len(line) > maxCommand {
		line = strings.ToValidUTF8(line[:maxCommand], "") + "…"
	}
	return line
}

func encodeEvent(e Event) ([]byte, error) {
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	err := enc.Encode(e)
	return line.Bytes(), err
}
