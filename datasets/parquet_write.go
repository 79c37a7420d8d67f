package datasets

import "github.com/parquet-go/parquet-go"

// write appends the node as JSON. columns are the values of its leaves; none
// of the lists may be empty.
func (n *node) write(w *writer, columns [][]parquet.Value) error {
	for _, values := range columns {
		if len(values) == 0 {
			return errLevels
		}
	}
	there := columns[0][0].DefinitionLevel() >= n.def
	switch {
	case n.repeated:
		return n.writeElements(w, columns, there)
	case n.optional && !there:
		return w.raw("null")
	}
	return n.writeOne(w, columns)
}

// writeElements writes the values of a repeated node as a list.
func (n *node) writeElements(w *writer, columns [][]parquet.Value, there bool) error {
	if !there {
		return w.raw("[]")
	}
	if err := w.raw("["); err != nil {
		return err
	}
	comma := ""
	err := n.each(columns, func(element [][]parquet.Value) error {
		if err := w.raw(comma); err != nil {
			return err
		}
		comma = ","
		return n.writeOne(w, element)
	})
	if err != nil {
		return err
	}
	return w.raw("]")
}

// each cuts the values of a repeated node into those of its elements.
func (n *node) each(columns [][]parquet.Value, f func([][]parquet.Value) error) error {
	rest := append([][]parquet.Value(nil), columns...)
	element := make([][]parquet.Value, len(columns))
	for len(rest[0]) > 0 {
		for i, values := range rest {
			if len(values) == 0 {
				return errLevels
			}
			size := 1
			for size < len(values) && values[size].RepetitionLevel() > n.rep {
				size++
			}
			element[i], rest[i] = values[:size], values[size:]
		}
		if err := f(element); err != nil {
			return err
		}
	}
	for _, values := range rest {
		if len(values) > 0 {
			return errLevels
		}
	}
	return nil
}

// writeOne writes a node that is there, or one element of it.
func (n *node) writeOne(w *writer, columns [][]parquet.Value) error {
	switch n.kind {
	case leafNode:
		if len(columns[0]) != 1 {
			return errLevels
		}
		if columns[0][0].IsNull() {
			return w.raw("null")
		}
		n.show(w, columns[0][0])
		return w.full()
	case listNode, innerNode:
		return n.children[0].write(w, columns)
	case mapNode:
		return n.writeMap(w, columns)
	default:
		return n.writeGroup(w, columns)
	}
}

func (n *node) writeGroup(w *writer, columns [][]parquet.Value) error {
	mark := "{"
	for _, child := range n.children {
		if err := w.raw(mark); err != nil {
			return err
		}
		mark = ","
		w.text(child.name)
		w.buf.WriteByte(':')
		if err := child.write(w, columns[child.first-n.first:child.end-n.first]); err != nil {
			return err
		}
	}
	return w.raw("}")
}

// writeMap writes an object; keys that are not text become it.
func (n *node) writeMap(w *writer, columns [][]parquet.Value) error {
	entry := n.children[0]
	key, value := entry.children[0], entry.children[1]
	if columns[0][0].DefinitionLevel() < entry.def {
		return w.raw("{}")
	}
	mark := "{"
	err := entry.each(columns, func(pair [][]parquet.Value) error {
		if err := w.raw(mark); err != nil {
			return err
		}
		mark = ","
		start := w.buf.Len()
		if err := key.write(w, pair[key.first-n.first:key.end-n.first]); err != nil {
			return err
		}
		if written := w.buf.Bytes()[start:]; written[0] != '"' {
			text := string(written)
			w.buf.Truncate(start)
			w.text(text)
		}
		w.buf.WriteByte(':')
		return value.write(w, pair[value.first-n.first:value.end-n.first])
	})
	if err != nil {
		return err
	}
	return w.raw("}")
}
