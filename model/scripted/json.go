package scripted

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"gopkg.in/yaml.v3"
)

// maxDepth bounds the nesting of a JSON script, and of the arguments of a tool call.
const maxDepth = 1000

// jsonParser parses JSON into a YAML tree. A YAML parser cannot read all JSON: it
// rejects surrogate pairs, the escapes of characters beyond U+FFFF.
type jsonParser struct {
	*json.Decoder
	data       []byte
	line       int // line number at lineOffset
	lineOffset int64
}

// parseJSON parses a JSON script. Its errors begin with the line number.
func parseJSON(data []byte) (*yaml.Node, error) {
	p := &jsonParser{Decoder: json.NewDecoder(bytes.NewReader(data)), data: data, line: 1}
	p.UseNumber()
	n, err := p.value(0)
	if err == nil {
		if _, next := p.Token(); !errors.Is(next, io.EOF) {
			err = errors.New("unexpected data after the JSON value")
		}
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("%d: %w", p.currentLine(), err)
	}
	return n, nil
}

// currentLine returns the line of the last token.
func (p *jsonParser) currentLine() int {
	offset := p.InputOffset()
	p.line += bytes.Count(p.data[p.lineOffset:offset], []byte("\n"))
	p.lineOffset = offset
	return p.line
}

func (p *jsonParser) value(depth int) (*yaml.Node, error) {
	t, err := p.Token()
	if err != nil {
		return nil, err
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("nested more than %d deep", maxDepth)
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Line: p.currentLine()}
	switch t := t.(type) {
	case json.Delim:
		n.Kind = yaml.SequenceNode
		if t == '{' {
			n.Kind = yaml.MappingNode
		}
		return n, p.children(n, depth)
	case string:
		n.Tag, n.Value = "!!str", t
	case json.Number:
		n.Tag, n.Value = "!!float", t.String()
	case bool:
		n.Tag, n.Value = "!!bool", fmt.Sprint(t)
	default:
		n.Tag = "!!null"
	}
	return n, nil
}

// children reads the keys and values of an object, or the items of an array, up
// to the closing bracket.
func (p *jsonParser) children(n *yaml.Node, depth int) error {
	for p.More() {
		child, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		n.Content = append(n.Content, child)
	}
	_, err := p.Token()
	return err
}
