package datasets

import (
	"errors"
	"fmt"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"
)

// node is a column of a parquet file, or a group of columns, as it becomes
// JSON. The values of a row come as one list for each leaf; two levels beside
// each value say where lists begin and how much of a path is there
// (parquet.apache.org, "Nested Encoding").
type node struct {
	name     string
	kind     nodeKind
	optional bool
	repeated bool
	bytes    bool // a leaf of bytes, which may be text
	rep, def int  // levels of the node itself
	first    int  // its first leaf
	end      int  // the leaf after its last
	children []*node
	show     func(w *writer, v parquet.Value) // of a leaf
}

type nodeKind int

const (
	leafNode nodeKind = iota
	groupNode
	listNode  // has one child, repeated: the elements
	mapNode   // has one child, repeated: key and value
	innerNode // stands for its only child, as within a list
)

// errLevels is for a file whose levels contradict its description.
var errLevels = errors.New("damaged: values and levels do not fit")

// newNode describes the columns of a file; the root is a group.
func newNode(c *parquet.Column) (*node, error) {
	leaf := 0
	root, err := build(c, nil, &leaf)
	if err == nil && root.kind != groupNode {
		err = errors.New("no columns")
	}
	return root, err
}

func build(c *parquet.Column, parent *node, leaf *int) (*node, error) {
	n := &node{name: c.Name(), first: *leaf}
	if parent != nil {
		n.optional, n.repeated = c.Optional(), c.Repeated()
		n.rep, n.def = parent.rep, parent.def
		if n.repeated {
			n.rep++
		}
		if n.repeated || n.optional {
			n.def++
		}
	}
	if c.Leaf() {
		if *leaf != c.Index() {
			return nil, fmt.Errorf("column %s: %w", printable(c.Name()), errLevels)
		}
		*leaf++
		n.end = *leaf
		kind := c.Type().Kind()
		n.bytes = kind == parquet.ByteArray || kind == parquet.FixedLenByteArray
		n.show = shower(c.Type())
		return n, nil
	}
	for _, column := range c.Columns() {
		child, err := build(column, n, leaf)
		if err != nil {
			return nil, err
		}
		if child.leaves() > 0 { // a group without columns has no values to be told by
			n.children = append(n.children, child)
		}
	}
	n.end = *leaf
	n.kind = groupKind(c, n)
	return n, nil
}

// groupKind also settles what the child of a list stands for. Writers agree on
// three levels (a group LIST of a repeated group of one element); older ones
// left out the middle one, or gave it the meaning of the element.
func groupKind(c *parquet.Column, n *node) nodeKind {
	if len(n.children) != 1 || !n.children[0].repeated {
		return groupNode
	}
	inner := n.children[0]
	switch annotation(c) {
	case deprecated.List:
		if inner.kind == groupNode && len(inner.children) == 1 && inner.name != "array" && inner.name != n.name+"_tuple" {
			inner.kind = innerNode
		}
		return listNode
	case deprecated.Map, deprecated.MapKeyValue:
		if inner.kind == groupNode && len(inner.children) == 2 {
			return mapNode
		}
	}
	return groupNode
}

// annotation is what the description says a group is; -1 if nothing.
func annotation(c *parquet.Column) deprecated.ConvertedType {
	if t := c.Type().LogicalType(); t != nil {
		switch t.Value.(type) {
		case *format.ListType:
			return deprecated.List
		case *format.MapType:
			return deprecated.Map
		}
	}
	if t := c.Type().ConvertedType(); t != nil {
		return *t
	}
	return -1
}

func (n *node) leaves() int { return n.end - n.first }

func (n *node) names() []string {
	names := make([]string, len(n.children))
	for i, child := range n.children {
		names[i] = child.name
	}
	return names
}
