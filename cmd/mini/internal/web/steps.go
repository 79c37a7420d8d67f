package web

import (
	"html/template"
	"slices"
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
	Line   string // what the step is about, for the outline
	// Command is the first command.
	Command string
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
func newStepView(a *attempt, s *timeline.Step, q string) stepView {
	v := stepView{Name: stepName(s), Time: s.Time, Failed: s.Failed, Stats: a.StepStats(s)}
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
		view := newItemView(item, number, q)
		if step, ok := a.repeats[item]; ok {
			view.Closed, view.Label = true, "the same output as in step "+step
		}
		v.Items = append(v.Items, view)
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
		if b = markup.Output(item.Text, o); isDiff(item.Text) {
			b = markup.Diff(item.Text, o)
		}
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

// isDiff reports whether an output has a diff without colours of its own.
func isDiff(output string) bool {
	return strings.Contains(output, "@@ -") && !strings.ContainsAny(output, "\x1b\r\b") &&
		(strings.Contains(output, "diff --git ") || strings.Contains(output, "--- ") && strings.Contains(output, "\n+++ "))
}

// minRepeat is the size from which an output that repeats an earlier one is folded, in bytes.
const minRepeat = 200

// findRepeats returns the outputs that are equal to an earlier one, with the name of its step.
func findRepeats(t *timeline.Timeline) map[*timeline.Item]string {
	repeats, first := map[*timeline.Item]string{}, map[string]string{}
	for _, s := range t.Steps {
		for item := range s.AllItems() {
			if item.Kind != timeline.Output || len(item.Text) < minRepeat {
				continue
			}
			if name, ok := first[item.Text]; ok {
				repeats[item] = name
			} else {
				first[item.Text] = stepName(s)
			}
		}
	}
	return repeats
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

// outlineOf returns a line about a step: the start of the thought or, without one, what its command
// does.
func outlineOf(s *timeline.Step) string {
	line := ""
	for _, item := range s.Items {
		own := strings.TrimSpace(item.Text)
		switch item.Kind {
		case timeline.Reply:
			own = strings.TrimSpace(strings.TrimPrefix(own, "THOUGHT:"))
		case timeline.Command:
			own = tellingLine(own)
		case timeline.Note, timeline.Reasoning:
			continue
		}
		if line = text.FirstLine(own); line != "" {
			break
		}
	}
	return text.ClipRunes(text.Printable(line), 80)
}

// commandOf returns the first command of a step.
func commandOf(s *timeline.Step) string {
	for _, item := range s.Items {
		if item.Kind == timeline.Command {
			return item.Text
		}
	}
	return ""
}

// tellingLine returns the first line of a command that says what it does, or its first line if
// there is none.
func tellingLine(command string) string {
	first := ""
	for line := range strings.Lines(command) {
		line = strings.TrimSpace(line)
		if cd, rest, ok := strings.Cut(line, "&&"); ok && strings.HasPrefix(cd, "cd ") {
			line = strings.TrimSpace(rest)
		}
		if first == "" {
			first = line
		}
		if line != "" && !isPreamble(line) {
			return line
		}
	}
	return first
}

// isPreamble reports whether a line of a command only prepares what follows it.
func isPreamble(line string) bool {
	for _, start := range []string{"#", "cd ", "set ", "export ", "import ", "from "} {
		if strings.HasPrefix(line, start) {
			return true
		}
	}
	program, _, _ := strings.Cut(line, " ")
	return strings.Contains(line, "<<") && slices.Contains([]string{"python", "python3", "bash", "sh", "node", "perl", "ruby"}, program)
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
func newChunk(a *attempt, from, to int, loaded bool, q string) chunk {
	steps := a.AllSteps()
	from, to = max(from, 0), min(to, len(steps))
	c := chunk{From: from, To: to, Loaded: loaded}
	if from >= to {
		return c
	}
	c.First, c.Last = stepName(steps[from]), stepName(steps[to-1])
	for _, s := range steps[from:to] {
		if loaded {
			c.Steps = append(c.Steps, newStepView(a, s, q))
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
