// Package jinja renders prompts written for Jinja2, as mini-swe-agent has them.
//
// It has the statements if, for, set and raw, comments, white space control, all
// operators, slices, the common filters and a few methods of strings, and renders them
// to the same bytes as Jinja2 with StrictUndefined. It reads no files: include, import,
// extends and macros are errors. The template is trusted, its values are not: they are
// never rendered again, and output and work are bounded.
//
// A complete library (gonja) was measured in its place: 2.4 MB of program and 3.1 MB of
// resident memory at every start, without limits, and with another tojson.
//
//	t, err := jinja.Parse("{{ output[:80] | tojson }}")
//	text, err := t.Render(map[string]any{"output": output})
package jinja

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Error is a mistake in a template.
type Error struct {
	Line int // from 1
	Msg  string
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Msg) }

// Template is a parsed template. It may be rendered concurrently.
type Template struct{ nodes []node }

// Limits of one rendering.
const (
	maxOutput = 16 << 20 // bytes
	maxWork   = 10 << 20 // evaluated expressions, and bytes of values divided by 16
	maxDepth  = 100      // nested statements and expressions
)

// Text is a long string of which only the head and the tail are kept. Its length is
// Chars; a slice within the head or the tail is exact.
type Text struct {
	Head, Tail string
	Chars      int64 // of the whole
}

func (t Text) String() string {
	return fmt.Sprintf("%s\n[... %d characters left out ...]\n%s", t.Head, t.Chars-runes(t.Head)-runes(t.Tail), t.Tail)
}

// Render renders the template. Values are strings, numbers, booleans, nil, Text, and
// slices and maps of them.
func (t *Template) Render(vars map[string]any) (string, error) {
	s := &scope{vars: make(map[string]any, len(vars))}
	for name, v := range vars {
		s.vars[name] = normalize(v)
	}
	if err := s.render(t.nodes); err != nil {
		return "", err
	}
	return s.out.String(), nil
}

// Names returns the variables that a rendering can need: all that are not assigned by
// the template or tested with "is defined" or default, with the line of their first use.
func (t *Template) Names() map[string]int {
	used, given := map[string]int{}, map[string]bool{}
	walk(t.nodes, func(n any) {
		switch n := n.(type) {
		case name:
			if used[n.id] == 0 {
				used[n.id] = n.line
			}
		case set:
			given[n.target] = true
		case loop:
			given["loop"] = true
			for _, target := range n.targets {
				given[target] = true
			}
		case test:
			if id, ok := n.x.(name); ok {
				given[id.id] = true
			}
		case filter:
			if id, ok := n.x.(name); ok && (n.name == "default" || n.name == "d") {
				given[id.id] = true
			}
		}
	})
	maps.DeleteFunc(used, func(id string, _ int) bool { return given[id] })
	return used
}

// walk calls visit for all nodes and expressions.
func walk(n any, visit func(any)) {
	all := func(list []expr) {
		for _, x := range list {
			walk(x, visit)
		}
	}
	switch n := n.(type) {
	case nil:
		return
	case []node:
		for _, m := range n {
			walk(m, visit)
		}
		return
	}
	visit(n)
	switch n := n.(type) {
	case output:
		walk(n.x, visit)
	case branch:
		for _, c := range n.cases {
			walk(c.cond, visit)
			walk(c.body, visit)
		}
	case loop:
		walk(n.over, visit)
		walk(n.cond, visit)
		walk(n.body, visit)
		walk(n.empty, visit)
	case set:
		walk(n.x, visit)
		walk(n.body, visit)
	case list:
		all(n.items)
	case dict:
		all(n.keys)
		all(n.values)
	case unary:
		walk(n.x, visit)
	case binary:
		walk(n.x, visit)
		walk(n.y, visit)
	case compare:
		walk(n.x, visit)
		all(n.rest)
	case choice:
		walk(n.cond, visit)
		walk(n.yes, visit)
		walk(n.no, visit)
	case item:
		walk(n.x, visit)
		walk(n.key, visit)
	case slice:
		walk(n.x, visit)
		for _, bound := range n.bounds {
			walk(bound, visit)
		}
	case call:
		walk(n.x, visit)
		all(n.args)
	case filter:
		walk(n.x, visit)
		all(n.args)
	case test:
		walk(n.x, visit)
		all(n.args)
	}
}

