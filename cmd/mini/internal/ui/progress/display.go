// Package progress shows the progress of a run: as plain lines, as JSON lines or
// in a live view.
package progress

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/ui"
	"github.com/minibench/mini/cmd/mini/internal/ui/live"
	"github.com/minibench/mini/cmd/mini/internal/ui/terminal"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/batch"
	"github.com/minibench/mini/runner/report"
)

// Values of --progress.
const (
	Plain = "plain" // lines of text, see report.PlainPrinter
	Live  = "live"  // full-screen view, see package live
	JSON  = "json"  // one JSON object per event
	None  = "none"  // only warnings and errors
)

// Kinds lists all values of --progress.
var Kinds = []string{Plain, Live, JSON, None}

// Terminal describes stderr and its environment.
type Terminal struct {
	isTerminal   bool   // stderr is a terminal
	inForeground bool   // this process is in the terminal's foreground process group
	term         string // value of TERM
	inCI         bool   // the process runs in a CI job
}

// DetectTerminal examines stderr and the variables TERM and CI.
func DetectTerminal(s cmdutil.Streams) Terminal {
	f := messagesOf(s).File()
	ci := os.Getenv("CI")
	t := Terminal{term: os.Getenv("TERM"), inCI: ci != "" && ci != "false" && ci != "0"}
	if f != nil && term.IsTerminal(int(f.Fd())) {
		t.isTerminal, t.inForeground = true, terminal.IsForeground(f)
	}
	return t
}

// Choose returns the kind of progress to show: the requested kind or, if that is
// empty, the default for the terminal. For a background process, Live becomes
// Plain. supported are the kinds that the command supports; another requested kind
// is an error, and so is Live if stderr cannot show it.
func Choose(requested string, t Terminal, supported []string) (string, error) {
	noCursor := t.term == "" || t.term == "dumb"
	switch {
	case requested == "" && t.isTerminal && t.inForeground && !noCursor && !t.inCI && slices.Contains(supported, Live):
		return Live, nil
	case requested == "":
		return Plain, nil
	case !slices.Contains(supported, requested):
		return "", usage.Errorf("--progress %.60q: must be one of %s", requested, strings.Join(supported, ", "))
	case requested == Live && !t.isTerminal:
		return "", usage.Errorf("--progress live needs a terminal on stderr; use %s", Plain)
	case requested == Live && noCursor:
		return "", usage.Errorf("--progress live does not support TERM=%s; use %s", t.term, Plain)
	case requested == Live && !t.inForeground:
		return Plain, nil // the kernel would stop a background process that draws
	}
	return requested, nil
}

// RunInfo describes a run for its display.
type RunInfo struct {
	Dataset, Model, Folder string
	IDs                    []string // instance ids; they determine the width of a column
	HasVerdicts            bool     // the run also evaluates the submissions
	Patches                int      // number of patches to evaluate; 0 if unknown
}

// Display shows the progress of a run.
type Display struct {
	kind   string
	head   RunInfo
	stderr *cmdutil.Messages

	state        *batch.State
	printEvent   func(runner.Event)
	heldProblems *report.PlainPrinter // holds failures until the live view has closed
	view         *live.View           // nil if no live view is shown
	Controller   live.Controller      // executes the user's orders from the live view
}

// New returns a Display of a kind that Choose returned. The caller must call
// Close.
func New(kind string, s cmdutil.Streams, h RunInfo) *Display {
	messages := messagesOf(s)
	d := &Display{kind: kind, head: h, stderr: messages, state: batch.New()}
	switch kind {
	case JSON:
		d.printEvent = report.NewJSONPrinter(messages.DirectWriter())
		warn := report.NewJSONPrinter(messages.W) // not Direct: it would lock messages again
		messages.Divert(func(line string) { warn(runner.Event{Type: runner.Warning, Time: time.Now(), Text: line}) }, false)
	case None:
		d.printEvent = d.newPlainPrinter(messages).PrintProblem
	case Live:
		d.printEvent = d.newPlainPrinter(messages.UndivertedWriter()).Print
		d.heldProblems = d.newPlainPrinter(messages.HoldWriter())
	default:
		d.printEvent = d.newPlainPrinter(messages).Print
	}
	return d
}

// messagesOf returns s.Err as Messages, wrapped if it is another writer.
func messagesOf(s cmdutil.Streams) *cmdutil.Messages {
	messages, ok := s.Err.(*cmdutil.Messages)
	if !ok {
		messages = &cmdutil.Messages{W: s.Err}
	}
	return messages
}

// newPlainPrinter returns a printer that writes lines to w, cut to the terminal's width.
func (d *Display) newPlainPrinter(w io.Writer) *report.PlainPrinter {
	printer := report.NewPlainPrinter(w, d.head.IDs)
	printer.State, printer.Patches = d.state, d.head.Patches
	printer.Width = func() int { return ui.TerminalWidth(d.stderr.File()) }
	return printer
}

// Writer returns the writer for messages before the run begins. JSON and None
// discard them.
func (d *Display) Writer() io.Writer {
	if d.kind == JSON || d.kind == None {
		return io.Discard
	}
	return d.stderr
}

// Event shows an event. Calls must not be concurrent.
func (d *Display) Event(e runner.Event) {
	if d.view != nil {
		select {
		case <-d.view.Done(): // the view has failed: continue with plain lines
			d.stopLive()
		default:
		}
	}
	d.state.Update(e)
	d.printEvent(e)
	if d.kind != Live {
		return
	}
	if e.Type == runner.RunStarted && e.Total > e.Skipped {
		d.startLive()
	}
	d.heldProblems.PrintProblem(e)
	if e.Type == runner.RunFinished && d.head.HasVerdicts {
		d.stopLive() // the remaining verdicts are printed as lines
	}
	if d.view != nil {
		d.view.HandleEvent(e)
	}
}

// startLive starts the live view.
func (d *Display) startLive() {
	d.view = live.Start(live.Config{
		Terminal: d.stderr.File(),
		State:    d.state,
		Title: live.Title{
			Dataset: d.head.Dataset, Model: d.head.Model, Folder: d.head.Folder, HasVerdicts: d.head.HasVerdicts,
		},
		Interrupt:        cmdutil.InterruptSelf,
		RedirectMessages: d.stderr.SetView,
		Controller:       d.Controller,
	})
}

// stopLive stops the live view and prints the held messages.
func (d *Display) stopLive() {
	view := d.view
	if view == nil {
		return
	}
	d.view = nil
	err := view.Close()
	d.stderr.Release()
	if err != nil {
		_, _ = fmt.Fprintf(d.stderr, "mini: live view: %s; the run continues\n", cmdutil.Sanitize(err.Error())) // best effort
	}
}

// Close stops the display and prints the messages that it has held, such as
// failures.
func (d *Display) Close() {
	d.stopLive()
	if d.kind == JSON {
		d.stderr.Release()
	}
}
