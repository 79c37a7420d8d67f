package screen

import (
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/chat"
	"github.com/minibench/mini/cmd/mini/internal/safe"
	tty "github.com/minibench/mini/cmd/mini/internal/screen"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/trajectories/timeline"
)

// part of the status line. Where there is no room, those of the highest rank go
// first.
type part struct {
	rank  int
	text  string // as it is measured
	style func(string) string
	short string // in place of text, before a part is left out
}

// between stands between two parts.
const between = " · "

// statusLine is the line that is always there, in at most w columns. asked says
// that the person is waited for, since when what goes on has been going on.
func statusLine(s chat.State, asked bool, since, now time.Time, w int) string {
	parts := []part{
		busyPart(s, asked, since, now),
		{rank: 3, text: s.Mode.String(), style: modeStyle(s.Mode)},
		{rank: 8, text: safe.Line(bounded(s.Model[strings.LastIndexByte(s.Model, '/')+1:], 200)), style: faint},
		stepPart(s),
		costPart(s),
		{rank: 6, text: tokenText(s), style: faint},
		{rank: 5, text: timeText(s, now), style: faint},
	}
	parts = fitting(parts, w)
	var b strings.Builder
	for i, p := range parts {
		if i > 0 {
			b.WriteString(faint(between))
		}
		b.WriteString(p.style(p.text))
	}
	return b.String()
}

// fitting leaves parts out until the others have room, at last by cutting.
func fitting(parts []part, w int) []part {
	kept := parts[:0:0]
	for _, p := range parts {
		if p.text != "" {
			kept = append(kept, p)
		}
	}
	for {
		total, worst, long := 0, 0, -1
		for i, p := range kept {
			if p.short != "" && (long < 0 || p.rank > kept[long].rank) {
				long = i
			}
			total += tty.Width(p.text)
			if i > 0 {
				total += len([]rune(between))
			}
			if p.rank > kept[worst].rank {
				worst = i
			}
		}
		switch {
		case total <= w || len(kept) == 0:
			return kept
		case len(kept) == 1:
			kept[0].text = tty.Cut(kept[0].text, w)
			return kept
		case kept[worst].rank == 8 && total-w <= tty.Width(kept[worst].text)-minModel: // a part of a name says something
			kept[worst].text = tty.Cut(kept[worst].text, tty.Width(kept[worst].text)-(total-w))
			return kept
		case kept[worst].rank < 5 && long >= 0:
			kept[long].text, kept[long].short = kept[long].short, ""
			continue
		}
		kept = append(kept[:worst], kept[worst+1:]...)
	}
}

// minModel is the shortest that the name of a model is cut to.
const minModel = 10

func busyPart(s chat.State, asked bool, since, now time.Time) part {
	switch {
	case asked:
		return part{rank: 1, text: "● your turn", style: colour(yellow)}
	case s.Busy == "":
		return part{rank: 1, text: "● ready", style: colour(green)}
	}
	text := "● " + safe.Line(bounded(s.Busy, 40))
	if d := now.Sub(since); !since.IsZero() && d >= time.Second {
		text += " " + timeline.Clock(d)
	}
	return part{rank: 1, text: text, style: colour(cyan)}
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

func stepPart(s chat.State) part {
	p := part{rank: 4, text: "step " + strconv.Itoa(s.Step), style: plain}
	if s.StepLimit > 0 {
		p.short = p.text
		p.text += "/" + strconv.Itoa(s.StepLimit)
		if s.Step*5 >= s.StepLimit*4 {
			p.style = colour(yellow)
		}
	}
	return p
}

func costPart(s chat.State) part {
	p := part{rank: 2, text: report.Spent(s.Cost, !s.Unpriced), style: plain}
	if p.text == "-" {
		p.text = "$0.00"
	}
	if s.CostLimit > 0 {
		p.short = p.text
		p.text += " of " + strings.TrimSuffix(report.Spent(costOf(s.CostLimit), true), ".00")
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
	return "↑" + chat.Tokens(s.Usage.Prompt) + " ↓" + chat.Tokens(s.Usage.Completion)
}

func timeText(s chat.State, now time.Time) string {
	if s.Started.IsZero() {
		return ""
	}
	return timeline.Clock(now.Sub(s.Started))
}
