package sieve

import (
	"github.com/minibench/mini/trajectories/export"
)

// maxHeld bounds how many attempts wait for their instance to have enough.
const maxHeld = 64

// group is the instance whose attempts are coming in.
type group struct {
	id   string
	kept int     // so far
	held []*Look // kept, but too few to be passed on
}

// startGroup ends the group before, if this attempt is of another instance.
func (s *Sieve) startGroup(it *export.Item) {
	if it.InstanceID != s.group.id {
		s.endGroup()
		s.group.id = it.InstanceID
	}
}

// endGroup drops what waited in vain. What was dropped because it was like one
// of these stays dropped: it is the same instance's in nearly all cases, which
// would have too few with it, too.
func (s *Sieve) endGroup() {
	for _, l := range s.group.held {
		s.seen.forget(l.signature)
		s.report.drop(l.Item, because("min per instance", ""))
	}
	s.group = group{}
}

// release is what is passed on now that this one is kept. As soon as there are
// enough of an instance, nothing more waits.
func (s *Sieve) release(l *Look) []*export.Item {
	s.group.kept++
	s.group.held = append(s.group.held, l)
	if s.group.kept < s.cfg.MinPerInstance {
		return nil
	}
	var out []*export.Item
	for _, h := range s.group.held {
		s.report.keep(h.Item, s.SplitOf(h.Item), s.keyOf(h.Item))
		out = append(out, h.Item)
	}
	s.group.held = nil
	return out
}
