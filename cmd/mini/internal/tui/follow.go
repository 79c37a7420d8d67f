package tui

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/trajectories"
)

// follow is the pane that shows an attempt as it grows: what the model said and ran,
// and the end of what came of it.
type follow struct {
	pick   pick
	number int // of the pane: what is read for an earlier one is not this one's
	tail   tail
	lines  []followed
	steps  int
	ended  bool
	failed string // why nothing is read; empty where something is
	up     int    // lines scrolled up from the end
}

// followed is a line of the pane. Its text is clean.
type followed struct {
	kind lineKind
	text string
}

type lineKind int

const (
	outputLine lineKind = iota
	headLine            // of a step
	saidLine            // by the model
	ranLine             // a command
	toldLine            // by mini
)

// Bounds of the pane.
const (
	maxFollowed  = 3000 // lines that are kept
	maxSaid      = 8    // lines of what the model says in a step
	maxRan       = 12   // of a command
	maxOutput    = 15   // of an output, its last
	maxForLines  = 64 << 10
	followEvery  = 400 * time.Millisecond
	followedTabs = "    "
)

// grown is what a journal has come to.
type grown struct {
	number  int
	tail    tail
	records []trajectories.Record
	more    bool
	err     error
}

// reads asks for what has come since, after a while.
func (p *follow) reads(after time.Duration) tea.Cmd {
	number, t := p.number, p.tail
	read := func(time.Time) tea.Msg {
		records, more, err := t.read()
		return grown{number, t, records, more, err}
	}
	if after <= 0 {
		return func() tea.Msg { return read(time.Time{}) }
	}
	return tea.Tick(after, read)
}

// grow takes in what was read, and asks for more.
func (p *follow) grow(g grown) tea.Cmd {
	p.tail, p.failed = g.tail, ""
	if g.err != nil && !errors.Is(g.err, fs.ErrNotExist) { // it is about to be made
		p.failed = g.err.Error()
	}
	if len(p.lines) == 0 && len(g.records) > 0 && p.tail.offset > maxPast {
		p.add(toldLine, "what came before is left out here; mini report has it")
	}
	for _, r := range g.records {
		p.record(r)
	}
	if g.more {
		return p.reads(0)
	}
	return p.reads(followEvery)
}

// record shows one record, if it is of a kind that people follow.
func (p *follow) record(r trajectories.Record) {
	switch r.Type {
	case trajectories.TypeMessage:
		var m trajectories.Message
		if json.Unmarshal(r.Data, &m) == nil {
			p.message(m)
		}
	case trajectories.TypeExecution:
		var x trajectories.Execution
		if json.Unmarshal(r.Data, &x) == nil {
			p.execution(x)
		}
	case trajectories.TypeCall:
		var c trajectories.Call
		if json.Unmarshal(r.Data, &c) == nil {
			if p.steps++; c.Error != "" {
				p.add(toldLine, "the call failed: "+c.Error)
			}
		}
	case trajectories.TypeDecision:
		var d trajectories.Decision
		if json.Unmarshal(r.Data, &d) == nil {
			p.decision(d)
		}
	case trajectories.TypeCompaction:
		var c trajectories.Compaction
		if json.Unmarshal(r.Data, &c) == nil {
			p.add(toldLine, fmt.Sprintf("the history was shortened (%s): %d messages are %d now", c.Policy, c.MessagesBefore, c.MessagesAfter))
		}
	case trajectories.TypeLimits:
		p.add(toldLine, "the limits were raised")
	case trajectories.TypeResume:
		p.ended = false
		p.add(headLine, "the attempt goes on")
	case trajectories.TypeOutcome:
		var o trajectories.Outcome
		if json.Unmarshal(r.Data, &o) == nil {
			p.ended = true
			p.add(headLine, "the end")
			p.add(toldLine, string(o.Class)+": "+ending(&o))
		}
	}
}

func (p *follow) message(m trajectories.Message) {
	switch m.Cause {
	case trajectories.CauseReply:
		p.add(headLine, fmt.Sprintf("step %d", max(1, p.steps)))
		p.text(saidLine, m.Content, maxSaid, false)
	case trajectories.CausePrompt, trajectories.CauseObservation, trajectories.CauseCommand:
		// The first are long, and the others tell of executions, which are here.
	case trajectories.CauseInterruption, trajectories.CauseSteer, trajectories.CauseFollowUp:
		p.text(toldLine, "the user: "+m.Content, maxSaid, false)
	default:
		p.text(toldLine, m.Content, maxSaid, false)
	}
}

