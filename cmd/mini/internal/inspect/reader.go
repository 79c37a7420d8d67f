package inspect

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/trajectories/filter"
	"github.com/minibench/mini/trajectories/timeline"
)

// sight is what of a trajectory is seen.
type sight int

const (
	theSteps sight = iota
	thePatch
	theLog
)

// reader shows one trajectory, a step at a time.
type reader struct {
	item   *Item
	t      *Trajectory // nil while it is read
	failed error
	pages  []*timeline.Step
	page   int
	sight  sight
	extra  []*timeline.Item // the patch or the log
	lines  []steps.Line     // what is seen, as wide as the screen
	top    int              // the first line that is seen
	width  int
	height int // of what is seen

	reasoning bool
	whole     bool // nothing is folded
	follow    bool // goes with what is appended
	text      string
	hit       int // the line of the match that was found last; -1 where there is none
}

// folded is how much of a long output is shown at first.
var folded = map[timeline.Kind]steps.Fold{timeline.Output: {Head: 200, Tail: 200}}

// show makes what is seen anew, from its top.
func (r *reader) show() {
	r.top = 0
	r.layout()
}

// layout makes what is seen anew, where it is.
func (r *reader) layout() {
	r.lines, r.hit = nil, -1
	if r.t == nil {
		return
	}
	style := steps.Style{Width: max(4, r.width), Labels: true, Reasoning: r.reasoning, Mark: marker(r.text)}
	if !r.whole {
		style.Fold = folded
	}
	r.lines = style.Step(r.current())
	r.scroll(0)
}

// current is the step that is seen, or the patch or log in front of it.
func (r *reader) current() *timeline.Step {
	if r.sight != theSteps {
		return &timeline.Step{Items: r.extra}
	}
	return r.pages[r.page]
}

// scroll goes so many lines down, or up, and not past the last screen.
func (r *reader) scroll(by int) {
	r.top = max(0, min(r.top+by, r.end()))
}

// end is the first line of the last screen.
func (r *reader) end() int { return max(0, len(r.lines)-r.height) }

// turn goes to a page, as near as there is one.
func (r *reader) turn(page int) {
	r.page, r.sight = max(0, min(page, len(r.pages)-1)), theSteps
	r.show()
}

func (r *reader) last() bool { return r.page == len(r.pages)-1 }

// take puts a newer reading of the file in the place of the older one. The step
// stays, unless the end is followed and was seen.
func (r *reader) take(t *Trajectory) {
	first, follows := r.t == nil, r.follow || r.last() && r.top == r.end()
	r.t, r.failed, r.pages = t, nil, t.All()
	if first {
		r.turn(0)
		return
	}
	r.page = min(r.page, len(r.pages)-1)
	if r.sight == thePatch {
		r.extra = patchOf(t)
	}
	if r.sight == theSteps && follows {
		r.page = len(r.pages) - 1
		r.layout()
		r.top = r.end()
		return
	}
	r.layout()
}

// patchOf is the patch of a trajectory, and what it is.
func patchOf(t *Trajectory) []*timeline.Item {
	text, from := t.Patch()
	return []*timeline.Item{note(from), {Kind: timeline.Patch, Text: text}}
}

// title is the attempt, and what the step took.
func (r *reader) title() (name, facts string) {
	it := r.item
	name = steps.Word(it.Name())
	if it.Attempt > 1 || !it.Selected {
		name += fmt.Sprintf(" attempt %d", it.Attempt)
	}
	for _, word := range []string{it.Ending(), it.Verdict} {
		if word != "" {
			name += " · " + steps.Word(strings.ReplaceAll(word, "_", " "))
		}
	}
	switch {
	case r.failed != nil:
		return name, ""
	case r.t == nil:
		return name, "reading ..."
	case r.sight == thePatch:
		return name, "patch"
	case r.sight == theLog:
		return name, "test log"
	}
	s := r.pages[r.page]
	switch s.Name {
	case timeline.TheEnd:
		facts = s.Name
	case timeline.Prompts:
		facts = s.Name + " · " + report.Count(r.t.Replies(), "step")
	default:
		facts = fmt.Sprintf("step %d/%d", s.Number, r.t.Replies())
	}
	return name, steps.Word(strings.Join(append([]string{facts}, r.t.Facts(s)...), " · "))
}

// hidden says whether there is reasoning on the page that is not shown.
func (r *reader) hidden() bool {
	is := func(it *timeline.Item) bool { return it.Kind == timeline.Reasoning }
	return !r.reasoning && r.t != nil && slices.ContainsFunc(r.current().Items, is)
}

// seek goes to the next line that has the text, or to the one before, in all steps,
// or in the patch or log that is seen. It shows reasoning and unfolds outputs, which
// may have it. It says whether there is any.
func (r *reader) seek(by int) bool {
	matches := filter.Matcher(r.text)
	before, top, hit := r.page, r.top, r.hit
	if !r.whole || !r.reasoning {
		r.whole, r.reasoning, hit = true, true, -1
		r.layout()
	}
	at := r.top - 1
	if by < 0 {
		at = r.top + 1
	}
	if r.top <= hit && hit < r.top+r.height {
		at = hit
	}
	for turned := 0; ; turned++ {
		for i := at + by; i >= 0 && i < len(r.lines); i += by {
			if matches(r.lines[i].Whole) {
				r.hit = i
				if i < r.top || i >= r.top+r.height {
					r.top = i - 2
					r.scroll(0)
				}
				return true
			}
		}
		pages := len(r.pages)
		if r.sight != theSteps {
			pages = 1
		}
		if turned == pages { // all of them, and the first one again
			break
		}
		if pages > 1 {
			r.page = (r.page + by + pages) % pages
			r.lines, r.top = nil, 0
			if r.pages[r.page].Contains(matches) {
				r.layout()
			}
		}
		if at = -1; by < 0 {
			at = len(r.lines)
			r.top = r.end()
		}
	}
	r.page = before
	r.layout()
	r.top = min(top, r.end())
	return false
}

// marker shows where lines have a text, in any case unless it has a capital letter.
// The colours of such lines give way.
func marker(text string) func(string) string {
	if text == "" {
		return nil
	}
	pattern := regexp.QuoteMeta(text)
	if !strings.ContainsFunc(text, unicode.IsUpper) {
		pattern = "(?i)" + pattern
	}
	expr := regexp.MustCompile(pattern)
	return func(line string) string {
		if plain := ansi.Strip(line); expr.MatchString(plain) {
			return expr.ReplaceAllStringFunc(plain, reversed)
		}
		return line
	}
}

// nextFailed goes to the next step in which something went wrong, or the one
// before; false where there is none.
func (r *reader) nextFailed(by int) bool {
	for i := r.page + by; i >= 0 && i < len(r.pages); i += by {
		if r.pages[i].Failed {
			r.turn(i)
			return true
		}
	}
	return false
}
