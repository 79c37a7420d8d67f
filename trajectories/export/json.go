package export

import (
	"bytes"
	"encoding/json"
)

// encode encodes a value as JSON on one line, without a newline.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// float is a number that has a decimal point in JSON, so that readers that guess the types of columns do not take it
// for an integer.
type float float64

// MarshalJSON implements json.Marshaler.
func (f float) MarshalJSON() ([]byte, error) {
	data, err := json.Marshal(float64(f))
	if !bytes.ContainsAny(data, ".e") {
		data = append(data, ".0"...)
	}
	return data, err
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
