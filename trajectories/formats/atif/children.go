package atif

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/minibench/mini/trajectories"
)

// addChildren adds the trajectories of the children of an attempt to its document.
func (b *builder) addChildren(doc *Trajectory) {
	number := 0
	if p := b.t.Header.Parent; p != nil {
		number = p.Child
		doc.TrajectoryID = ptr(childID(number))
	}
	for _, child := range b.root.ChildrenOf(number) {
		childBuilder := newBuilder(child, b.root)
		childDoc := childBuilder.document("")
		b.err = cmp.Or(b.err, childBuilder.err)
		for _, loss := range childBuilder.losses {
			if !slices.Contains(b.losses, loss) {
				b.losses = append(b.losses, loss)
			}
		}
		if childDoc != nil && len(childDoc.Steps) == 0 { // ATIF does not allow a trajectory without steps
			b.losses = append(b.losses, fmt.Sprintf("child %d, which ended before its first message", child.Header.Parent.Child))
			continue
		}
		if childDoc != nil {
			doc.Subagents = append(doc.Subagents, *childDoc)
		}
	}
}

// childID returns the trajectory ID of child n.
func childID(n int) string { return fmt.Sprintf("child-%d", n) }

// refs returns the references to the children that the execution with the given record ID
// started. It omits children without messages.
func (b *builder) refs(execution int) []Ref {
	if execution == 0 {
		return nil
	}
	var refs []Ref
	for _, c := range b.childResults[execution] {
		exists := slices.ContainsFunc(b.root.Children, func(t *trajectories.Attempt) bool {
			return t.Header.Parent != nil && t.Header.Parent.Child == c.Child && len(t.Entries) > 0
		})
		if exists {
			refs = append(refs, Ref{TrajectoryID: ptr(childID(c.Child))})
		}
	}
	return refs
}

// children returns the journals of all descendants in one list. It skips children that
// mini did not write.
func (t *Trajectory) children(imported trajectories.Import) ([]*File, error) {
	var files []*File
	for i := range t.Subagents {
		sub := &t.Subagents[i]
		extra, ok := sub.miniExtra()
		if !ok {
			continue
		}
		f, err := extra.file(sub, imported)
		if err != nil {
			return nil, err
		}
		if f.Header.Parent == nil {
			continue
		}
		files = append(append(files, f), f.Children...)
		f.Children = nil
	}
	return files, nil
}
