package tui

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/ask"
	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories/timeline"
)

// Title says what is run. Its texts may be foreign.
type Title struct {
	Dataset, Model, Folder string
	Judged                 bool // verdicts come while it runs
}

// frame is what a screen is drawn from besides the board.
type frame struct {
	title         Title
	width, height int
	top           int // first row shown
	now           time.Time
	hint          string // what the last key led to
	picked        string // the instance they are about, with its sample
	asked         string // the one that is killed with y
	around        around
}

// layout is how many lines each part of the screen has. It follows from the
// size of the screen, the number of workers and the title alone, so that nothing
// moves while a run goes on.
type layout struct {
	folder, classes, verdicts, standing, gaps bool
	rows, notes                               int
}

func (f frame) layout(workers int) layout {
	h := f.height - 3 // title, bar, footer
	l := layout{folder: h >= 11, classes: h >= 5, verdicts: f.title.Judged && h >= 6, standing: f.stands(), gaps: h >= 15}
	for _, line := range []bool{l.folder, l.classes, l.verdicts, l.standing, l.gaps, l.gaps} {
		if line {
			h--
		}
	}
	if h >= 3 {
		h-- // the head of the columns
	}
	if h >= 8 {
		l.notes = min(h/3, 10)
	}
	l.rows = max(0, min(workers, h-l.notes))
	if rest := h - l.rows; l.notes > 0 || rest >= 3 {
		l.notes = rest
	}
	return l
}

// stands says that there is a line for what is around the run.
func (f frame) stands() bool { return f.height >= 10 }

// least is the width that every line is made for.
const least = 36

// draw is the whole screen: exactly the frame's height of lines, none wider
// than the frame.
func (b *board) draw(f frame) string {
	l := f.layout(len(b.workers))
	lines := make([]string, 0, f.height)
	add := func(s ...string) { lines = append(lines, s...) }

	add(b.head(f))
	if l.folder {
		add(b.subtitle(f))
	}
	if l.gaps {
		add("")
	}
	add(b.bar(f))
	if l.classes {
		add(b.outcomes(f))
	}
	if l.verdicts {
		add(b.verdicts(f))
	}
	if l.standing {
		add(b.standing(f, f.around))
	}
	if l.gaps {
		add("")
	}
	add(b.table(f, l)...)
	add(b.latest(f, l.notes)...)
	for len(lines) < f.height-1 {
		add("")
	}
	lines = lines[:max(0, min(len(lines), f.height-1))]
	if f.width < least { // the columns have no room
		for i, l := range lines {
			lines[i] = cut(l, f.width)
		}
	}
	return strings.Join(append(lines, b.footer(f, l)), "\n")
}

func (b *board) head(f frame) string {
	parts := []string{"mini bench"}
	for _, s := range []string{f.title.Dataset, f.title.Model} {
		if s != "" {
			parts = append(parts, clean(s))
		}
	}
	elapsed := timeline.Clock(f.now.Sub(b.start))
	text := beside(" "+strings.Join(parts, " · "), elapsed+" ", f.width)
	return steps.Bold(text)
}

func (b *board) subtitle(f frame) string {
	var more []string
	if b.skipped > 0 {
		more = append(more, fmt.Sprintf("%d had a result", b.skipped))
	}
	more = append(more, report.Count(len(b.workers), "worker")+" ")
	return steps.Faint(beside(" "+clean(f.title.Folder), strings.Join(more, " · "), f.width))
}

