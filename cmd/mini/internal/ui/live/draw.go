package live

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/ui/ask"
	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/internal/table"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories/timeline"
)

// Title describes the run. Its texts are untrusted.
type Title struct {
	Dataset, Model, Folder string
	HasVerdicts            bool // evaluations run along with the attempts
}

// frame holds the drawing parameters besides the board.
type frame struct {
	title         Title
	width, height int
	top           int // first visible row
	now           time.Time
	hint          string // the result of the last key
	selected      string // name of the selected instance
	killTarget    string // name of the instance to kill after confirmation
	resources     resources
}

// layout says which lines are shown and how many. It depends only on the screen size, the
// number of workers and the title, so that lines stay in place during a run.
type layout struct {
	folder, classes, verdicts, status, gaps bool
	rows, log                               int
}

func (f frame) layout(workers int) layout {
	h := f.height - 3 // title, bar, footer
	l := layout{folder: h >= 11, classes: h >= 5, verdicts: f.title.HasVerdicts && h >= 6, status: f.hasStatusLine(), gaps: h >= 15}
	for _, line := range []bool{l.folder, l.classes, l.verdicts, l.status, l.gaps, l.gaps} {
		if line {
			h--
		}
	}
	if h >= 3 {
		h-- // the table header
	}
	if h >= 8 {
		l.log = min(h/3, 10)
	}
	l.rows = max(0, min(workers, h-l.log))
	if rest := h - l.rows; l.log > 0 || rest >= 3 {
		l.log = rest
	}
	return l
}

// hasStatusLine reports whether the screen has room for the status line.
func (f frame) hasStatusLine() bool { return f.height >= 10 }

// minWidth is the width below which all lines are truncated.
const minWidth = 36

// draw renders the screen: exactly f.height lines, none wider than f.width.
func (b *board) draw(f frame) string {
	l := f.layout(len(b.workers))
	lines := make([]string, 0, f.height)
	add := func(s ...string) { lines = append(lines, s...) }

	add(b.titleLine(f))
	if l.folder {
		add(b.subtitleLine(f))
	}
	if l.gaps {
		add("")
	}
	add(b.progressLine(f))
	if l.classes {
		add(b.outcomesLine(f))
	}
	if l.verdicts {
		add(b.verdictsLine(f))
	}
	if l.status {
		add(b.statusLine(f, f.resources))
	}
	if l.gaps {
		add("")
	}
	add(b.tableLines(f, l)...)
	add(b.latestLines(f, l.log)...)
	for len(lines) < f.height-1 {
		add("")
	}
	lines = lines[:max(0, min(len(lines), f.height-1))]
	if f.width < minWidth { // too narrow for the columns
		for i, l := range lines {
			lines[i] = truncate(l, f.width)
		}
	}
	return strings.Join(append(lines, b.footer(f, l)), "\n")
}

func (b *board) titleLine(f frame) string {
	parts := []string{"mini bench"}
	for _, s := range []string{f.title.Dataset, f.title.Model} {
		if s != "" {
			parts = append(parts, sanitizeLine(s))
		}
	}
	elapsed := timeline.FormatDuration(f.now.Sub(b.start))
	text := joinEnds(" "+strings.Join(parts, " · "), elapsed+" ", f.width)
	return steps.Bold(text)
}

func (b *board) subtitleLine(f frame) string {
	var more []string
	if b.skipped > 0 {
		more = append(more, fmt.Sprintf("%d had a result", b.skipped))
	}
	more = append(more, text.Count(len(b.workers), "worker")+" ")
	return steps.Faint(joinEnds(" "+sanitizeLine(f.title.Folder), strings.Join(more, " · "), f.width))
}

