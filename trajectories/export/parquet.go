package export

import (
	"encoding/json"
	"io"
	"slices"
	"time"

	"github.com/parquet-go/parquet-go"
)

// maxRowGroup is the size at which a row group is written, in bytes of JSON. The writer
// holds a row group in memory.
const maxRowGroup = 32 << 20

// kind is the type of a parquet column.
type kind int

const (
	textKind kind = iota
	jsonKind      // any value, stored as a string of JSON
	intKind
	floatKind
	boolKind
	timeKind
	listKind
	groupKind
)

// column is a parquet column. All values except list elements may be null.
type column struct {
	name   string
	kind   kind
	fields []column // the element of a list, or the members of a group
}

func textColumns(names ...string) []column {
	var columns []column
	for _, n := range names {
		columns = append(columns, column{name: n})
	}
	return columns
}

func listColumn(name string, element column) column {
	element.name = "element"
	return column{name: name, kind: listKind, fields: []column{element}}
}

func groupColumn(name string, fields ...column) column {
	return column{name: name, kind: groupKind, fields: fields}
}

// toolColumns returns the columns for the tools and for the arguments of a tool call.
// toolSets are as in Config.Tools. The tools have columns of their own only if all attempts
// have the same single tool; else they are JSON. The arguments are a string if mode is
// ArgumentsText or there are no tools, else a group; a group requires that argumentNames
// accepts the tools. Without these conditions, some rows would lack members of the groups;
// readers would return nulls for these members, and chat templates would print the nulls.
func toolColumns(toolSets []json.RawMessage, mode ToolArguments) (tools, args column, err error) {
	tools, args = column{name: "tools", kind: jsonKind}, column{name: "arguments"}
	toolSets = slices.Clone(toolSets)
	slices.SortFunc(toolSets, func(a, b json.RawMessage) int { return slices.Compare(a, b) })
	toolSets = slices.CompactFunc(toolSets, func(a, b json.RawMessage) bool { return slices.Equal(a, b) })
	if len(toolSets) == 1 {
		v, err := decode(toolSets[0])
		if err != nil {
			return tools, args, err
		}
		if toolsColumn, ok := newColumn("tools", v); ok {
			tools = toolsColumn
		}
	}
	if mode == ArgumentsText || len(toolSets) == 0 {
		return tools, args, nil
	}
	names, ok := argumentNames(toolSets)
	if !ok {
		return tools, args, optionError("--parquet: the tools of the attempts have different arguments; use --tool-arguments text")
	}
	return tools, groupColumn("arguments", textColumns(names...)...), nil
}

