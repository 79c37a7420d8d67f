package atif

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/minibench/mini/trajectories"
)

// addChildren adds the trajectories of the children of an attempt to its document.
// Results of commands that started a child refer to it.
func (b *builder) addChildren(doc *Trajectory) {
	number := 0
	if p := b.t.Header.Parent; p != nil {
		number = p.Child
		doc.TrajectoryID = ptr(childID(number))
	}
	for _, child := range b.root.ChildrenOf(number) {
		inner := newBuilder(child, b.root)
		sub := inner.document("")
		b.err = cmp.Or(b.err, inner.err)
		for _, text := range inner.losses {
			if !slices.Contains(b.losses, text) {
				b.losses = append(b.losses, text)
			}
		}
		if sub != nil && len(sub.Steps) == 0 { // ATIF does not allow a trajectory without steps
			b.losses = append(b.losses, fmt.Sprintf("child %d, which ended before its first message", child.Header.Parent.Child))
			continue
		}
		if sub != nil {
			doc.Subagents = append(doc.Subagents, *sub)
		}
	}
}

func childID(n int) string { return fmt.Sprintf("child-%d", n) }

// refs returns the references of the result of an execution.
func (b *builder) refs(execution int) []Ref {
	if execution == 0 {
		return nil
	}
	var refs []Ref
	for _, c := range b.childResults[execution] {
		exists := slices.ContainsFunc(b.root.Children, func(t *trajectories.Transcript) bool {
			return t.Header.Parent != nil && t.Header.Parent.Child == c.Child && len(t.Entries) > 0
		})
		if exists {
			refs = append(refs, Ref{TrajectoryID: ptr(childID(c.Child))})
		}
	}
	return refs
}

// subagents converts the trajectories of children in a document that mini wrote,
// including children of children.
func (t *Trajectory) subagents(imported trajectories.Import) ([]*File, error) {
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
