package export

import (
	"encoding/json"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go"
)

// maxGroup is how much of a parquet file is held in memory before it is
// written, in bytes of JSON.
const maxGroup = 32 << 20

// kind is what a column of a parquet file holds.
type kind int

const (
	textKind kind = iota
	jsonKind      // any value, as a text of JSON
	intKind
	floatKind
	boolKind
	listKind
	groupKind
)

// column is one of a parquet file, with those within it: the one element of a
// list, the members of a group. All may be null but elements of lists.
type column struct {
	name string
	kind kind
	of   []column

	leaf  int // its first leaf, and how many lists it stands in: set by newSchema
	lists int
}

func texts(names ...string) []column {
	var all []column
	for _, n := range names {
		all = append(all, column{name: n})
	}
	return all
}

func list(name string, of column) column {
	of.name = "element"
	return column{name: name, kind: listKind, of: []column{of}}
}

func group(name string, of ...column) column { return column{name: name, kind: groupKind, of: of} }

// toolColumns are the column of the tools and that of the arguments of a call.
// They can be what they are in JSON where every attempt was offered the same
// tool, all of whose arguments are texts that must be given: a file has no place
// for members that some rows lack, and gives readers nulls for them, which then
// stand in prompts.
func toolColumns(sets []json.RawMessage, how Arguments) (tools, args column, err error) {
	tools, args = column{name: "tools", kind: jsonKind}, column{name: "arguments"}
	sets = slices.Clone(sets)
	slices.SortFunc(sets, func(a, b json.RawMessage) int { return slices.Compare(a, b) })
	sets = slices.CompactFunc(sets, func(a, b json.RawMessage) bool { return slices.Equal(a, b) })
	if len(sets) == 1 {
		v, err := decode(sets[0])
		if err != nil {
			return tools, args, err
		}
		if c, ok := shape("tools", v); ok {
			tools = c
		}
	}
	if how == Text || len(sets) == 0 {
		return tools, args, nil
	}
	given, ok := arguments(sets)
	if !ok {
		return tools, args, wrong("--parquet: the attempts were offered tools that take different arguments; add --tool-arguments text")
	}
	return tools, group("arguments", texts(given...)...), nil
}

// arguments are those of the only tool.
func arguments(sets []json.RawMessage) ([]string, bool) {
	var names []string
	for i, set := range sets {
		var tools []struct {
			Function struct {
				Parameters struct {
					Properties map[string]struct {
						Type string `json:"type"`
					} `json:"properties"`
					Required []string `json:"required"`
				} `json:"parameters"`
			} `json:"function"`
		}
		if json.Unmarshal(set, &tools) != nil || len(tools) != 1 {
			return nil, false
		}
		p := tools[0].Function.Parameters
		for name, property := range p.Properties {
			if property.Type != "string" || !slices.Contains(p.Required, name) {
				return nil, false
			}
		}
		if len(p.Required) != len(p.Properties) || i > 0 && !slices.Equal(names, p.Required) {
			return nil, false
		}
		names = p.Required
	}
	return names, len(names) > 0
}

// shape is the column that a value fits into; false where it has none: lists of
// different things, objects without members.
func shape(name string, v any) (column, bool) {
	switch v := v.(type) {
	case string:
		return column{name: name}, true
	case bool:
		return column{name: name, kind: boolKind}, true
	case json.Number:
		return column{name: name, kind: floatKind}, true
	case object:
		var of []column
		for _, m := range v {
			c, ok := shape(m.name, m.value)
			if !ok {
				return c, false
			}
			of = append(of, c)
		}
		return group(name, of...), len(of) > 0
	case []any:
		if len(v) != 1 && name == "tools" || len(v) == 0 {
			return column{}, false
		}
		first, ok := shape("element", v[0])
		for _, e := range v[1:] {
			other, fits := shape("element", e)
			ok = ok && fits && first.kind == other.kind && first.kind != groupKind && first.kind != listKind
		}
		return list(name, first), ok
	}
	return column{}, false
}

// schema is the layout of a parquet file.
type schema struct {
	columns []column
	leaves  int
	parquet *parquet.Schema
}

func newSchema(columns []column) *schema {
	s := &schema{}
	s.columns = s.placed(columns, 0)
	s.parquet = parquet.NewSchema("rows", groupNode(columns))
	return s
}

