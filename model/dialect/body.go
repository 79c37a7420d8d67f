package dialect

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// Body is a JSON object, such as a request. Edits change its fields and leave the bytes of
// the others as they are.
type Body struct{ fields []field }

type field struct {
	name  string
	value json.RawMessage
}

// ParseBody reads a JSON object without duplicate keys.
func ParseBody(data []byte) (*Body, error) {
	p := newParser(nil, data)
	if t, err := p.dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("read JSON: it is not an object")
	}
	b := &Body{}
	err := p.object(inData, func(name string) error {
		value, err := p.raw(name, inData)
		b.fields = append(b.fields, field{name, value})
		return err
	})
	return b, err
}

// Fields calls yield with each field, in order.
func (b *Body) Fields(yield func(name string, value json.RawMessage) bool) {
	for _, f := range b.fields {
		if !yield(f.name, f.value) {
			return
		}
	}
}

// Get returns the value of a field; nil if there is none.
func (b *Body) Get(name string) json.RawMessage {
	if i := b.index(name); i >= 0 {
		return b.fields[i].value
	}
	return nil
}

// Text returns the value of a field that is a string, else "".
func (b *Body) Text(name string) string { return text(b.Get(name)) }

// Set changes or adds a field.
func (b *Body) Set(name string, value json.RawMessage) {
	if i := b.index(name); i >= 0 {
		b.fields[i].value = value
		return
	}
	b.fields = append(b.fields, field{name, value})
}

// Delete removes a field.
func (b *Body) Delete(name string) {
	b.fields = slices.DeleteFunc(b.fields, func(f field) bool { return f.name == name })
}

func (b *Body) index(name string) int {
	return slices.IndexFunc(b.fields, func(f field) bool { return f.name == name })
}

// Bytes returns the object.
func (b *Body) Bytes() []byte {
	out := []byte{'{'}
	for i, f := range b.fields {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, quote(f.name)...), ':'), f.value...)
	}
	return append(out, '}')
}

func quote(s string) json.RawMessage {
	b, _ := json.Marshal(s) // strings always encode
	return b
}

// text returns a JSON string, else "".
func text(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s) // s stays empty
	return s
}

// paragraphs joins texts with line ends, in linear time.
type paragraphs struct{ strings.Builder }

func (p *paragraphs) add(text string) {
	if text != "" && p.Len() > 0 {
		p.WriteByte('\n')
	}
	p.WriteString(text)
}

func (b *Body) names() []string {
	names := make([]string, len(b.fields))
	for i, f := range b.fields {
		names[i] = f.name
	}
	return names
}
