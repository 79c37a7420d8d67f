package export

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// maxRowGroup is the size at which a row group is written, in bytes of JSON. The writer
// holds a row group in memory.
const maxRowGroup = 32 << 20

// toolColumns returns the column for the tools and the names of the columns for the arguments
// of a tool call; nil if these are a string.
// toolSets are as in Config.Tools. The tools have columns of their own only if all attempts
// have the same single tool; else they are JSON. The arguments are a string if mode is
// ArgumentsText or there are no tools, else a group, which requires that argumentNames
// accepts the tools. Without these conditions, some rows would lack members of the groups;
// readers would return nulls for these members, and chat templates would print the nulls.
func toolColumns(toolSets []json.RawMessage, mode ToolArguments) (tools parquet.Node, args []string, err error) {
	tools = parquet.String()
	toolSets = slices.Clone(toolSets)
	slices.SortFunc(toolSets, func(a, b json.RawMessage) int { return slices.Compare(a, b) })
	toolSets = slices.CompactFunc(toolSets, func(a, b json.RawMessage) bool { return slices.Equal(a, b) })
	if len(toolSets) == 1 {
		d := json.NewDecoder(bytes.NewReader(toolSets[0]))
		if node, ok := nodeOf(d, "tools"); ok {
			tools = node
		}
	}
	if mode == ArgumentsText || len(toolSets) == 0 {
		return tools, nil, nil
	}
	names, ok := argumentNames(toolSets)
	if !ok {
		return tools, nil, optionError("--parquet: the tools of the attempts have different arguments; use --tool-arguments text")
	}
	return tools, names, nil
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

// nodeOf returns a column for values like the next one of d. It returns false if that contains
// null, an empty object, an empty list, a list of several objects or lists, or a list whose
// elements are of different types.
func nodeOf(d *json.Decoder, name string) (parquet.Node, bool) {
	token, err := d.Token()
	if err != nil {
		return nil, false
	}
	switch token := token.(type) {
	case string:
		return parquet.String(), true
	case bool:
		return parquet.Leaf(parquet.BooleanType), true
	case float64:
		return parquet.Leaf(parquet.DoubleType), true
	case json.Delim:
		var names []string
		var nodes []parquet.Node
		for d.More() {
			member := "element"
			if token == '{' {
				key, _ := d.Token()
				member, _ = key.(string) // a syntax error follows otherwise
			}
			node, ok := nodeOf(d, member)
			if !ok {
				return nil, false
			}
			names, nodes = append(names, member), append(nodes, node)
		}
		if _, err := d.Token(); err != nil || len(nodes) == 0 {
			return nil, false
		}
		if token == '{' {
			return groupOf(names, nodes), true
		}
		for _, n := range nodes[1:] {
			if name == "tools" || !n.Leaf() || !nodes[0].Leaf() || n.Type().Kind() != nodes[0].Type().Kind() {
				return nil, false
			}
		}
		return parquet.List(nodes[0]), true
	}
	return nil, false
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

// groupOf returns a group of columns that may be null.
func groupOf(names []string, nodes []parquet.Node) parquet.Node {
	g := orderedGroup{parquet.Group{}, names}
	for i, name := range names {
		g.Group[name] = parquet.Optional(nodes[i])
	}
	return g
}

// rowNode returns the columns for the JSON of a Go type, in the order of its fields. known has
// columns that differ from those of the Go type, by name; nil for none.
func rowNode(t reflect.Type, known map[string]parquet.Node) parquet.Node {
	switch t.Kind() {
	case reflect.Pointer:
		return rowNode(t.Elem(), known)
	case reflect.Slice:
		return parquet.List(rowNode(t.Elem(), known))
	case reflect.Int64:
		return parquet.Int(64)
	case reflect.Float64:
		return parquet.Leaf(parquet.DoubleType)
	case reflect.Bool:
		return parquet.Leaf(parquet.BooleanType)
	case reflect.Struct:
		var names []string
		var nodes []parquet.Node
		for _, f := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			node, isKnown := known[name]
			if f.Anonymous || isKnown && node == nil {
				continue
			}
			if !isKnown {
				node = rowNode(f.Type, known)
			}
			names, nodes = append(names, name), append(nodes, node)
		}
		return groupOf(names, nodes)
	}
	return parquet.String()
}

// rowWriter writes rows, as JSON on a line, to a file.
type rowWriter interface {
	write(line []byte) error
	close() error
}

// maxPending is the size at which rows are passed to the library, in bytes of JSON. Each
// call of the library ends a page, and small pages compress badly.
const maxPending = 4 << 20

// parquetWriter writes rows to a parquet file.
type parquetWriter struct {
	w            *parquet.GenericWriter[any]
	pending      []any // not yet passed to the library
	pendingBytes int   // size of pending, in bytes of JSON
	groupBytes   int   // size of the current row group without pending, in bytes of JSON
}

func newParquetWriter(out io.Writer, columns parquet.Node) *parquetWriter {
	schema := parquet.NewSchema("rows", columns)
	return &parquetWriter{w: parquet.NewGenericWriter[any](out, schema, parquet.Compression(&parquet.Zstd), parquet.CreatedBy("mini", "", ""))}
}

func (p *parquetWriter) write(line []byte) error {
	p.pending = append(p.pending, json.RawMessage(line))
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
	_, err := p.w.Write(p.pending)
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
