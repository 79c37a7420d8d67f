package filter

import (
	"github.com/minibench/mini/trajectories/export"
)

// maxHeld bounds the attempts that are held until their instance has enough of them.
const maxHeld = 64

// group is the instance of the current attempts.
type group struct {
	id       string
	accepted int           // accepted so far
	held     []*Inspection // accepted, but the instance has too few
}

// startGroup ends the previous group if the attempt is on another instance.
func (f *Filter) startGroup(it *export.Item) {
	if it.InstanceID != f.group.id {
		f.endGroup()
		f.group.id = it.InstanceID
	}
}

// endGroup drops the held attempts. Duplicates of them stay dropped: nearly all are
// on the same instance, which has too few attempts.
func (f *Filter) endGroup() {
	for _, l := range f.group.held {
		f.duplicates.remove(l.signature)
		f.stats.addDropped(l.Item, dropReason("min per instance", ""))
	}
	f.group = group{}
}

// accept returns the attempts that are accepted with this one. Attempts are held
// until there are enough of the instance.
func (f *Filter) accept(l *Inspection) []*export.Item {
	f.group.accepted++
	f.group.held = append(f.group.held, l)
	if f.group.accepted < f.cfg.MinPerInstance {
		return nil
	}
	var out []*export.Item
	for _, h := range f.group.held {
		f.stats.addKept(h.Item, f.SplitOf(h.Item), f.keyOf(h.Item))
		out = append(out, h.Item)
	}
	f.group.held = nil
	return out
}
