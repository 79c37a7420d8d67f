package filter

import (
	"github.com/minibench/mini/trajectories/export"
)

// maxHeld bounds Config.MinPerInstance and thereby group.held.
const maxHeld = 64

// group is the attempts on the instance that is being added.
type group struct {
	instanceID string
	accepted   int           // number of attempts accepted so far
	held       []*Inspection // accepted, but Add has not returned them yet
}

// startGroup ends the previous group if the attempt is on another instance.
func (f *Filter) startGroup(item *export.Item) {
	if item.InstanceID != f.group.instanceID {
		f.endGroup()
		f.group.instanceID = item.InstanceID
	}
}

// endGroup drops the held attempts. Their duplicates stay dropped: nearly all of them
// are on the same instance, which has too few attempts.
func (f *Filter) endGroup() {
	for _, inspection := range f.group.held {
		f.duplicates.remove(inspection.signature)
		f.stats.addDropped(inspection.Item, dropReason("min per instance", ""))
	}
	f.group = group{}
}

// accept holds an accepted attempt. When the instance has enough attempts, it returns the
// held ones.
func (f *Filter) accept(inspection *Inspection) []*export.Item {
	f.group.accepted++
	f.group.held = append(f.group.held, inspection)
	if f.group.accepted < f.cfg.MinPerInstance {
		return nil
	}
	var accepted []*export.Item
	for _, held := range f.group.held {
		f.stats.addKept(held.Item, f.SplitOf(held.Item), f.splitKey(held.Item))
		accepted = append(accepted, held.Item)
	}
	f.group.held = nil
	return accepted
}
