package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/minibench/mini/cmd/mini/internal/screen"
	"github.com/minibench/mini/cmd/mini/internal/tui"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/report"
)

// The ways to show a run, for --progress.
const (
	progressPlain = "plain"
	progressLive  = "live"
	progressJSON  = "json"
	progressNone  = "none"
)

var progressKinds = []string{progressPlain, progressLive, progressJSON, progressNone}

// display is what may be shown on, and what the surroundings say about it.
type display struct {
	terminal   bool // stderr is one
	foreground bool // this process may use it
	term       string
	ci         bool
}

func displayOf(s Streams) display {
	f := stderrOf(s).file()
	ci := os.Getenv("CI")
	d := display{term: os.Getenv("TERM"), ci: ci != "" && ci != "false" && ci != "0"}
	if f != nil && term.IsTerminal(int(f.Fd())) {
		d.terminal, d.foreground = true, screen.Foreground(f)
	}
	return d
}

// chooseProgress is what --progress asks for, or what fits.
func chooseProgress(kind string, d display) (string, error) {
	mute := d.term == "" || d.term == "dumb"
	switch {
	case kind == "" && d.terminal && d.foreground && !mute && !d.ci:
		return progressLive, nil
	case kind == "":
		return progressPlain, nil
	case !slices.Contains(progressKinds, kind):
		return "", usagef("--progress %q: there is %s", kind, strings.Join(progressKinds, ", "))
	case kind == progressLive && !d.terminal:
		return "", usagef("--progress live needs a terminal on stderr; without one there is %s", progressPlain)
	case kind == progressLive && mute:
		return "", usagef("--progress live needs a terminal that can move its cursor, and TERM=%s says it cannot; there is %s", d.term, progressPlain)
	case kind == progressLive && !d.foreground:
		return progressPlain, nil // it would be stopped for touching the terminal
	}
	return kind, nil
}

// heading is what a run is called while it is shown.
type heading struct {
	dataset, model, folder string
	ids                    []string // of the instances, for columns that line up
	judged                 bool     // verdicts may come when the agent is done
	patches                int      // that are to be judged, 0 where that is not known
}

// progress shows a run as it goes on.
type progress struct {
	kind   string
	head   heading
	stderr *messages

	shown    func(runner.Event)
	problems *report.Plain // for after a live view, which takes with it what it showed
	live     *tui.Live     // nil while the screen is not taken
	desk     *desk         // takes the orders of a live view
}

// newProgress is for a kind that chooseProgress has picked. Close ends it.
func newProgress(kind string, s Streams, h heading) *progress {
	m := stderrOf(s)
	p := &progress{kind: kind, head: h, stderr: m}
	switch kind {
	case progressJSON:
		p.shown = report.NewLines(direct{m}).Event
		warn := report.NewLines(m.w).Event // m holds its lock when it says something
		m.divert(func(line string) { warn(runner.Event{Type: runner.Warning, Time: time.Now(), Text: line}) }, false)
	case progressNone:
		p.shown = p.plain(m).Problem
	case progressLive:
		p.shown = p.plain(unlessTaken{m}).Event
		p.problems = p.plain(onlyHeld{m})
	default:
		p.shown = p.plain(m).Event
	}
	return p
}

// stderrOf is stderr as Main has wrapped it.
func stderrOf(s Streams) *messages {
	m, ok := s.Err.(*messages)
	if !ok {
		m = &messages{w: s.Err}
	}
	return m
}

// plain writes lines that fit stderr, where that is a terminal.
func (p *progress) plain(w io.Writer) *report.Plain {
	lines := report.NewPlain(w, p.head.ids)
	lines.Patches = p.head.patches
	lines.Width = func() int { return terminalWidth(p.stderr.file()) }
	return lines
}

// Writer takes what is said before the run begins.
func (p *progress) Writer() io.Writer {
	if p.kind == progressJSON || p.kind == progressNone {
		return io.Discard
	}
	return p.stderr
}

// Event shows one event. Calls come one at a time.
func (p *progress) Event(e runner.Event) {
	if p.live != nil {
		select {
		case <-p.live.Done(): // it failed; plain lines take over
			p.release()
		default:
		}
	}
	p.shown(e)
	if p.kind != progressLive {
		return
	}
	if e.Type == runner.RunStarted && e.Total > e.Skipped {
		p.take()
	}
	p.problems.Problem(e)
	if e.Type == runner.RunFinished && p.head.judged {
		p.release() // the rest is lines
	}
	if p.live != nil {
		p.live.Event(e)
	}
}

// take begins the live view, with the run: what comes before it is lines.
func (p *progress) take() {
	p.live = tui.Start(tui.Config{
		Terminal:  p.stderr.file(),
		Title:     tui.Title{Dataset: p.head.dataset, Model: p.head.model, Folder: p.head.folder, Judged: p.head.judged},
		Interrupt: interruptSelf,
		Taken:     p.stderr.taken,
		Desk:      p.desk,
	})
}

// release gives the screen back and prints what was held for that moment.
func (p *progress) release() {
	live := p.live
	if live == nil {
		return
	}
	p.live = nil
	err := live.Close()
	p.stderr.release()
	if err != nil {
		_, _ = fmt.Fprintf(p.stderr, "mini: %s; the run is not touched by that\n", lines(err.Error())) // only for people
	}
}

// Close gives the screen back. What was held meanwhile is printed then: the
// failures, and what mini had to say.
func (p *progress) Close() {
	p.release()
	if p.kind == progressJSON {
		p.stderr.release()
	}
}
