package datasets

import (
	"bytes"
	"encoding/json"
	"errors"
)

// rowID is the id of a row of JSON, without a look at the other columns: most
// rows of a large dataset are read for their ids only. A row that is not quite
// as expected is parsed in full, which says what is wrong with it.
func rowID(raw []byte) (string, error) {
	if id, ok := skim(raw); ok {
		return id, checkID(id)
	}
	var row map[string]json.RawMessage
	if err := json.Unmarshal(raw, &row); err != nil {
		return "", explain(err)
	}
	if row == nil {
		return "", errors.New("not an object")
	}
	var id string
	if err := text(row, "instance_id", &id); err != nil {
		return "", err
	}
	if id == "" {
		return "", errors.New("instance_id is missing or empty")
	}
	return id, checkID(id)
}

// skim looks for instance_id among the keys of an object, passing over the
// values without checking them. It wants to see the object end, so that a torn
// row is found.
func skim(raw []byte) (id string, ok bool) {
	s := skimmer{raw: raw}
	if s.next() != '{' {
		return "", false
	}
	for s.at++; ; s.at++ { // past "{" or ","
		if s.next() != '"' {
			return "", false
		}
		key := s.quoted()
		if bytes.IndexByte(key, '\\') >= 0 || s.next() != ':' {
			return "", false
		}
		s.at++
		s.next()
		value := s.value()
		// As with encoding/json, the last one of equal keys counts.
		if string(key) == `"instance_id"` {
			if json.Unmarshal(value, &id) != nil || id == "" || len(value) == 0 || value[0] != '"' {
				return "", false
			}
		}
		switch s.next() {
		case ',':
		case '}':
			s.at++
			s.next()
			return id, id != "" && s.at == len(raw)
		default:
			return "", false
		}
	}
}

// skimmer is a place in a text of JSON.
type skimmer struct {
	raw []byte
	at  int
}

// next passes over white space and returns the byte that follows, 0 at the
// end.
func (s *skimmer) next() byte {
	for s.at < len(s.raw) {
		switch c := s.raw[s.at]; c {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return c
		}
	}
	return 0
}

// quoted passes over a string and returns it with its quotes.
func (s *skimmer) quoted() []byte {
	start := s.at
	for s.at++; s.at < len(s.raw); s.at++ {
		end := bytes.IndexByte(s.raw[s.at:], '"')
		if end < 0 {
			break
		}
		s.at += end
		escapes := 0
		for s.raw[s.at-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			s.at++
			return s.raw[start:s.at]
		}
	}
	s.at = len(s.raw)
	return nil
}

// value passes over a value of any kind.
func (s *skimmer) value() []byte {
	start := s.at
	depth := 0
	for s.at < len(s.raw) {
		switch s.raw[s.at] {
		case '"':
			s.quoted()
			if depth == 0 {
				return s.raw[start:s.at]
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return s.raw[start:s.at]
			}
			depth--
		case ',':
			if depth == 0 {
				return s.raw[start:s.at]
			}
		}
		s.at++
	}
	return s.raw[start:s.at]
}
