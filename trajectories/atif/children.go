package atif

import (
	"fmt"
	"slices"

	"github.com/minibench/mini/trajectories"
)

// children puts what an attempt's children did into its document. A result of a
// command that asked for one refers to it.
func (b *builder) children(doc *Trajectory) {
	number := 0
	if p := b.t.Header.Parent; p != nil {
		number = p.Child
		doc.TrajectoryID = ptr(childID(number))
	}
	for _, child := range b.all.ChildrenOf(number) {
		inner := newBuilder(child, b.all)
		sub, err := inner.document("")
		if err != nil && b.err == nil {
			b.err = err
		}
		for _, text := range inner.lost {
			if !slices.Contains(b.lost, text) {
				b.lost = append(b.lost, text)
			}
		}
		if sub != nil && len(sub.Steps) == 0 { // which the format does not allow
			b.lost = append(b.lost, fmt.Sprintf("child %d, which ended before it was told anything", child.Header.Parent.Child))
			continue
		}
		if sub != nil {
			doc.Subagents = append(doc.Subagents, *sub)
		}
	}
}

func childID(n int) string { return fmt.Sprintf("child-%d", n) }

// refs are those of the result of an execution.
func (b *builder) refs(execution int) []Ref {
	if execution == 0 || b.foreign {
		return nil
	}
	var refs []Ref
	for _, c := range b.asked[execution] {
		known := slices.ContainsFunc(b.all.Children, func(t *trajectories.Transcript) bool {
			return t.Header.Parent != nil && t.Header.Parent.Child == c.Child && len(t.Entries) > 0
		})
		if known {
			refs = append(refs, Ref{TrajectoryID: ptr(childID(c.Child))})
		}
	}
	return refs
}

// subagents are the records of the children in a document of mini's own, those of
// children's children too.
func (t *Trajectory) subagents(made trajectories.Import) ([]*File, error) {
	var all []*File
	for i := range t.Subagents {
		sub := &t.Subagents[i]
		own, ok := sub.own()
		if !ok || own.Header.Parent == nil {
			continue
		}
		f, err := own.file(sub, made)
		if err != nil {
			return nil, err
		}
		all = append(append(all, f), f.Children...)
		f.Children = nil
	}
	return all, nil
}