func (s *schema) placed(columns []column, lists int) []column {
	columns = slices.Clone(columns)
	for i := range columns {
		c := &columns[i]
		c.leaf, c.lists = s.leaves, lists
		within := lists
		if c.kind == listKind {
			within++
		}
		c.of = s.placed(c.of, within)
		if len(c.of) == 0 {
			s.leaves++
		}
	}
	return columns
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

// shred makes the values of a row. What has no column, or another kind than its
// column, is refused: nothing is lost in silence.
func (s *schema) shred(o object) (parquet.Row, error) {
	sh := &shredder{values: make([][]parquet.Value, s.leaves)}
	if err := sh.members(s.columns, o, 0, 0); err != nil {
		return nil, err
	}
	return slices.Concat(sh.values...), nil
}

func (sh *shredder) members(columns []column, o object, rep, def int) error {
	for _, m := range o {
		if !slices.ContainsFunc(columns, func(c column) bool { return c.name == m.name }) {
			return refuse("a parquet file has no column for %.40q here", m.name)
		}
	}
	for _, c := range columns {
		if err := sh.put(c, o.get(c.name), rep, def); err != nil {
			return err
		}
	}
	return nil
}

// put writes a value that may be null. rep and def are what the format of Dremel
// calls the levels of repetition and definition, as they are above it.
func (sh *shredder) put(c column, v any, rep, def int) (err error) {
	if raw, ok := v.(json.RawMessage); ok && c.kind != jsonKind {
		if v, err = decode(raw); err != nil {
			return err
		}
	}
	if v == nil {
		sh.null(c, rep, def)
		return nil
	}
	def++
	switch c.kind {
	case listKind:
		if elements, ok := v.([]any); ok {
			return sh.list(c, elements, rep, def)
		}
	case groupKind:
		if o, ok := v.(object); ok {
			return sh.members(c.of, o, rep, def)
		}
	case jsonKind:
		text, err := encode(v)
		sh.values[c.leaf] = append(sh.values[c.leaf], parquet.ByteArrayValue(text).Level(rep, def, c.leaf))
		return err
	default:
		if leaf, ok := leafValue(c.kind, v); ok {
			sh.values[c.leaf] = append(sh.values[c.leaf], leaf.Level(rep, def, c.leaf))
			return nil
		}
	}
	return refuse("a parquet file has values of another kind in %.40q", c.name)
}

func (sh *shredder) list(c column, elements []any, rep, def int) error {
	if len(elements) == 0 {
		sh.null(c, rep, def)
		return nil
	}
	for i, e := range elements {
		if i > 0 {
			rep = c.lists + 1
		}
		if err := sh.put(c.of[0], e, rep, def+1); err != nil {
			return err
		}
	}
	return nil
}

// null marks all leaves below as missing.
func (sh *shredder) null(c column, rep, def int) {
	if len(c.of) == 0 {
		sh.values[c.leaf] = append(sh.values[c.leaf], parquet.NullValue().Level(rep, def, c.leaf))
		return
	}
	for _, child := range c.of {
		sh.null(child, rep, def)
	}
}

func leafValue(k kind, v any) (parquet.Value, bool) {
	switch v := v.(type) {
	case string:
		return parquet.ByteArrayValue([]byte(v)), k == textKind
	case bool:
		return parquet.BooleanValue(v), k == boolKind
	case int64:
		return parquet.Int64Value(v), k == intKind
	case json.Number:
		f, err := v.Float64()
		return parquet.DoubleValue(f), k == floatKind && err == nil
	}
	return parquet.Value{}, false
}

// rowWriter writes rows to a file; line is the row as JSON, with the end of its
// line.
type rowWriter interface {
	write(row parquet.Row, line []byte) error
	close() error
}

// maxPending is how much is handed to the library at once, in bytes of JSON: a
// page is cut at the end of each call, and small ones compress badly.
const maxPending = 4 << 20

// parquetRows writes rows as a parquet file.
type parquetRows struct {
	w             *parquet.GenericWriter[any]
	pending       []parquet.Row
	held, written int // bytes of JSON: pending, and since the last group of rows
}

func (s *schema) writer(to io.Writer) *parquetRows {
	return &parquetRows{w: parquet.NewGenericWriter[any](to, s.parquet, parquet.Compression(&parquet.Zstd), parquet.CreatedBy("mini", "", ""))}
}

func (p *parquetRows) write(row parquet.Row, line []byte) error {
	p.pending = append(p.pending, row)
	if p.held += len(line); p.held < maxPending {
		return nil
	}
	if err := p.flush(); err != nil || p.written < maxGroup {
		return err
	}
	p.written = 0
	return p.w.Flush()
}

func (p *parquetRows) flush() error {
	_, err := p.w.WriteRows(p.pending)
	p.written += p.held
	p.pending, p.held = nil, 0
	return err
}

func (p *parquetRows) close() error {
	if err := p.flush(); err != nil {
		return err
	}
	return p.w.Close()
}
