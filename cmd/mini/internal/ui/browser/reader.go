package browser

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/trajectories/query"
	"github.com/minibench/mini/trajectories/timeline"
)

// readerMode says what is shown of a trajectory.
type readerMode int

const (
	modeSteps readerMode = iota
	modePatch
	modeLog
)

// reader shows one trajectory, one step at a time.
type reader struct {
	entry      *Entry
	trajectory *Trajectory // nil until it has been read
	err        error
	pages      []*timeline.Step
	page       int
	mode       readerMode
	extraItems []*timeline.Item // the patch or the log
	lines      []steps.Line     // the rendered page
	top        int              // first visible line
	width      int
	height     int // number of visible lines

	reasoning  bool
	unfolded   bool // long outputs are shown completely
	follow     bool // show appended steps
	searchText string
	match      int // line of the last match; -1 if none
}

// folds limits how many lines of an output are shown.
var folds = map[timeline.Kind]steps.Fold{timeline.Output: {Head: 200, Tail: 200}}

// reset renders the page and scrolls to its top.
func (r *reader) reset() {
	r.top = 0
	r.layout()
}

// layout renders the page. It keeps the scroll position if the page is long enough.
func (r *reader) layout() {
	r.lines, r.match = nil, -1
	if r.trajectory == nil {
		return
	}
	renderer := steps.Renderer{
		Width: max(4, r.width), Labels: true, Reasoning: r.reasoning, Highlight: highlighter(r.searchText),
	}
	if !r.unfolded {
		renderer.Fold = folds
	}
	r.lines = renderer.Step(r.currentStep())
	r.scroll(0)
}

// currentStep returns the visible step, or the patch or log as a step.
func (r *reader) currentStep() *timeline.Step {
	if r.mode != modeSteps {
		return &timeline.Step{Items: r.extraItems}
	}
	return r.pages[r.page]
}

// scroll scrolls by a number of lines within the page.
func (r *reader) scroll(delta int) {
	r.top = max(0, min(r.top+delta, r.maxTop()))
}

// maxTop returns the maximum of top, at which the end of the page is visible.
func (r *reader) maxTop() int { return max(0, len(r.lines)-r.height) }

// gotoPage shows a page. It clamps the number to the pages that exist.
func (r *reader) gotoPage(page int) {
	r.page, r.mode = max(0, min(page, len(r.pages)-1)), modeSteps
	r.reset()
}

func (r *reader) isLastPage() bool { return r.page == len(r.pages)-1 }

// setTrajectory shows the first page of a trajectory, or replaces the trajectory with a newer
// version. After that the reader stays on its page, or goes to the end if it shows the steps and
// the user follows the attempt or sees the end.
func (r *reader) setTrajectory(t *Trajectory) {
	first, atEnd := r.trajectory == nil, r.follow || r.isLastPage() && r.top == r.maxTop()
	r.trajectory, r.err, r.pages = t, nil, t.AllSteps()
	if first {
		r.gotoPage(0)
		return
	}
	r.page = min(r.page, len(r.pages)-1)
	if r.mode == modePatch {
		r.extraItems = patchItems(t)
	}
	if r.mode == modeSteps && atEnd {
		r.page = len(r.pages) - 1
		r.layout()
		r.top = r.maxTop()
		return
	}
	r.layout()
}

// patchItems returns a note about the origin of a trajectory's patch, and the patch.
func patchItems(t *Trajectory) []*timeline.Item {
	text, from := t.Patch()
	return []*timeline.Item{noteItem(from), {Kind: timeline.Patch, Text: text}}
}

