package export

import (
	"bytes"
	"encoding/json"
	"errors"
)

// object is a JSON object with ordered members, for example a row. The type of a value is
// string, int64, bool, time.Time, json.Number, json.RawMessage without newlines, object, or []any
// of these; or the value is nil.
type object []member

type member struct {
	name  string
	value any
}

// encoder encodes values as JSON on one line.
type encoder struct {
	buf    bytes.Buffer
	scalar *json.Encoder // for values other than objects, lists and raw messages; writes to buf
}

func newEncoder() *encoder {
	e := &encoder{}
	e.scalar = json.NewEncoder(&e.buf)
	e.scalar.SetEscapeHTML(false)
	return e
}

// encode encodes a value as JSON on one line.
func encode(v any) ([]byte, error) {
	e := newEncoder()
	err := e.encode(v)
	return e.buf.Bytes(), err
}

// encode appends the JSON encoding of a value to buf.
func (e *encoder) encode(v any) error {
	switch v := v.(type) {
	case object:
		delim := byte('{')
		for _, m := range v {
			e.buf.WriteByte(delim)
			delim = ','
			if err := e.encode(m.name); err != nil {
				return err
			}
			e.buf.WriteByte(':')
			if err := e.encode(m.value); err != nil {
				return err
			}
		}
		if len(v) == 0 {
			e.buf.WriteByte('{')
		}
		e.buf.WriteByte('}')
	case []any:
		e.buf.WriteByte('[')
		for i, element := range v {
			if i > 0 {
				e.buf.WriteByte(',')
			}
			if err := e.encode(element); err != nil {
				return err
			}
		}
		e.buf.WriteByte(']')
	case json.RawMessage:
		e.buf.Write(v)
	default:
		err := e.scalar.Encode(v)
		e.buf.Truncate(max(e.buf.Len()-1, 0)) // remove the newline that Encode appends
		return err
	}
	return nil
}

// decode decodes a JSON value. Objects keep the order of their members, and numbers
// their digits.
func decode(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return decodeNext(d)
}

func decodeNext(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := decodeNext(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.Token()
		return list, err
	case json.Delim('{'):
		o := object{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			name, ok := key.(string)
			if !ok {
				return nil, errors.New("an object key is not a string")
			}
			v, err := decodeNext(d)
			if err != nil {
				return nil, err
			}
			o = append(o, member{name, v})
		}
		_, err := d.Token()
		return o, err
	}
	return token, nil
}

// compact removes white space from JSON. It returns false if raw is invalid.
func compact(raw []byte) (json.RawMessage, bool) {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return nil, false
	}
	return b.Bytes(), true
}

// compactObject is compact for the arguments of a tool call. It also returns false if
// they are not an object.
func compactObject(arguments string) (json.RawMessage, bool) {
	b, ok := compact([]byte(arguments))
	return b, ok && len(b) > 0 && b[0] == '{'
}
