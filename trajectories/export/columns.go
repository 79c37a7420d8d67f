package export

import (
	"bytes"
	"encoding/json"
	"slices"
)

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
	return column{name, listKind, []column{of}}
}

func group(name string, of ...column) column { return column{name, groupKind, of} }

// messageList is a list of messages in OpenAI's form.
func messageList(name string, args column, extra ...column) column {
	args.name = "arguments"
	of := texts("role", "content", "reasoning_content")
	of = append(of, list("tool_calls", group("", column{name: "id"}, column{name: "type"}, group("function", column{name: "name"}, args))))
	of = append(of, texts("tool_call_id", "name")...)
	return list(name, group("", append(of, extra...)...))
}

func aboutColumns(prefix string) []column {
	if prefix != "" {
		return []column{
			{name: prefix + "attempt", kind: intKind},
			{name: prefix + "model"},
			{name: prefix + "verdict"},
			{name: prefix + "steps", kind: intKind},
			{name: prefix + "tokens", kind: intKind},
			{name: prefix + "autosubmitted", kind: boolKind},
			{name: prefix + "journal_sha256"},
		}
	}
	return []column{
		{name: "instance_id"},
		{name: "attempt", kind: intKind},
		{name: "sample", kind: intKind},
		{name: "model"},
		{name: "verdict"},
		{name: "steps", kind: intKind},
		{name: "tokens", kind: intKind},
		{name: "autosubmitted", kind: boolKind},
		{name: "journal_sha256"},
	}
}

func chatColumns(tools []column, o Options) []column {
	var extra []column
	if o.Format == Axolotl {
		extra = append(extra, column{name: "train", kind: boolKind})
	}
	all := append([]column{messageList("messages", argsColumn(tools), extra...)}, tools[:1]...)
	return append(all, aboutColumns("")...)
}

func sharegptColumns([]column, Options) []column {
	all := append([]column{list("conversations", group("", texts("from", "value")...))}, texts("system", "tools")...)
	return append(all, aboutColumns("")...)
}

func argsColumn(tools []column) column { return tools[1] }

func stepColumns(tools []column, _ Options) []column {
	all := []column{messageList("prompt", argsColumn(tools)), messageList("completion", argsColumn(tools)), tools[0]}
	return append(append(all, aboutColumns("")...), column{name: "step", kind: intKind})
}

func labelledColumns(tools []column, o Options) []column {
	return append(stepColumns(tools, o), column{name: "label", kind: boolKind})
}

func pairColumns(tools []column, _ Options) []column {
	args := argsColumn(tools)
	all := []column{messageList("prompt", args), messageList("chosen", args), messageList("rejected", args), tools[0]}
	return append(append(all, aboutColumns("")...), aboutColumns("rejected_")...)
}

// toolColumns are the column of the tools and that of the arguments of a call.
// They can be what they are in JSON where every attempt was offered the same
// tool, all of whose arguments are texts that must be given: a file has no place
// for members that some rows lack, and gives readers nulls for them, which then
// stand in prompts.
func toolColumns(sets [][]byte, args Arguments) ([]column, error) {
	both := []column{{name: "tools", kind: jsonKind}, {name: "arguments"}}
	var distinct [][]byte
	for _, s := range sets {
		if !slices.ContainsFunc(distinct, func(d []byte) bool { return bytes.Equal(d, s) }) {
			distinct = append(distinct, s)
		}
	}
	if len(distinct) == 1 {
		var tools any
		if err := decode(distinct[0], &tools); err != nil {
			return nil, err
		}
		if c, ok := shape("tools", tools); ok {
			both[0] = c
		}
	}
	if args == Text || len(distinct) == 0 {
		return both, nil
	}
	given, ok := arguments(distinct)
	if !ok {
		return nil, wrong("--parquet: the attempts were offered tools that take different arguments; add --tool-arguments text")
	}
	both[1] = group("arguments", texts(given...)...)
	return both, nil
}

// arguments are those of the only tool.
func arguments(sets [][]byte) ([]string, bool) {
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
	case members:
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
