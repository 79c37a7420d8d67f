package live

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/batch"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

// board is what the view shows: the state of the batch and the log of its events. The lock of the
// state guards all of it. It stores untrusted text unsanitized; the methods that draw sanitize it.
type board struct {
	*batch.State

	log        []logEntry // newest last
	warnings   batch.Warnings
	maxNameLen int    // length of the longest task name so far, in bytes
	message    string // the last message of ShowMessage
	dirty      bool   // the board has changed since it was last drawn
}

// logEntry is a line of the log: a finished attempt, a verdict, a warning or an order.
type logEntry struct {
	at         time.Time
	name       string
	instanceID string // the instance id; set only for finished attempts
	attempt    int
	class      trajectories.Class // outcome of a finished attempt, else empty
	verdict    verdicts.Class     // set only for verdicts
	retry      bool               // the attempt or evaluation is retried
	text       string
}

// Bounds of the board.
const (
	maxLog  = 100
	maxText = 400 // bytes of an error or warning, without the ellipsis
)

func newBoard(s *batch.State) *board { return &board{State: s, warnings: batch.Warnings{}} }

// handleEvent adds an event to the log. The state was updated with it.
func (b *board) handleEvent(e runner.Event) {
	b.dirty = true
	switch e.Type {
	case runner.AttemptStarted:
		b.maxNameLen = max(b.maxNameLen, len(e.TaskID()))
	case runner.SandboxReady, runner.Warning:
		for _, warning := range b.warnings.New(e) {
			b.addLog(e, logEntry{text: warning})
		}
	case runner.ControlApplied:
		b.addLog(e, logEntry{text: fmt.Sprintf("%s (%s)", clip(e.Text), runner.SourceName(e.Source))})
	case runner.SandboxKept:
		b.addLog(e, logEntry{text: e.Text})
	case runner.AttemptFinished:
		b.addLog(e, logEntry{
			instanceID: e.Instance, attempt: e.Attempt, class: e.Outcome.Class, retry: e.WillRetry, text: outcomeText(e.Outcome),
		})
	case runner.Verdict:
		b.addLog(e, logEntry{verdict: verdicts.Class(e.Verdict), retry: e.WillRetry, text: report.VerdictText(e)})
	}
}

// addLog appends the entry of an event to the log.
func (b *board) addLog(e runner.Event, entry logEntry) {
	if len(b.log) == maxLog {
		b.log = slices.Delete(b.log, 0, 1)
	}
	entry.at, entry.name, entry.text = e.Time, e.TaskID(), clip(entry.text)
	b.log = append(b.log, entry)
}

// setMessage sets the message in the footer.
func (b *board) setMessage(text string) {
	b.message = strings.TrimPrefix(strings.TrimSpace(clip(text)), "mini: ")
	b.dirty = true
}

// perHour returns the number of instances finished per hour so far.
func (b *board) perHour(now time.Time) float64 {
	if elapsed := now.Sub(b.Started); b.Done > 0 && elapsed > 0 {
		return float64(b.Done) / elapsed.Hours()
	}
	return 0
}

// timeLeft estimates the remaining time. It is negative if unknown, e.g. while paused.
func (b *board) timeLeft(now time.Time) time.Duration {
	rate := b.perHour(now)
	if rate == 0 || b.Done >= b.Total || b.Halted != "" {
		return -1
	}
	return time.Duration(float64(b.Total-b.Done) / rate * float64(time.Hour))
}

// clip shortens a text to maxText bytes, and an ellipsis.
func clip(s string) string { return text.Clip(s, maxText) }
