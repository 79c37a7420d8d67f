package term

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/ui/chat"
	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	tty "github.com/minibench/mini/cmd/mini/internal/ui/terminal"
	"github.com/minibench/mini/internal/sanitize"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
)

// statusPart is a part of the status line. If the line is too long, the parts with the highest
// rank are dropped first; rank 1 is the most important.
type statusPart struct {
	rank      int
	text      string // without style
	style     func(string) string
	shortText string // shorter text, used before important parts are dropped; may be empty
}

// separator separates two parts.
const separator = " · "

// statusLine renders the status line in at most w columns.
func statusLine(s chat.State, questionOpen bool, activityStart, now time.Time, w int) string {
	parts := []statusPart{
		activityPart(s, questionOpen, activityStart, now),
		{rank: 3, text: s.Mode.String(), style: modeStyle(s.Mode)},
		{rank: 8, text: sanitize.Line(text.Clip(s.Model[strings.LastIndexByte(s.Model, '/')+1:], 200)), style: steps.Faint},
		stepPart(s),
		costPart(s),
		{rank: 6, text: tokenText(s), style: steps.Faint},
		{rank: 5, text: timeText(s, now), style: steps.Faint},
	}
	parts = fitParts(parts, w)
	var b strings.Builder
	for i, p := range parts {
		if i > 0 {
			b.WriteString(steps.Faint(separator))
		}
		b.WriteString(p.style(p.text))
	}
	return b.String()
}

// fitParts drops or shortens parts until the rest fits into w columns, and truncates the only
// part left if necessary. It drops unimportant parts, then shortens parts, then drops the others.
func fitParts(parts []statusPart, w int) []statusPart {
	parts = slices.DeleteFunc(parts, func(p statusPart) bool { return p.text == "" })
	for partsWidth(parts) > w && len(parts) > 1 {
		dropped := 0
		for i, p := range parts {
			if p.rank > parts[dropped].rank {
				dropped = i
			}
		}
		shortenable := slices.IndexFunc(parts, func(p statusPart) bool { return p.shortText != "" })
		if parts[dropped].rank < 5 && shortenable >= 0 {
			parts[shortenable].text, parts[shortenable].shortText = parts[shortenable].shortText, ""
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

func activityPart(s chat.State, questionOpen bool, activityStart, now time.Time) statusPart {
	switch {
	case questionOpen:
		return statusPart{rank: 1, text: "● your turn", style: steps.Colour(ansi.Yellow)}
	case s.Activity == "":
		return statusPart{rank: 1, text: "● ready", style: steps.Colour(ansi.Green)}
	}
	activity := "● " + sanitize.Line(text.Clip(s.Activity, 40))
	if elapsed := now.Sub(activityStart); !activityStart.IsZero() && elapsed >= time.Second {
		activity += " " + unit.Duration(elapsed.Truncate(time.Second))
	}
	return statusPart{rank: 1, text: activity, style: steps.Colour(ansi.Cyan)}
}

func modeStyle(m chat.Mode) func(string) string {
	switch m {
	case chat.Yolo:
		return steps.Colour(ansi.Magenta)
	case chat.Human:
		return steps.Colour(ansi.Blue)
	}
	return steps.Unstyled
}

func stepPart(s chat.State) statusPart {
	p := statusPart{rank: 4, text: "step " + strconv.Itoa(s.Step), style: steps.Unstyled}
	if s.StepLimit > 0 {
		p.shortText = p.text
		p.text += "/" + strconv.Itoa(s.StepLimit)
		if s.Step*5 >= s.StepLimit*4 {
			p.style = steps.Colour(ansi.Yellow)
		}
	}
	return p
}

func costPart(s chat.State) statusPart {
	p := statusPart{rank: 2, text: unit.Money(float64(s.Cost)), style: steps.Unstyled}
	switch {
	case s.Unpriced && s.Cost == 0:
		return statusPart{rank: 2, style: steps.Unstyled} // it is not known
	}
	if s.CostLimit > 0 {
		p.shortText = p.text
		p.text += " of " + unit.Money(s.CostLimit)
		if float64(s.Cost) >= 0.8*s.CostLimit {
			p.style = steps.Colour(ansi.Yellow)
		}
	}
	return p
}

func tokenText(s chat.State) string {
	if s.Usage.Prompt == 0 && s.Usage.Completion == 0 {
		return ""
	}
	return "↑" + unit.Count(s.Usage.Prompt) + " ↓" + unit.Count(s.Usage.Completion)
}

func timeText(s chat.State, now time.Time) string {
	if s.Started.IsZero() {
		return ""
	}
	return unit.Duration(now.Sub(s.Started).Truncate(time.Second))
}