// title returns the two header lines: the name and status of the attempt, and the name and
// statistics of the page.
func (r *reader) title() (name, subtitle string) {
	e := r.entry
	name = steps.OneLine(e.Name())
	if e.Attempt > 1 || !e.Selected {
		name += fmt.Sprintf(" attempt %d", e.Attempt)
	}
	for _, word := range []string{e.StatusText(), e.Verdict} {
		if word != "" {
			name += " · " + steps.OneLine(strings.ReplaceAll(word, "_", " "))
		}
	}
	switch {
	case r.err != nil:
		return name, ""
	case r.trajectory == nil:
		return name, "reading ..."
	case r.mode == modePatch:
		return name, "patch"
	case r.mode == modeLog:
		return name, "test log"
	}
	s := r.pages[r.page]
	switch s.Name {
	case timeline.EndStep:
		subtitle = s.Name
	case timeline.PromptsStep:
		subtitle = s.Name + " · " + text.Count(r.trajectory.ReplyCount(), "step")
	default:
		subtitle = fmt.Sprintf("step %d/%d", s.Number, r.trajectory.ReplyCount())
	}
	return name, steps.OneLine(strings.Join(append([]string{subtitle}, r.trajectory.StepStats(s)...), " · "))
}

// hasHiddenReasoning reports whether the page has reasoning that is not shown.
func (r *reader) hasHiddenReasoning() bool {
	isReasoning := func(item *timeline.Item) bool { return item.Kind == timeline.Reasoning }
	return !r.reasoning && r.trajectory != nil && slices.ContainsFunc(r.currentStep().Items, isReasoning)
}

// findNext goes to the next line that contains the search text or, if direction is -1, to the
// previous one. It searches all steps, or only the patch or log if that is shown. It shows
// reasoning and unfolds outputs, so that every match is visible. It reports whether there is a
// match.
func (r *reader) findNext(direction int) bool {
	matches := query.TextMatcher(r.searchText)
	oldPage, oldTop, lastMatch := r.page, r.top, r.match
	if !r.unfolded || !r.reasoning {
		r.unfolded, r.reasoning, lastMatch = true, true, -1
		r.layout()
	}
	line := r.top - 1
	if direction < 0 {
		line = r.top + 1
	}
	if r.top <= lastMatch && lastMatch < r.top+r.height {
		line = lastMatch
	}
	for visited := 0; ; visited++ {
		for i := line + direction; i >= 0 && i < len(r.lines); i += direction {
			if matches(r.lines[i].Source) {
				r.match = i
				if i < r.top || i >= r.top+r.height {
					r.top = i - 2
					r.scroll(0)
				}
				return true
			}
		}
		pages := len(r.pages)
		if r.mode != modeSteps {
			pages = 1
		}
		if visited == pages { // all pages were searched, the first one twice
			break
		}
		if pages > 1 {
			r.page = (r.page + direction + pages) % pages
			r.lines, r.top = nil, 0
			if r.pages[r.page].Contains(matches) {
				r.layout()
			}
		}
		if line = -1; direction < 0 {
			line = len(r.lines)
			r.top = r.maxTop()
		}
	}
	r.page = oldPage
	r.layout()
	r.top = min(oldTop, r.maxTop())
	return false
}

// highlighter returns a function that highlights a text in a line, ignoring case unless the
// text has a capital letter; nil if the text is empty. Highlighted lines lose their colours.
func highlighter(text string) func(string) string {
	if text == "" {
		return nil
	}
	pattern := regexp.QuoteMeta(text)
	if !strings.ContainsFunc(text, unicode.IsUpper) {
		pattern = "(?i)" + pattern
	}
	re := regexp.MustCompile(pattern)
	return func(line string) string {
		if plain := ansi.Strip(line); re.MatchString(plain) {
			return re.ReplaceAllStringFunc(plain, reversed)
		}
		return line
	}
}

// gotoFailed goes to the next or previous step with an error. It returns false if there is none.
func (r *reader) gotoFailed(direction int) bool {
	for i := r.page + direction; i >= 0 && i < len(r.pages); i += direction {
		if r.pages[i].Failed {
			r.gotoPage(i)
			return true
		}
	}
	return false
}