// scope is the state of a rendering.
type scope struct {
	vars map[string]any
	out  strings.Builder
	work int
}

func (s *scope) spend(line, n int) error {
	if s.work += n; s.work > maxWork {
		return &Error{line, "the template takes too long to render"}
	}
	return nil
}

func (s *scope) write(line int, text string) error {
	if s.out.Len()+len(text) > maxOutput {
		return &Error{line, fmt.Sprintf("the result is longer than %d MB", maxOutput>>20)}
	}
	s.out.WriteString(text)
	return s.spend(line, 1+len(text)/16)
}

func (s *scope) render(nodes []node) error {
	for _, n := range nodes {
		if err := s.renderNode(n); err != nil {
			return err
		}
	}
	return nil
}

func (s *scope) renderNode(n node) error {
	switch n := n.(type) {
	case data:
		return s.write(n.line, n.text)
	case output:
		v, err := s.value(n.x)
		if err != nil {
			return err
		}
		return s.write(n.line, toString(v))
	case branch:
		for _, c := range n.cases {
			yes := c.cond == nil
			if !yes {
				v, err := s.value(c.cond)
				if err != nil {
					return err
				}
				yes = truth(v)
			}
			if yes {
				return s.render(c.body)
			}
		}
		return nil
	case set:
		return s.renderSet(n)
	case loop:
		return s.renderLoop(n)
	}
	return nil
}

func (s *scope) renderSet(n set) error {
	if n.x != nil {
		v, err := s.value(n.x)
		s.vars[n.target] = v
		return err
	}
	inner := &scope{vars: maps.Clone(s.vars), work: s.work}
	err := inner.render(n.body)
	s.work, s.vars[n.target] = inner.work, inner.out.String()
	return err
}

// renderLoop renders a loop. Assignments in it end with each turn, as in Jinja2.
func (s *scope) renderLoop(n loop) error {
	v, err := s.value(n.over)
	if err != nil {
		return err
	}
	items, ok := elements(v)
	if !ok {
		return &Error{n.line, typeName(v) + " cannot be looped over"}
	}
	outer := s.vars
	defer func() { s.vars = outer }()
	if n.cond != nil {
		var kept []any
		for _, v := range items {
			s.vars = maps.Clone(outer)
			if err := assign(s.vars, n, v); err != nil {
				return err
			}
			yes, err := s.value(n.cond)
			if err != nil {
				return err
			}
			if truth(yes) {
				kept = append(kept, v)
			}
		}
		items = kept
	}
	for i, v := range items {
		s.vars = maps.Clone(outer)
		if err := assign(s.vars, n, v); err != nil {
			return err
		}
		s.vars["loop"] = map[string]any{
			"index": int64(i + 1), "index0": int64(i), "first": i == 0, "last": i == len(items)-1,
			"length": int64(len(items)), "revindex": int64(len(items) - i), "revindex0": int64(len(items) - i - 1),
		}
		if err := s.spend(n.line, 1+len(outer)); err != nil {
			return err
		}
		if err := s.render(n.body); err != nil {
			return err
		}
	}
	if len(items) == 0 {
		s.vars = outer
		return s.render(n.empty)
	}
	return nil
}

// assign sets the targets of a loop.
func assign(vars map[string]any, n loop, v any) error {
	if len(n.targets) == 1 {
		vars[n.targets[0]] = v
		return nil
	}
	parts, ok := v.([]any)
	if !ok || len(parts) != len(n.targets) {
		return &Error{n.line, fmt.Sprintf("%s cannot be unpacked into %d variables", typeName(v), len(n.targets))}
	}
	for i, target := range n.targets {
		vars[target] = parts[i]
	}
	return nil
}

// sortedKeys returns the keys of a mapping in a fixed order; the values of prompts have
// no other.
func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