// bar is how far the run has come, and how fast.
func (b *board) bar(f frame) string {
	total := strconv.Itoa(b.total)
	// Each has its width from the start, so that the bar keeps its own.
	facts := []string{right(strconv.Itoa(b.done), len(total)) + "/" + total}
	rate, left := b.perHour(f.now), b.left(f.now)
	eta := ""
	if left >= 0 {
		eta = "ETA " + coarse(left)
	}
	facts = append(facts, right(hourly(rate), 7), right(eta, 10))
	cost := dollars(b.spent())
	if b.unpriced {
		cost = strings.TrimPrefix(cost+"+?", "+")
	}
	if cost != "" {
		facts = append(facts, right(cost, 8))
	}
	for len(facts) > 1 && f.width < 14+width(strings.Join(facts, "  ")) {
		facts = facts[:len(facts)-1]
	}
	text := strings.Join(facts, "  ")
	room := f.width - 4 - width(text)
	if room < 3 {
		return cut(" "+text, f.width)
	}
	full := 0
	if b.total > 0 {
		full = room * min(b.done, b.total) / b.total
	}
	return " " + steps.Coloured(ansi.Green, strings.Repeat("━", full)) + steps.Faint(strings.Repeat("─", room-full)) + "  " + text
}

// outcomes counts how the instances ended.
func (b *board) outcomes(f frame) string {
	line := counts{room: f.width - 2}
	for _, c := range classes {
		if n := b.classes[c]; n > 0 {
			line.add(fmt.Sprintf("%d %s", n, c), func(s string) string { return steps.Coloured(steps.ClassColour(c), s) })
		}
	}
	if b.again > 0 {
		line.add(fmt.Sprintf("%d tried again", b.again), steps.Faint)
	}
	if line.used == 0 {
		line.add("no instance has ended yet", steps.Faint)
	}
	return line.String()
}

// verdicts counts how the evaluations ended.
func (b *board) verdicts(f frame) string {
	line := counts{room: f.width - 2}
	for _, c := range verdicts.Classes() {
		if n := b.judged[c]; n > 0 {
			line.add(fmt.Sprintf("%d %s", n, strings.ReplaceAll(string(c), "_", " ")), func(s string) string { return steps.Coloured(steps.VerdictColour(c), s) })
		}
	}
	if n := len(b.judging); n > 0 {
		line.add(fmt.Sprintf("%d being judged", n), steps.Faint)
	}
	if line.used == 0 {
		line.add("no verdict yet", steps.Faint)
	}
	return line.String()
}

// counts is a line of numbers, as many as fit.
type counts struct {
	room, used int
	text       string
	full       bool
}

func (c *counts) add(s string, style func(string) string) {
	lead := "   "
	if c.used == 0 {
		lead = " "
	}
	w := width(s) + len(lead)
	if c.full = c.full || c.used+w > c.room; c.full {
		return
	}
	c.text, c.used = c.text+lead+style(s), c.used+w
}

func (c *counts) String() string {
	if c.full {
		return c.text + " " + ellipsis
	}
	return c.text
}

func (b *board) footer(f frame, l layout) string {
	keys := f.keys()
	if len(b.workers) > l.rows {
		top := f.clamp(f.top, len(b.workers))
		keys = fmt.Sprintf("↑↓ %d-%d of %d   ", top+1, top+l.rows, len(b.workers)) + keys
	}
	switch {
	case f.asked != "":
		return f.question()
	case f.hint != "":
		return steps.Coloured(ansi.Yellow, cut(" "+clean(f.hint), f.width))
	case b.said != "":
		return steps.Coloured(ansi.Yellow, cut(" "+clean(b.said), f.width))
	}
	return steps.Faint(cut(" "+keys, f.width))
}

// question asks whether an instance is to be killed.
func (f frame) question() string {
	rest := ask.Marked("?", false) + "   y kills it, any other key does not"
	return steps.Coloured(ansi.Yellow, cut(" kill "+report.Middle(clean(f.asked), max(8, f.width-len(" kill ")-len(rest)))+rest, f.width))
}

// keys are those that matter most.
func (f frame) keys() string {
	if f.picked != "" {
		return "f follow   R requeue   K kill   Ctrl-C stops   ? help"
	}
	return "Ctrl-C stops   p pause   D drain   j k choose   ? help"
}

// clamp keeps the first row shown where there are rows to show.
func (f frame) clamp(top, workers int) int {
	return max(0, min(top, workers-f.layout(workers).rows))
}