// argumentNames returns the names of the arguments that all tools have. It returns false
// unless each set has one tool, and all tools have the same arguments: at least one, all
// of them required strings.
func argumentNames(toolSets []json.RawMessage) ([]string, bool) {
	var names []string
	for i, set := range toolSets {
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

// newColumn returns a column for values like v. It returns false if v contains null, an
// empty object, an empty list, a list of several objects or lists, or a list whose
// elements are of different types.
func newColumn(name string, v any) (column, bool) {
	switch v := v.(type) {
	case string:
		return column{name: name}, true
	case bool:
		return column{name: name, kind: boolKind}, true
	case json.Number:
		return column{name: name, kind: floatKind}, true
	case object:
		var fields []column
		for _, m := range v {
			c, ok := newColumn(m.name, m.value)
			if !ok {
				return c, false
			}
			fields = append(fields, c)
		}
		return groupColumn(name, fields...), len(fields) > 0
	case []any:
		if len(v) != 1 && name == "tools" || len(v) == 0 {
			return column{}, false
		}
		first, ok := newColumn("element", v[0])
		for _, e := range v[1:] {
			other, fits := newColumn("element", e)
			ok = ok && fits && first.kind == other.kind && first.kind != groupKind && first.kind != listKind
		}
		return listColumn(name, first), ok
	}
	return column{}, false
}

// schema is the schema of a parquet file.
type schema struct {
	columns []column
	parquet *parquet.Schema
}

func newSchema(columns []column) *schema {
	return &schema{columns, parquet.NewSchema("rows", groupNode(columns))}
}

// orderedGroup is a group that stores its members in the order of names, instead of
// sorted.
type orderedGroup struct {
	parquet.Group
	names []string
}

// Fields implements parquet.Node.
func (g orderedGroup) Fields() []parquet.Field {
	fields := g.Group.Fields()
	slices.SortFunc(fields, func(a, b parquet.Field) int {
		return slices.Index(g.names, a.Name()) - slices.Index(g.names, b.Name())
	})
	return fields
}

func groupNode(columns []column) parquet.Node {
	g := orderedGroup{parquet.Group{}, nil}
	for _, c := range columns {
		g.Group[c.name] = parquet.Optional(parquetNode(c))
		g.names = append(g.names, c.name)
	}
	return g
}

// parquetNode returns the library's description of a column.
func parquetNode(c column) parquet.Node {
	switch c.kind {
	case intKind:
		return parquet.Int(64)
	case floatKind:
		return parquet.Leaf(parquet.DoubleType)
	case boolKind:
		return parquet.Leaf(parquet.BooleanType)
	case timeKind:
		return parquet.Timestamp(parquet.Microsecond)
	case listKind:
		return parquet.List(parquetNode(c.fields[0]))
	case groupKind:
		return groupNode(c.fields)
	}
	return parquet.String()
}

// convert converts a row. It fails if a value has no column or does not fit its column,
// so that no value is lost.
func (s *schema) convert(o object) (parquet.Row, error) {
	row, err := fitMembers(s.columns, o)
	if err != nil {
		return nil, err
	}
	return s.parquet.Deconstruct(nil, row), nil
}

// fitMembers converts an object to a map for parquet.Schema.Deconstruct.
func fitMembers(columns []column, o object) (map[string]any, error) {
	fitted := map[string]any{}
	for _, m := range o {
		i := slices.IndexFunc(columns, func(c column) bool { return c.name == m.name })
		if i < 0 {
			return nil, skipf("parquet: no column for %.40q", m.name)
		}
		var err error
		if fitted[m.name], err = columns[i].fit(m.value); err != nil {
			return nil, err
		}
	}
	return fitted, nil
}

// fit converts a value of the column for parquet.Schema.Deconstruct.
func (c column) fit(v any) (any, error) {
	if raw, ok := v.(json.RawMessage); ok && c.kind != jsonKind {
		var err error
		if v, err = decode(raw); err != nil {
			return nil, err
		}
	}
	if v == nil {
		return nil, nil
	}
	ok := false
	switch c.kind {
	case listKind:
		if elements, ok := v.([]any); ok {
			fitted := []any{}
			for _, e := range elements {
				value, err := c.fields[0].fit(e)
				if err != nil {
					return nil, err
				}
				fitted = append(fitted, value)
			}
			return fitted, nil
		}
	case groupKind:
		if o, ok := v.(object); ok {
			return fitMembers(c.fields, o)
		}
	case jsonKind:
		text, err := encode(v)
		return string(text), err
	case floatKind:
		if n, ok := v.(json.Number); ok {
			return n.Float64()
		}
	case textKind:
		_, ok = v.(string)
	case boolKind:
		_, ok = v.(bool)
	case intKind:
		_, ok = v.(int64)
	case timeKind:
		if t, ok := v.(time.Time); ok {
			return t.UnixMicro(), nil
		}
	}
	if !ok {
		return nil, skipf("parquet: wrong type of value for %.40q", c.name)
	}
	return v, nil
}

// rowWriter writes rows to a file.
type rowWriter interface {
	// write writes a row. line is the row as JSON, with a newline.
	write(row parquet.Row, line []byte) error
	close() error
}

// maxPending is the size at which rows are passed to the library, in bytes of JSON. Each
// call of the library ends a page, and small pages compress badly.
const maxPending = 4 << 20

// parquetWriter writes rows to a parquet file.
type parquetWriter struct {
	w            *parquet.GenericWriter[any]
	pending      []parquet.Row // not yet passed to the library
	pendingBytes int           // size of pending, in bytes of JSON
	groupBytes   int           // size of the current row group without pending, in bytes of JSON
}

func (s *schema) newWriter(out io.Writer) *parquetWriter {
	return &parquetWriter{w: parquet.NewGenericWriter[any](out, s.parquet, parquet.Compression(&parquet.Zstd), parquet.CreatedBy("mini", "", ""))}
}

func (p *parquetWriter) write(row parquet.Row, line []byte) error {
	p.pending = append(p.pending, row)
	if p.pendingBytes += len(line); p.pendingBytes < maxPending {
		return nil
	}
	if err := p.flush(); err != nil || p.groupBytes < maxRowGroup {
		return err
	}
	p.groupBytes = 0
	return p.w.Flush()
}

func (p *parquetWriter) flush() error {
	_, err := p.w.WriteRows(p.pending)
	p.groupBytes += p.pendingBytes
	p.pending, p.pendingBytes = nil, 0
	return err
}

func (p *parquetWriter) close() error {
	if err := p.flush(); err != nil {
		return err
	}
	return p.w.Close()
}