// decision shows what was not let run; why, the model is told next.
func (p *follow) decision(d trajectories.Decision) {
	if d.Action == trajectories.Allow {
		return
	}
	p.text(ranLine, "$ "+d.Command, maxRan, false)
	p.add(toldLine, "not let run, by "+strings.TrimSpace(d.By+" "+d.Rule))
}

func (p *follow) execution(x trajectories.Execution) {
	prompt := "$ "
	if x.Person {
		prompt = "the user: $ "
	}
	p.text(ranLine, prompt+x.Command, maxRan, false)
	p.text(outputLine, string(x.Output), maxOutput, true)
	end := fmt.Sprintf("exit %d", x.ExitCode)
	if x.TimedOut {
		end = "timeout"
	}
	p.add(toldLine, fmt.Sprintf("%s after %s", end, clock(time.Duration(x.Duration))))
}

// text shows the first lines of a text, or its last.
func (p *follow) text(kind lineKind, text string, most int, last bool) {
	if len(text) > maxForLines {
		if last {
			text = text[len(text)-maxForLines:]
		} else {
			text = text[:maxForLines]
		}
	}
	text = strings.Trim(strings.ReplaceAll(ansi.Strip(text), "\r\n", "\n"), "\n")
	if strings.TrimSpace(text) == "" {
		return
	}
	lines := strings.Split(text, "\n")
	left := len(lines) - most
	if left > 0 && last {
		p.add(toldLine, fmt.Sprintf("%s %d lines before", ellipsis, left))
		lines = lines[left:]
	}
	for _, l := range lines[:min(len(lines), most)] {
		l = strings.TrimRight(l, "\r")
		p.add(kind, l[strings.LastIndexByte(l, '\r')+1:]) // as a terminal would show it
	}
	if left > 0 && !last {
		p.add(toldLine, fmt.Sprintf("%s %d more lines", ellipsis, left))
	}
}

func (p *follow) add(kind lineKind, text string) {
	if p.up > 0 {
		p.up++ // what is looked at stays
	}
	p.lines = append(p.lines, followed{kind, clean(strings.ReplaceAll(text, "\t", followedTabs))})
	if over := len(p.lines) - maxFollowed; over > 0 {
		p.lines = append(p.lines[:0], p.lines[over:]...)
	}
}

// scroll moves the pane; its end is where it grows.
func (p *follow) scroll(key string, page int) {
	end := max(0, len(p.lines)-page)
	top := max(0, end-p.up)
	top = max(0, min(scrolled(key, top, page-1, end), end))
	p.up = end - top
}

// followRoom is how many lines of a pane are for the attempt.
func (f frame) followRoom() int { return max(0, f.height-3) }

// draw is the pane on the whole screen.
func (p *follow) draw(f frame, w *worker, footer string) string {
	lines := make([]string, 0, f.height)
	title := fmt.Sprintf(" %s · attempt %d", clean(p.pick.who), p.pick.attempt)
	lines = append(lines, bold(cut(beside(title, p.now(f, w)+" ", f.width), f.width)))
	room := f.followRoom()
	end := max(0, len(p.lines)-p.up)
	for _, l := range p.lines[max(0, end-room):end] {
		lines = append(lines, l.draw(f.width))
	}
	if len(p.lines) == 0 {
		lines = append(lines, faint(cut(" nothing is there yet", f.width)))
	}
	for len(lines) < f.height-2 {
		lines = append(lines, "")
	}
	lines = lines[:max(0, min(len(lines), f.height-2))]
	if f.height >= 2 {
		lines = append(lines, p.running(f, w))
	}
	return strings.Join(append(lines, footer), "\n")
}

// now is what the attempt is in the middle of.
func (p *follow) now(f frame, w *worker) string {
	if w == nil {
		return "not running"
	}
	text := fmt.Sprintf("%s %s", w.phase, short(f.now.Sub(w.since)))
	if cost := dollars(w.cost); cost != "" {
		text += "  " + cost
	}
	return text
}

// running is the command that runs, of which the journal has nothing yet.
func (p *follow) running(f frame, w *worker) string {
	switch {
	case p.failed != "":
		return coloured(yellow, cut(" "+clean(p.failed), f.width))
	case w != nil && w.current && w.phase == runner.Running:
		return coloured(green, cut(" $ "+clean(w.command), f.width))
	}
	return ""
}

func (l followed) draw(w int) string {
	switch l.kind {
	case headLine:
		return faint(cut(" "+l.text+" "+strings.Repeat("─", max(0, w-2-width(l.text))), w))
	case saidLine:
		return cut(" "+l.text, w)
	case ranLine:
		return coloured(cyan, cut(" "+l.text, w))
	case toldLine:
		return faint(cut(" "+l.text, w))
	}
	return cut("   "+l.text, w)
}
