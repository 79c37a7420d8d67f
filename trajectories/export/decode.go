package export

import (
	"bytes"
	"encoding/json"
	"errors"
)

// members are those of an object, in their order.
type members []member

type member struct {
	name  string
	value any
}

func (m members) get(name string) any {
	for _, x := range m {
		if x.name == name {
			return x.value
		}
	}
	return nil
}

// decode reads JSON with objects as members, and numbers as they stand there.
func decode(data []byte, v *any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var err error
	*v, err = value(d)
	return err
}

func value(d *json.Decoder) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := value(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.Token()
		return list, err
	case json.Delim('{'):
		object := members{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			name, ok := key.(string)
			if !ok {
				return nil, errors.New("a member without a name")
			}
			v, err := value(d)
			if err != nil {
				return nil, err
			}
			object = append(object, member{name, v})
		}
		_, err := d.Token()
		return object, err
	}
	return t, nil
}

// plainJSON is the text of what decode has read.
func plainJSON(v any) ([]byte, error) {
	var r row
	r.first = true
	err := r.value(v)
	return r.data, err
}

func (r *row) value(v any) error {
	switch v := v.(type) {
	case members:
		r.open('{')
		for _, m := range v {
			r.key(m.name)
			if err := r.value(m.value); err != nil {
				return err
			}
		}
		r.close('}')
	case []any:
		r.open('[')
		for _, e := range v {
			r.comma()
			if err := r.value(e); err != nil {
				return err
			}
		}
		r.close(']')
	default:
		text, err := json.Marshal(v)
		r.data = append(r.data, text...)
		return err
	}
	return nil
}
