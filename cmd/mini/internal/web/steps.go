package web

import (
	"html/template"
	"strconv"
	"strings"
	"time"

	"github.com/minibench/mini/cmd/mini/internal/web/markup"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/trajectories/timeline"
)

// chunkSize is the number of steps that are loaded together: less than 400 KB of typical steps.
const chunkSize = 64

// foldLines is the number of lines that a folded text shows at its start and at its end.
const foldLines = 20

// maxItem bounds the text of an item on a page, in bytes. The raw text is complete.
const maxItem = 256 << 10

// stepView is a step of an attempt, ready for the templates.
type stepView struct {
	Name   string // "0" for the prompts, "end", or the number
	Title  string
	Time   time.Time
	Failed bool
	Exit   string
	Stats  []string
	Items  []itemView
	Line   string // first line of the command, for the outline
	// Break is set at the first step of each list of the outline but the first. The browser draws
	// those lists that are seen.
	Break bool
}

// itemView is an element of a step.
type itemView struct {
	Kind   string // class of the style sheet
	Label  string
	Fold   markup.Fold
	Cut    int // bytes that the page does not show
	Number int // of the item in its step, for the address of the raw text
	Closed bool
	Mono   bool // in a font of equal widths
}

// stepName returns the name of a step in addresses.
func stepName(s *timeline.Step) string {
	if s.Name == timeline.EndStep {
		return "end"
	}
	return strconv.Itoa(s.Number)
}

// newStepView renders a step. It marks hits of a search for q.
func newStepView(t *timeline.Timeline, s *timeline.Step, q string) stepView {
	v := stepView{Name: stepName(s), Time: s.Time, Failed: s.Failed, Stats: t.StepStats(s), Line: outlineOf(s)}
	switch {
	case s.Name == timeline.EndStep:
		v.Title = "End"
	case s.Number == 0:
		v.Title = "Prompts"
	default:
		v.Title = "Step " + v.Name
	}
	number := 0
	for item := range s.AllItems() {
		v.Items = append(v.Items, newItemView(item, number, q))
		number++
	}
	return v
}

func newItemView(item *timeline.Item, number int, q string) itemView {
	v := itemView{Kind: string(item.Kind), Label: text.Clip(text.Printable(item.Label), 400), Number: number}
	o := markup.Options{Limit: maxItem, Query: q}
	var b markup.Block
	switch item.Kind {
	case timeline.Output:
		v.Mono = true
		b = markup.Output(item.Text, o)
	case timeline.Patch:
		v.Mono = true
		b = markup.Diff(item.Text, o)
	case timeline.Reply, timeline.Reasoning, timeline.Message:
		b = markup.Prose(item.Text, o)
	default:
		v.Mono = item.Kind == timeline.Command
		b = markup.Text(item.Text, o)
	}
	v.Fold, v.Cut = b.Fold(foldLines), b.Omitted()
	v.Closed = item.Kind == timeline.Message && strings.HasSuffix(item.Label, " prompt")
	if v.Closed {
		v.Fold = markup.Fold{Head: b.HTML()}
	}
	return v
}

// itemText returns the text of the item of a step with this number.
func itemText(s *timeline.Step, number int) (string, bool) {
	i := 0
	for item := range s.AllItems() {
		if i == number {
			return item.Text, true
		}
		i++
	}
	return "", false
}

// outlineOf returns a line about a step: its command, or the start of its reply.
func outlineOf(s *timeline.Step) string {
	line := ""
	for _, item := range s.Items {
		if item.Kind == timeline.Command {
			line = item.Text
			break
		}
		if line == "" && item.Kind != timeline.Note {
			line = item.Text
		}
	}
	return text.ClipRunes(text.Printable(text.FirstLine(strings.TrimSpace(line))), 80)
}

// chunk is a range of the steps of an attempt. A chunk that is not Loaded has only the number of
// its lines.
type chunk struct {
	From, To int // index of the first step, and of the one after the last
	First    string
	Last     string
	Lines    int
	Loaded   bool
	Steps    []stepView
}

// newChunk returns the steps [from, to) of an attempt.
func newChunk(t *timeline.Timeline, from, to int, loaded bool, q string) chunk {
	steps := t.AllSteps()
	from, to = max(from, 0), min(to, len(steps))
	c := chunk{From: from, To: to, Loaded: loaded}
	if from >= to {
		return c
	}
	c.First, c.Last = stepName(steps[from]), stepName(steps[to-1])
	for _, s := range steps[from:to] {
		if loaded {
			c.Steps = append(c.Steps, newStepView(t, s, q))
		}
		c.Lines += linesOf(s)
	}
	return c
}

// linesOf estimates the number of lines of a step on a page.
func linesOf(s *timeline.Step) int {
	n := 3
	for item := range s.AllItems() {
		n += 1 + min(strings.Count(item.Text, "\n")+1, 2*foldLines)
	}
	return n
}

// indexOf returns the index of a step by its name; false if there is none.
func indexOf(t *timeline.Timeline, name string) (int, bool) {
	n, err := strconv.Atoi(name)
	switch {
	case name == "end" && t.End != nil:
		return len(t.Steps), true
	case err != nil || n < 0 || n >= len(t.Steps):
		return 0, false
	}
	return n, true
}

// plain renders an untrusted line, such as an id or a name.
func plain(s string) template.HTML { return markup.Line(s) }
