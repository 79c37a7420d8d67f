package inspect

import (
	"fmt"
	"slices"
	"strings"
)

// sight is what of a trajectory is seen.
type sight int

const (
	steps sight = iota
	thePatch
	theLog
)

// reader is the view of one trajectory.
type reader struct {
	item      *Item
	t         *Trajectory // nil while it is read
	failed    error
	page      int
	sight     sight
	sections  []*Section // of the patch or the log
	at        place
	body      *body
	reasoning bool
	follow    bool // goes with what is appended
	text      string
	match     *matcher
	hit       *spot // the match that was found last
	wanted    int   // the step to begin at
}

// show makes what is seen anew, from its top.
func (r *reader) show() {
	r.at, r.hit = place{}, nil
	r.layout()
}

// layout makes what is seen anew, where it is.
func (r *reader) layout() {
	if r.t == nil {
		r.body = nil
		return
	}
	if r.sight == steps {
		r.body = newBody(r.current().Sections, r.reasoning)
		return
	}
	r.body = newBody(r.sections, true)
}

func (r *reader) current() *Page { return r.t.Pages[r.page] }

// turn goes to a page, as near as there is one.
func (r *reader) turn(page int) {
	r.page, r.sight = max(0, min(page, len(r.t.Pages)-1)), steps
	r.show()
}

// seen is what a search goes through: the trajectory, or the patch or log that is
// in front of it.
func (r *reader) seen() *Trajectory {
	if r.sight == steps {
		return r.t
	}
	return &Trajectory{Item: r.item, Pages: []*Page{{Sections: r.sections}}}
}

func (r *reader) last() bool { return r.t != nil && r.page == len(r.t.Pages)-1 }

// take puts a newer reading of the file in the place of the older one. The step
// stays, unless the end is followed and was seen.
func (r *reader) take(t *Trajectory, l look, height int) {
	old, atEnd := r.t, r.last()
	bottom := r.body != nil && r.at == r.body.end(height, l)
	r.t, r.failed, r.hit = t, nil, nil
	if old == nil {
		r.turn(r.wanted)
		return
	}
	r.page = min(r.page, len(t.Pages)-1)
	if r.sight == thePatch {
		r.sections = patchOf(t)
	}
	if r.sight == steps && (atEnd && bottom || r.follow) {
		r.page = len(t.Pages) - 1
		r.layout()
		r.at = r.body.end(height, l)
		return
	}
	r.layout()
	if r.body != nil {
		r.at = r.body.clamp(r.at, height, l)
	}
}

// title is the step, and what it took.
func (r *reader) title() (name, facts string) {
	it := r.item
	name = oneLine(it.Name())
	if it.Attempt > 1 || !it.Selected {
		name += fmt.Sprintf(" attempt %d", it.Attempt)
	}
	for _, word := range []string{it.Ending(), it.Verdict} {
		if word != "" {
			name += " · " + oneLine(strings.ReplaceAll(word, "_", " "))
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
	p := r.current()
	facts = fmt.Sprintf("step %d/%d", p.Step, r.t.Steps)
	switch p.Name {
	case "":
	case theEnd:
		facts = p.Name
	default:
		facts = p.Name + " · " + plural(r.t.Steps, "step")
	}
	for _, f := range p.Facts {
		facts += " · " + f
	}
	return name, facts
}

// hidden says whether there is reasoning on the page that is not shown.
func (r *reader) hidden() bool {
	if r.reasoning || r.t == nil || r.sight != steps {
		return false
	}
	for _, s := range r.current().Sections {
		if s.Kind == Reasoning {
			return true
		}
	}
	return false
}

// from is where the next match is looked for: beyond the last one, while that is
// seen, else from the first line that is seen.
func (r *reader) from(by, height int) spot {
	at, sections := r.front()
	if r.body == nil || len(r.body.rows) == 0 {
		return at
	}
	if h := r.hit; h != nil && h.page == at.page && h.section < len(sections) {
		if i := r.body.index(sections[h.section], h.line); r.at.row <= i && i <= r.at.row+height {
			return spot{h.page, h.section, h.line + by}
		}
	}
	row := r.body.rows[min(r.at.row, len(r.body.rows)-1)]
	at.section, at.line = slices.Index(sections, row.section), max(0, row.line)
	return at
}

// front is the page that is seen, as a search counts them, and what is on it.
func (r *reader) front() (spot, []*Section) {
	if r.sight != steps {
		return spot{}, r.sections
	}
	return spot{page: r.page}, r.current().Sections
}

// reach goes to a match in what is seen.
func (r *reader) reach(at spot, height int, l look) {
	var s *Section
	if r.sight == steps {
		if r.page != at.page {
			r.turn(at.page)
		}
		s = r.t.Pages[at.page].Sections[at.section]
	} else {
		s = r.sections[at.section]
	}
	r.hit = &at
	r.reasoning = r.reasoning || s.Kind == Reasoning
	r.layout()
	i := r.body.index(s, at.line)
	if i < r.at.row || i > r.body.lastSeen(r.at, height, l) {
		r.at = r.body.clamp(place{row: max(0, i-2)}, height, l)
	}
}
