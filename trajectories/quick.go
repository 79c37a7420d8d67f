package trajectories

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/minibench/mini/model"
)

// unmarshal reads the data of a message. Most of a journal's bytes are the texts
// of messages, and encoding/json goes through each of them several times.
func (m *Message) unmarshal(data []byte) error {
	var quick Message
	if quick.quick(data) {
		*m = quick
		return nil
	}
	return json.Unmarshal(data, m)
}

// quick reads a message as a Journal writes it; false leaves it to encoding/json.
func (m *Message) quick(data []byte) bool {
	return eachMember(data, func(key, value []byte) bool {
		var ok bool
		switch string(key) {
		case "role":
			m.Role, ok = quoted[model.Role](value)
		case "content":
			m.Content, ok = quoted[string](value)
		case "reasoning_content":
			m.Reasoning, ok = quoted[string](value)
		case "tool_call_id":
			m.CallID, ok = quoted[string](value)
		case "cause":
			m.Cause, ok = quoted[Cause](value)
		case "tool_calls":
			ok = json.Unmarshal(value, &m.Calls) == nil
		case "actions":
			ok = json.Unmarshal(value, &m.Actions) == nil
		case "images":
			ok = json.Unmarshal(value, &m.Images) == nil
		case "kept":
			m.Kept = bytes.Clone(value)
			ok = json.Valid(value)
		default:
			return false
		}
		return ok
	})
}

// Lean is the data of a call without what its provider said word by word, which
// is the bulk of it.
func Lean(call json.RawMessage) json.RawMessage {
	lean := make([]byte, 1, 512)
	lean[0] = '{'
	ok := eachMember(call, func(key, value []byte) bool {
		if string(key) == "raw" {
			return true
		}
		if len(lean) > 1 {
			lean = append(lean, ',')
		}
		lean = append(append(append(append(lean, '"'), key...), '"', ':'), value...)
		return true
	})
	if !ok {
		return call
	}
	return append(lean, '}')
}

// eachMember calls f with the members of an object that has no white space
// between them, and no escapes in their names, as a Journal writes it. It looks
// at values only to find their ends. False means that the object, or f, is
// otherwise.
func eachMember(data []byte, f func(key, value []byte) bool) bool {
	if len(data) < 2 || data[0] != '{' || data[len(data)-1] != '}' {
		return false
	}
	if len(data) == 2 {
		return true
	}
	for at := 1; ; at++ {
		end := stringEnd(data, at)
		if end < 0 || end+1 >= len(data) || data[end] != ':' {
			return false
		}
		key, start := data[at+1:end-1], end+1
		if at = valueEnd(data, start); at < 0 || at >= len(data) || bytes.IndexByte(key, '\\') >= 0 || !f(key, data[start:at]) {
			return false
		}
		if at == len(data)-1 {
			return true
		}
		if data[at] != ',' {
			return false
		}
	}
}

// stringEnd is where the string ends that begins here; -1 where none does.
func stringEnd(data []byte, at int) int {
	if at >= len(data) || data[at] != '"' {
		return -1
	}
	for at++; at < len(data); {
		n := bytes.IndexByte(data[at:], '"')
		if n < 0 {
			return -1
		}
		at += n + 1
		slashes := 0
		for data[at-2-slashes] == '\\' { // it ends at the quote that begins the string
			slashes++
		}
		if slashes%2 == 0 {
			return at
		}
	}
	return -1
}

// valueEnd is where the value ends that begins here; -1 where none does.
func valueEnd(data []byte, at int) int {
	depth := 0
	for at < len(data) {
		switch data[at] {
		case '"':
			if at = stringEnd(data, at); at < 0 {
				return -1
			}
			if depth == 0 {
				return at
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return at // of a number or a word
			}
			if depth--; depth == 0 {
				return at + 1
			}
		case ',':
			if depth == 0 {
				return at
			}
		case ' ', '\t', '\n', '\r':
			if depth == 0 {
				return -1
			}
		}
		at++
	}
	return -1
}

// unescaped are what the short escapes stand for.
var unescaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// quoted reads a string; false leaves it to encoding/json.
func quoted[T ~string](value []byte) (T, bool) {
	if len(value) < 2 || value[0] != '"' || stringEnd(value, 0) != len(value) {
		return "", false
	}
	value = value[1 : len(value)-1]
	if !utf8.Valid(value) {
		return "", false
	}
	next := bytes.IndexByte(value, '\\')
	if next < 0 {
		return T(value), printing(value)
	}
	plain := make([]byte, 0, len(value))
	for {
		if !printing(value[:next]) {
			return "", false
		}
		plain = append(plain, value[:next]...)
		c, number := unescaped[value[next+1]], value[next+1] == 'u'
		switch value = value[next+2:]; {
		case number: // rare enough
			return slowText[T](plain, value)
		case c == 0:
			return "", false
		}
		plain = append(plain, c)
		if next = bytes.IndexByte(value, '\\'); next < 0 {
			plain = append(plain, value...)
			return T(plain), printing(value)
		}
	}
}

// slowText goes on before an escape by number, of which the first two bytes are
// gone already.
func slowText[T ~string](before, rest []byte) (T, bool) {
	quoted := append(append([]byte(`"\u`), rest...), '"')
	var s string
	if json.Unmarshal(quoted, &s) != nil {
		return "", false
	}
	return T(before) + T(s), true
}

// printing says that there are no control characters, which JSON forbids.
func printing(b []byte) bool {
	for _, c := range b {
		if c < ' ' {
			return false
		}
	}
	return true
}
