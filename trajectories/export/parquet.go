package export

import (
	"io"
	"slices"

	"github.com/parquet-go/parquet-go"
)

// maxGroup is how much of a parquet file is held in memory before it is
// written, in bytes of JSON.
const maxGroup = 32 << 20

// schema is the layout of a parquet file.
type schema struct {
	columns []placed
	leaves  int
	parquet *parquet.Schema
}

// placed is a column with its place: the first of its leaves, and how many lists
// it stands in.
type placed struct {
	column
	leaf, lists int
	of          []placed
}

func newSchema(columns []column) *schema {
	s := &schema{}
	root := groupNode(columns)
	for _, c := range columns {
		s.columns = append(s.columns, s.place(c, 0))
	}
	s.parquet = parquet.NewSchema("rows", root)
	return s
}

func (s *schema) place(c column, lists int) placed {
	p := placed{column: c, leaf: s.leaves, lists: lists}
	if c.kind == listKind {
		lists++
	}
	for _, child := range c.of {
		p.of = append(p.of, s.place(child, lists))
	}
	if len(c.of) == 0 {
		s.leaves++
	}
	return p
}

// inOrder is a group whose members keep their order, which a reader gives them
// in too.
type inOrder struct {
	parquet.Group
	names []string
}

// Fields implements parquet.Node.
func (g inOrder) Fields() []parquet.Field {
	fields := g.Group.Fields()
	slices.SortFunc(fields, func(a, b parquet.Field) int {
		return slices.Index(g.names, a.Name()) - slices.Index(g.names, b.Name())
	})
	return fields
}

func groupNode(columns []column) parquet.Node {
	g := inOrder{parquet.Group{}, nil}
	for _, c := range columns {
		g.Group[c.name] = parquet.Optional(node(c))
		g.names = append(g.names, c.name)
	}
	return g
}

func node(c column) parquet.Node {
	switch c.kind {
	case intKind:
		return parquet.Int(64)
	case floatKind:
		return parquet.Leaf(parquet.DoubleType)
	case boolKind:
		return parquet.Leaf(parquet.BooleanType)
	case listKind:
		return parquet.List(parquet.Optional(node(c.of[0])))
	case groupKind:
		return groupNode(c.of)
	}
	return parquet.String()
}

// shredder takes a row apart, into the values of its columns.
type shredder struct{ values [][]parquet.Value }

// shred makes a row of the members of an object. What has no column, or another
// kind than its column, is refused: nothing is lost in silence.
func (s *schema) shred(line []byte) (parquet.Row, error) {
	var v any
	if err := decode(line, &v); err != nil {
		return nil, err
	}
	object, ok := v.(members)
	if !ok {
		return nil, Refusal("a row that is no object")
	}
	sh := &shredder{values: make([][]parquet.Value, s.leaves)}
	if err := sh.members(s.columns, object, 0, 0); err != nil {
		return nil, err
	}
	var row parquet.Row
	for _, values := range sh.values {
		row = append(row, values...)
	}
	return row, nil
}

func (sh *shredder) members(columns []placed, object members, rep, def int) error {
	for _, m := range object {
		if !slices.ContainsFunc(columns, func(p placed) bool { return p.name == m.name }) {
			return refuse("a parquet file has no column for %.40q here", m.name)
		}
	}
	for _, p := range columns {
		if err := sh.put(p, object.get(p.name), rep, def); err != nil {
			return err
		}
	}
	return nil
}

// put writes a value that may be null. rep and def are what the format of Dremel
// calls the levels of repetition and definition, as they are above it.
func (sh *shredder) put(p placed, v any, rep, def int) error {
	if v == nil {
		sh.null(p, rep, def)
		return nil
	}
	def++
	switch p.kind {
	case listKind:
		return sh.list(p, v, rep, def)
	case groupKind:
		if object, ok := v.(members); ok {
			return sh.members(p.of, object, rep, def)
		}
	case jsonKind:
		text, err := plainJSON(v)
		sh.values[p.leaf] = append(sh.values[p.leaf], parquet.ByteArrayValue(text).Level(rep, def, p.leaf))
		return err
	default:
		if leaf, ok := leafValue(p.kind, v); ok {
			sh.values[p.leaf] = append(sh.values[p.leaf], leaf.Level(rep, def, p.leaf))
			return nil
		}
	}
	return refuse("a parquet file has values of another kind in %.40q", p.name)
}

func (sh *shredder) list(p placed, v any, rep, def int) error {
	list, ok := v.([]any)
	if !ok {
		return refuse("a parquet file has a list in %.40q", p.name)
	}
	if len(list) == 0 {
		sh.null(p, rep, def)
		return nil
	}
	for i, e := range list {
		if i > 0 {
			rep = p.lists + 1
		}
		if err := sh.put(p.of[0], e, rep, def+1); err != nil {
			return err
		}
	}
	return nil
}

// null marks all leaves below as missing.
func (sh *shredder) null(p placed, rep, def int) {
	if len(p.of) == 0 {
		sh.values[p.leaf] = append(sh.values[p.leaf], parquet.NullValue().Level(rep, def, p.leaf))
		return
	}
	for _, child := range p.of {
		sh.null(child, rep, def)
	}
}

func leafValue(k kind, v any) (parquet.Value, bool) {
	switch v := v.(type) {
	case string:
		return parquet.ByteArrayValue([]byte(v)), k == textKind
	case bool:
		return parquet.BooleanValue(v), k == boolKind
	case interface {
		Int64() (int64, error)
		Float64() (float64, error)
	}: // a number
		if k == intKind {
			i, err := v.Int64()
			return parquet.Int64Value(i), err == nil
		}
		f, err := v.Float64()
		return parquet.DoubleValue(f), k == floatKind && err == nil
	}
	return parquet.Value{}, false
}

// parquetRows writes rows as a parquet file.
type parquetRows struct {
	w    *parquet.GenericWriter[any]
	text int // bytes of JSON since the last group of rows
}

func (s *schema) writer(to io.Writer) *parquetRows {
	return &parquetRows{w: parquet.NewGenericWriter[any](to, s.parquet, parquet.Compression(&parquet.Zstd), parquet.CreatedBy("mini", "", ""))}
}

func (p *parquetRows) write(w *writer, from, to int) error {
	if _, err := p.w.WriteRows(w.shredded[from:to]); err != nil {
		return err
	}
	start := 0
	if from > 0 {
		start = w.ends[from-1]
	}
	p.text += w.ends[to-1] - start
	if p.text < maxGroup {
		return nil
	}
	p.text = 0
	return p.w.Flush()
}

func (p *parquetRows) close() error { return p.w.Close() }
