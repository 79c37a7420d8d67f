// Package progress shows the progress of a run as plain lines, as JSON or as a
// live view.
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
	"github.com/minibench/mini/runner/report"
)

// The ways to show a run, for --progress.
const (
	Plain = "plain"
	Live  = "live"
	JSON  = "json"
	None  = "none"
)

// Kinds are the values of --progress.
var Kinds = []string{Plain, Live, JSON, None}

// Terminal describes stderr and its environment.
type Terminal struct {
	terminal   bool // stderr is one
	foreground bool // this process may use it
	term       string
	ci         bool
}

// DetectTerminal examines stderr and the variables TERM and CI.
func DetectTerminal(s cmdutil.Streams) Terminal {
	f := stderrOf(s).File()
	ci := os.Getenv("CI")
	d := Terminal{term: os.Getenv("TERM"), ci: ci != "" && ci != "false" && ci != "0"}
	if f != nil && term.IsTerminal(int(f.Fd())) {
		d.terminal, d.foreground = true, terminal.IsForeground(f)
	}
	return d
}

// Choose returns the kind of progress to show: the requested one, or the
// default for the terminal. kinds are the kinds that the command supports.
func Choose(kind string, d Terminal, kinds []string) (string, error) {
	noCursor := d.term == "" || d.term == "dumb"
	switch {
	case kind == "" && d.terminal && d.foreground && !noCursor && !d.ci && slices.Contains(kinds, Live):
		return Live, nil
	case kind == "":
		return Plain, nil
	case !slices.Contains(kinds, kind):
		return "", usage.Errorf("--progress %.60q: must be one of %s", kind, strings.Join(kinds, ", "))
	case kind == Live && !d.terminal:
		return "", usage.Errorf("--progress live needs a terminal on stderr; use %s", Plain)
	case kind == Live && noCursor:
		return "", usage.Errorf("--progress live does not support TERM=%s; use %s", d.term, Plain)
	case kind == Live && !d.foreground:
		return Plain, nil // the kernel stops background processes that use the terminal
	}
	return kind, nil
}

// Heading describes a run for its display.
type Heading struct {
	Dataset, Model, Folder string
	IDs                    []string // of the instances, for columns that line up
	Judged                 bool     // the submissions are evaluated
	Patches                int      // number of patches to evaluate; 0 if unknown
}

// Display shows the progress of a run.
type Display struct {
	kind   string
	head   Heading
	stderr *cmdutil.Messages

	printEvent func(runner.Event)
	problems   *report.PlainPrinter // prints failures after the live view
	live       *live.View           // nil if no live view is shown
	Controller live.Controller      // executes the commands of the live view
}

// New returns a Display of a kind that Choose returned. The caller must call
// Close.
func New(kind string, s cmdutil.Streams, h Heading) *Display {
	m := stderrOf(s)
	p := &Display{kind: kind, head: h, stderr: m}
	switch kind {
	case JSON:
		p.printEvent = report.NewJSONPrinter(m.Direct()).Event
		warn := report.NewJSONPrinter(m.W).Event // m holds its lock when it says something
		m.Divert(func(line string) { warn(runner.Event{Type: runner.Warning, Time: time.Now(), Text: line}) }, false)
	case None:
		p.printEvent = p.plain(m).ProblemEvent
	case Live:
		p.printEvent = p.plain(m.UnlessDiverted()).Event
		p.problems = p.plain(m.HeldOnly())
	default:
		p.printEvent = p.plain(m).Event
	}
	return p
}

// stderrOf returns s.Err as Messages.
func stderrOf(s cmdutil.Streams) *cmdutil.Messages {
	m, ok := s.Err.(*cmdutil.Messages)
	if !ok {
		m = &cmdutil.Messages{W: s.Err}
	}
	return m
}

// plain returns a printer of lines that fit the terminal.
func (p *Display) plain(w io.Writer) *report.PlainPrinter {
	lines := report.NewPlainPrinter(w, p.head.IDs)
	lines.Patches = p.head.Patches
	lines.Width = func() int { return ui.TerminalWidth(p.stderr.File()) }
	return lines
}

// Writer returns the writer for messages before the run begins.
func (p *Display) Writer() io.Writer {
	if p.kind == JSON || p.kind == None {
		return io.Discard
	}
	return p.stderr
}

// Event shows an event. Calls must not be concurrent.
func (p *Display) Event(e runner.Event) {
	if p.live != nil {
		select {
		case <-p.live.Done(): // it failed; plain lines take over
			p.stopLive()
		default:
		}
	}
	p.printEvent(e)
	if p.kind != Live {
		return
	}
	if e.Type == runner.RunStarted && e.Total > e.Skipped {
		p.startLive()
	}
	p.problems.ProblemEvent(e)
	if e.Type == runner.RunFinished && p.head.Judged {
		p.stopLive() // the rest is lines
	}
	if p.live != nil {
		p.live.HandleEvent(e)
	}
}

// startLive starts the live view.
func (p *Display) startLive() {
	p.live = live.Start(live.Config{
		Terminal:         p.stderr.File(),
		Title:            live.Title{Dataset: p.head.Dataset, Model: p.head.Model, Folder: p.head.Folder, HasVerdicts: p.head.Judged},
		Interrupt:        cmdutil.InterruptSelf,
		RedirectMessages: p.stderr.SetView,
		Controller:       p.Controller,
	})
}

// stopLive stops the live view and prints the held messages.
func (p *Display) stopLive() {
	live := p.live
	if live == nil {
		return
	}
	p.live = nil
	err := live.Close()
	p.stderr.Release()
	if err != nil {
		_, _ = fmt.Fprintf(p.stderr, "mini: live view: %s; the run continues\n", cmdutil.Sanitize(err.Error())) // best effort
	}
}

// Close stops the display and prints the messages that were held back, such as
// failures.
func (p *Display) Close() {
	p.stopLive()
	if p.kind == JSON {
		p.stderr.Release()
	}
}
