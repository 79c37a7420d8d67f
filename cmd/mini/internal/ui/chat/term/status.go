package term

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/ui/chat"
	tty "github.com/minibench/mini/cmd/mini/internal/ui/terminal"
	"github.com/minibench/mini/internal/sanitize"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/trajectories/timeline"
)

// statusPart is a part of the status line. If the line is too long, parts with the highest
// rank are dropped first.
type statusPart struct {
	rank  int
	text  string // without style
	style func(string) string
	short string // replaces text before parts are dropped
}

// separator separates two parts.
const separator = " · "

// statusLine renders the status line in at most w columns. asked means that a question is
// open; since is the start of the current activity.
func statusLine(s chat.State, asked bool, since, now time.Time, w int) string {
	parts := []statusPart{
		busyPart(s, asked, since, now),
		{rank: 3, text: s.Mode.String(), style: modeStyle(s.Mode)},
		{rank: 8, text: sanitize.Line(clip(s.Model[strings.LastIndexByte(s.Model, '/')+1:], 200)), style: faint},
		stepPart(s),
		costPart(s),
		{rank: 6, text: tokenText(s), style: faint},
		{rank: 5, text: timeText(s, now), style: faint},
	}
	parts = fitParts(parts, w)
	var b strings.Builder
	for i, p := range parts {
		if i > 0 {
			b.WriteString(faint(separator))
		}
		b.WriteString(p.style(p.text))
	}
	return b.String()
}

// fitParts drops parts until the rest fits, and truncates the last one if needed.
func fitParts(parts []statusPart, w int) []statusPart {
	parts = slices.DeleteFunc(parts, func(p statusPart) bool { return p.text == "" })
	for partsWidth(parts) > w && len(parts) > 1 {
		dropped := 0
		for i, p := range parts {
			if p.rank > parts[dropped].rank {
				dropped = i
			}
		}
		shortenable := slices.IndexFunc(parts, func(p statusPart) bool { return p.short != "" })
		if parts[dropped].rank < 5 && shortenable >= 0 {
			parts[shortenable].text, parts[shortenable].short = parts[shortenable].short, ""
			continue
		}
		parts = slices.Delete(parts, dropped, dropped+1)
	}
	parts[0].text = tty.Truncate(parts[0].text, w)
	return parts
}

// partsWidth returns the width of parts with separators.
func partsWidth(parts []statusPart) int {
	sum := (len(parts) - 1) * tty.Width(separator)
	for _, p := range parts {
		sum += tty.Width(p.text)
	}
	return sum
}

func busyPart(s chat.State, asked bool, since, now time.Time) statusPart {
	switch {
	case asked:
		return statusPart{rank: 1, text: "● your turn", style: colour(yellow)}
	case s.Activity == "":
		return statusPart{rank: 1, text: "● ready", style: colour(green)}
	}
	text := "● " + sanitize.Line(clip(s.Activity, 40))
	if d := now.Sub(since); !since.IsZero() && d >= time.Second {
		text += " " + timeline.FormatDuration(d)
	}
	return statusPart{rank: 1, text: text, style: colour(cyan)}
}

func colour(c ansi.Color) func(string) string {
	return func(s string) string { return coloured(c, s) }
}

func modeStyle(m chat.Mode) func(string) string {
	switch m {
	case chat.Yolo:
		return colour(magenta)
	case chat.Human:
		return colour(blue)
	}
	return plain
}

func stepPart(s chat.State) statusPart {
	p := statusPart{rank: 4, text: "step " + strconv.Itoa(s.Step), style: plain}
	if s.StepLimit > 0 {
		p.short = p.text
		p.text += "/" + strconv.Itoa(s.StepLimit)
		if s.Step*5 >= s.StepLimit*4 {
			p.style = colour(yellow)
		}
	}
	return p
}

func costPart(s chat.State) statusPart {
	p := statusPart{rank: 2, text: report.CostText(s.Cost, !s.Unpriced), style: plain}
	if p.text == "-" {
		p.text = "$0.00"
	}
	if s.CostLimit > 0 {
		p.short = p.text
		p.text += " of " + strings.TrimSuffix(report.CostText(dollars(s.CostLimit), true), ".00")
		if float64(s.Cost) >= 0.8*s.CostLimit {
			p.style = colour(yellow)
		}
	}
	return p
}

func tokenText(s chat.State) string {
	if s.Usage.Prompt == 0 && s.Usage.Completion == 0 {
		return ""
	}
	return "↑" + timeline.FormatCount(s.Usage.Prompt) + " ↓" + timeline.FormatCount(s.Usage.Completion)
}

func timeText(s chat.State, now time.Time) string {
	if s.Started.IsZero() {
		return ""
	}
	return timeline.FormatDuration(now.Sub(s.Started))
}
