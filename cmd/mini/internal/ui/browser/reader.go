package browser

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/viewport"
	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/trajectories/query"
	"github.com/minibench/mini/trajectories/timeline"
)

// reader shows one trajectory, one step at a time.
type reader struct {
	entry      *Entry
	trajectory *Trajectory // nil until it has been read
	pages      []*timeline.Step
	page       int
	extra      *timeline.Step // the patch or the log if it is shown instead of the page
	lines      []steps.Line   // what is shown, rendered
	view       viewport.Model // shows lines

	reasoning  bool
	unfolded   bool // long outputs are shown completely
	searchText string
	match      int // line of the last match; -1 if none
}

// Names of extra pages.
const (
	patchPage = "patch"
	logPage   = "test log"
)

// folds limits how many lines of an output are shown.
var folds = map[timeline.Kind]steps.Fold{timeline.Output: {Head: 200, Tail: 200}}

func newReader(e *Entry, reasoning bool, searchText string) *reader {
	r := &reader{entry: e, reasoning: reasoning, searchText: searchText, match: -1, view: viewport.New()}
	r.view.KeyMap = viewport.KeyMap{
		PageDown: bind("pgdown space"), PageUp: bind("pgup"),
		Down: bind("ctrl+e shift+down"), Up: bind("ctrl+y shift+up"),
		HalfPageDown: key.NewBinding(), HalfPageUp: key.NewBinding(), Left: key.NewBinding(), Right: key.NewBinding(),
	}
	return r
}

// resize sets the size of the page.
func (r *reader) resize(width, height int) {
	r.view.SetWidth(width)
	r.view.SetHeight(height)
	r.layout()
}

// layout renders the page. It keeps the scroll position if the page is long enough.
func (r *reader) layout() {
	r.lines, r.match = nil, -1
	if r.trajectory != nil {
		renderer := steps.Renderer{
			Width: max(4, r.view.Width()-1), Labels: true, Reasoning: r.reasoning, Highlight: highlighter(r.searchText),
		}
		if !r.unfolded {
			renderer.Fold = folds
		}
		r.lines = renderer.Step(r.step())
	}
	content := make([]string, len(r.lines))
	for i, line := range r.lines {
		content[i] = " " + line.Text
	}
	r.view.SetContentLines(content)
}

// step returns the visible step, patch or log; nil before the trajectory has been read.
func (r *reader) step() *timeline.Step {
	if r.extra != nil || r.trajectory == nil {
		return r.extra
	}
	return r.pages[r.page]
}

// show shows an extra page or, if extra is nil, a step. It clamps the number of the page to those
// that exist.
func (r *reader) show(page int, extra *timeline.Step) {
	r.page, r.extra = max(0, min(page, len(r.pages)-1)), extra
	r.layout()
	r.view.GotoTop()
}

// isFollowing reports whether steps that are appended to the trajectory are shown.
func (r *reader) isFollowing() bool {
	return r.trajectory != nil && r.trajectory.Outcome == nil && r.page == len(r.pages)-1
}

// setTrajectory shows the first page of a trajectory, or replaces the trajectory with a newer
// version. After that the reader stays on its page, or goes to the end if the user sees the end.
func (r *reader) setTrajectory(t *Trajectory) {
	isFirst, isAtEnd := r.trajectory == nil, r.page == len(r.pages)-1 && r.view.AtBottom()
	r.trajectory, r.pages = t, t.AllSteps()
	switch {
	case isFirst:
		r.show(0, nil)
	case isAtEnd && r.extra == nil:
		r.show(len(r.pages)-1, nil)
		r.view.GotoBottom()
	default:
		if r.page = min(r.page, len(r.pages)-1); r.extra != nil && r.extra.Name == patchPage {
			r.extra.Items = patchItems(r.entry, t)
		}
		r.layout()
	}
}

// patchItems returns a note about the origin of a trajectory's patch, and the patch.
func patchItems(_ *Entry, t *Trajectory) []*timeline.Item {
	patch, source := t.Patch()
	return []*timeline.Item{{Kind: timeline.Note, Text: source}, {Kind: timeline.Patch, Text: patch}}
}

// title returns the two header lines: the name and status of the attempt, and the name and
// statistics of a step.
func (r *reader) title(s *timeline.Step) (name, subtitle string) {
	words := []string{r.entry.title(r.entry.Attempt > 1 || !r.entry.Selected)}
	for _, word := range []string{r.entry.StatusText(), r.entry.Verdict} {
		if word != "" {
			words = append(words, strings.ReplaceAll(word, "_", " "))
		}
	}
	name = steps.OneLine(strings.Join(words, " · "))
	switch {
	case r.trajectory == nil:
		return name, "reading ..."
	case s.Name == timeline.PromptsStep:
		subtitle = s.Name + " · " + text.Count(r.trajectory.ReplyCount(), "step")
	case s.Name != "":
		subtitle = s.Name
	default:
		subtitle = fmt.Sprintf("step %d/%d", s.Number, r.trajectory.ReplyCount())
	}
	return name, steps.OneLine(strings.Join(append([]string{subtitle}, r.trajectory.StepStats(s)...), " · "))
}

// findNext goes to the next line that contains the search text or, if direction is -1, to the
// previous one. It searches all steps, or only the patch or log if that is shown. It shows
// reasoning and unfolds outputs, so that every match is visible. It reports whether there is a
// match.
func (r *reader) findNext(direction int) bool {
	matches := query.TextMatcher(r.searchText)
	if !r.unfolded || !r.reasoning {
		r.unfolded, r.reasoning = true, true
		r.layout()
	}
	oldPage, top, pages := r.page, r.view.YOffset(), len(r.pages)
	isVisible := func(line int) bool { return line >= r.view.YOffset() && line < r.view.YOffset()+r.view.Height() }
	line := r.match
	if !isVisible(line) {
		line = top - direction
	}
	if r.extra != nil {
		pages = 1
	}
	for range pages + 1 { // the first page is searched twice
		for i := line + direction; i >= 0 && i < len(r.lines); i += direction {
			if matches(r.lines[i].Source) {
				if r.match = i; !isVisible(i) {
					r.view.SetYOffset(i - 2)
				}
				return true
			}
		}
		if r.extra == nil {
			r.page, r.lines = (r.page+direction+pages)%pages, nil
			if r.step().Contains(matches) {
				r.show(r.page, nil)
			}
		}
		if line = -1; direction < 0 {
			line = len(r.lines)
		}
	}
	r.page = oldPage
	r.layout()
	r.view.SetYOffset(top)
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
			return re.ReplaceAllStringFunc(plain, func(s string) string { return ansi.NewStyle().Reverse(true).Styled(s) })
		}
		return line
	}
}