// progressLine shows the progress, rate, remaining time and cost.
func (b *board) progressLine(f frame) string {
	total := strconv.Itoa(b.total)
	// Fixed widths keep the length of the bar constant.
	facts := []string{padLeft(strconv.Itoa(b.done), len(total)) + "/" + total}
	rate, left := b.perHour(f.now), b.timeLeft(f.now)
	eta := ""
	if left >= 0 {
		eta = "ETA " + formatCoarse(left)
	}
	facts = append(facts, padLeft(formatRate(rate), 7), padLeft(eta, 10))
	cost := formatDollars(b.spent())
	if b.unpriced {
		cost = strings.TrimPrefix(cost+"+?", "+")
	}
	if cost != "" {
		facts = append(facts, padLeft(cost, 8))
	}
	for len(facts) > 1 && f.width < 14+width(strings.Join(facts, "  ")) {
		facts = facts[:len(facts)-1]
	}
	text := strings.Join(facts, "  ")
	room := f.width - 4 - width(text)
	if room < 3 {
		return truncate(" "+text, f.width)
	}
	full := 0
	if b.total > 0 {
		full = room * min(b.done, b.total) / b.total
	}
	return " " + steps.Coloured(ansi.Green, strings.Repeat("━", full)) + steps.Faint(strings.Repeat("─", room-full)) + "  " + text
}

// outcomesLine counts the finished instances by outcome class.
func (b *board) outcomesLine(f frame) string {
	line := countLine{room: f.width - 2}
	for _, c := range classOrder {
		if n := b.classCounts[c]; n > 0 {
			line.add(fmt.Sprintf("%d %s", n, c), func(s string) string { return steps.Coloured(steps.ClassColour(c), s) })
		}
	}
	if b.retries > 0 {
		line.add(fmt.Sprintf("%d retried", b.retries), steps.Faint)
	}
	if line.used == 0 {
		line.add("no instance has ended yet", steps.Faint)
	}
	return line.String()
}

// verdictsLine counts the evaluated instances by verdict.
func (b *board) verdictsLine(f frame) string {
	line := countLine{room: f.width - 2}
	for _, c := range verdicts.Classes() {
		if n := b.verdictCounts[c]; n > 0 {
			line.add(fmt.Sprintf("%d %s", n, strings.ReplaceAll(string(c), "_", " ")), func(s string) string { return steps.Coloured(steps.VerdictColour(c), s) })
		}
	}
	if n := len(b.evaluating); n > 0 {
		line.add(fmt.Sprintf("%d evaluating", n), steps.Faint)
	}
	if line.used == 0 {
		line.add("no verdict yet", steps.Faint)
	}
	return line.String()
}

// countLine builds a line of counts, as many as fit.
type countLine struct {
	room, used int
	text       string
	full       bool
}

func (c *countLine) add(s string, style func(string) string) {
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

func (c *countLine) String() string {
	if c.full {
		return c.text + " " + ellipsis
	}
	return c.text
}

func (b *board) footer(f frame, l layout) string {
	keys := f.keyHints()
	if len(b.workers) > l.rows {
		top := f.clamp(f.top, len(b.workers))
		keys = fmt.Sprintf("↑↓ %d-%d of %d   ", top+1, top+l.rows, len(b.workers)) + keys
	}
	switch {
	case f.killTarget != "":
		return f.killQuestion()
	case f.hint != "":
		return steps.Coloured(ansi.Yellow, truncate(" "+sanitizeLine(f.hint), f.width))
	case b.message != "":
		return steps.Coloured(ansi.Yellow, truncate(" "+sanitizeLine(b.message), f.width))
	}
	return steps.Faint(truncate(" "+keys, f.width))
}

// killQuestion asks to confirm a kill.
func (f frame) killQuestion() string {
	rest := ask.YesNoPrompt("?", false) + "   y kills it, any other key does not"
	return steps.Coloured(ansi.Yellow, truncate(" kill "+table.TruncateMiddle(sanitizeLine(f.killTarget), max(8, f.width-len(" kill ")-len(rest)))+rest, f.width))
}

// keyHints returns the most important keys.
func (f frame) keyHints() string {
	if f.selected != "" {
		return "f follow   R requeue   K kill   Ctrl-C stops   ? help"
	}
	return "Ctrl-C stops   p pause   D drain   j k choose   ? help"
}

// clamp limits the first visible row to the rows there are.
func (f frame) clamp(top, workers int) int {
	return max(0, min(top, workers-f.layout(workers).rows))
}
