package live

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/ui/ask"
	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/cmd/mini/internal/ui/terminal"
	"github.com/minibench/mini/internal/table"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/runner/verdicts"
)

// Title describes the run. Its texts are untrusted.
type Title struct {
	Dataset, Model, Folder string
	HasVerdicts            bool // evaluations run along with the attempts
}

// frame holds everything that drawing a screen needs besides the board.
type frame struct {
	title         Title
	width, height int
	top           int // first visible row of the table
	now           time.Time
	hint          string // the result of the last key
	selected      string // name of the selected instance
	killTarget    string // name of the instance to kill after confirmation
	resources     resources
}

// layout says which lines are shown, and how many rows of the table and the log. It depends only
// on the screen size, the number of workers and the title, so that lines stay in place during a
// run.
type layout struct {
	folder, outcomes, verdicts, status, blankLines bool
	rows, log                                      int
}

// layout returns the layout for a number of workers.

func (f frame) layout(workers int) layout {
	remaining := f.height - 3 // title, bar, footer
	l := layout{
		folder: remaining >= 11, outcomes: remaining >= 5, verdicts: f.title.HasVerdicts && remaining >= 6,
		status: f.hasStatusLine(), blankLines: remaining >= 15,
	}
	for _, line := range []bool{l.folder, l.outcomes, l.verdicts, l.status, l.blankLines, l.blankLines} {
		if line {
			remaining--
		}
	}
	if remaining >= 3 {
		remaining-- // the table header
	}
	if remaining >= 8 {
		l.log = min(remaining/3, 10)
	}
	l.rows = max(0, min(workers, remaining-l.log))
	if rest := remaining - l.rows; l.log > 0 || rest >= 3 {
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
	layout := f.layout(len(b.Workers))
	lines := make([]string, 0, f.height)
	add := func(s ...string) { lines = append(lines, s...) }

	add(b.titleLine(f))
	if layout.folder {
		add(b.subtitleLine(f))
	}
	if layout.blankLines {
		add("")
	}
	add(b.progressLine(f))
	if layout.outcomes {
		add(b.outcomesLine(f))
	}
	if layout.verdicts {
		add(b.verdictsLine(f))
	}
	if layout.status {
		add(b.statusLine(f, f.resources))
	}
	if layout.blankLines {
		add("")
	}
	add(b.tableLines(f, layout)...)
	add(b.latestLines(f, layout.log)...)
	for len(lines) < f.height-1 {
		add("")
	}
	lines = lines[:max(0, min(len(lines), f.height-1))]
	if f.width < minWidth { // too narrow for the columns
		for i, line := range lines {
			lines[i] = terminal.Truncate(line, f.width)
		}
	}
	return strings.Join(append(lines, b.footer(f, layout)), "\n")
}

func (b *board) titleLine(f frame) string {
	parts := []string{"mini bench"}
	for _, s := range []string{f.title.Dataset, f.title.Model} {
		if s != "" {
			parts = append(parts, sanitizeLine(s))
		}
	}
	elapsed := unit.Duration(f.now.Sub(b.Started).Truncate(time.Second))
	text := terminal.JoinEnds(" "+strings.Join(parts, " · "), elapsed+" ", f.width)
	return steps.Bold(text)
}

func (b *board) subtitleLine(f frame) string {
	var parts []string
	if b.Skipped > 0 {
		parts = append(parts, fmt.Sprintf("%d had a result", b.Skipped))
	}
	parts = append(parts, text.Count(len(b.Workers), "worker")+" ")
	return steps.Faint(terminal.JoinEnds(" "+sanitizeLine(f.title.Folder), strings.Join(parts, " · "), f.width))
}

// progressLine shows the progress, rate, remaining time and cost.
func (b *board) progressLine(f frame) string {
	total := strconv.Itoa(b.Total)
	// Fixed widths keep the length of the bar constant.
	parts := []string{terminal.PadLeft(strconv.Itoa(b.Done), len(total)) + "/" + total}
	rate, timeLeft := b.perHour(f.now), b.timeLeft(f.now)
	eta := ""
	if timeLeft >= 0 {
		eta = "ETA " + unit.Duration(timeLeft)
	}
	parts = append(parts, terminal.PadLeft(formatRate(rate), 7), terminal.PadLeft(eta, 10))
	cost := formatDollars(b.Spent)
	if b.Unpriced {
		cost = strings.TrimPrefix(cost+"+?", "+")
	}
	if cost != "" {
		parts = append(parts, terminal.PadLeft(cost, 8))
	}
	for len(parts) > 1 && f.width < 14+terminal.Width(strings.Join(parts, "  ")) {
		parts = parts[:len(parts)-1]
	}
	text := strings.Join(parts, "  ")
	room := f.width - 4 - terminal.Width(text)
	if room < 3 {
		return terminal.Truncate(" "+text, f.width)
	}
	filled := 0
	if b.Total > 0 {
		filled = room * min(b.Done, b.Total) / b.Total
	}
	bar := steps.Coloured(ansi.Green, strings.Repeat("━", filled)) + steps.Faint(strings.Repeat("─", room-filled))
	return " " + bar + "  " + text
}

// outcomesLine counts the finished instances by outcome class.
func (b *board) outcomesLine(f frame) string {
	line := countLine{room: f.width - 2}
	for _, c := range classOrder {
		if n := b.Classes[c]; n > 0 {
			line.add(fmt.Sprintf("%d %s", n, c), func(s string) string { return steps.Coloured(steps.ClassColour(c), s) })
		}
	}
	if b.Retries > 0 {
		line.add(fmt.Sprintf("%d retried", b.Retries), steps.Faint)
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
		if n := b.Verdicts[c]; n > 0 {
			line.add(fmt.Sprintf("%d %s", n, strings.ReplaceAll(string(c), "_", " ")),
				func(s string) string { return steps.Coloured(steps.VerdictColour(c), s) })
		}
	}
	if n := len(b.Evaluating); n > 0 {
		line.add(fmt.Sprintf("%d evaluating", n), steps.Faint)
	}
	if line.used == 0 {
		line.add("no verdict yet", steps.Faint)
	}
	return line.String()
}

// countLine builds a line of counts. It drops the first count that does not fit, and all after it.
type countLine struct {
	room, used int // columns
	text       string
	full       bool
}

func (c *countLine) add(s string, style func(string) string) {
	separator := "   "
	if c.used == 0 {
		separator = " "
	}
	width := terminal.Width(s) + len(separator)
	if c.full = c.full || c.used+width > c.room; c.full {
		return
	}
	c.text, c.used = c.text+separator+style(s), c.used+width
}

func (c *countLine) String() string {
	if c.full {
		return c.text + " " + terminal.Ellipsis
	}
	return c.text
}

func (b *board) footer(f frame, l layout) string {
	keys := f.keyHints()
	if len(b.Workers) > l.rows {
		top := f.clamp(f.top, len(b.Workers))
		keys = fmt.Sprintf("↑↓ %d-%d of %d   ", top+1, top+l.rows, len(b.Workers)) + keys
	}
	switch {
	case f.killTarget != "":
		return f.killQuestion()
	case f.hint != "":
		return steps.Coloured(ansi.Yellow, terminal.Truncate(" "+sanitizeLine(f.hint), f.width))
	case b.message != "":
		return steps.Coloured(ansi.Yellow, terminal.Truncate(" "+sanitizeLine(b.message), f.width))
	}
	return steps.Faint(terminal.Truncate(" "+keys, f.width))
}

// killQuestion asks to confirm a kill.
func (f frame) killQuestion() string {
	rest := ask.YesNoPrompt("?", false) + "   y kills it, any other key does not"
	name := table.TruncateMiddle(sanitizeLine(f.killTarget), max(8, f.width-len(" kill ")-len(rest)))
	return steps.Coloured(ansi.Yellow, terminal.Truncate(" kill "+name+rest, f.width))
}

// keyHints returns the most important keys.
func (f frame) keyHints() string {
	if f.selected != "" {
		return "f follow   R requeue   K kill   Ctrl-C stops   ? help"
	}
	return "Ctrl-C stops   p pause   D drain   j k choose   ? help"
}

// clamp limits the first visible row of the table, so that the visible rows exist.
func (f frame) clamp(top, workers int) int {
	return max(0, min(top, workers-f.layout(workers).rows))
}
