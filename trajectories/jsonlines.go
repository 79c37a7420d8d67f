package trajectories

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// jsonValue is a value within a text of JSON, with the line it begins on. Its
// data is part of the text, not a copy.
type jsonValue struct {
	key     string // the name it stands under in an object
	data    []byte
	line    int
	members []jsonValue // of an object or list at the outermost level
}

// wrong says what is wrong with a value, and where it is.
func (v jsonValue) wrong(format string, args ...any) error {
	return fmt.Errorf("line %d: %s", v.line, fmt.Sprintf(format, args...))
}

func (v jsonValue) kind() string { return KindOf(v.data) }

// KindOf says what a value of JSON is, for messages: "a list".
func KindOf(v json.RawMessage) string {
	if len(v) == 0 {
		return "nothing"
	}
	switch v[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 'n':
		return "null"
	case 't', 'f':
		return "true or false"
	}
	return "a number"
}

// eachValue calls f with the values of a text, one after the other; a file of
// JSON has one, a file of JSON lines many. What is no JSON, and no UTF-8, is an
// error with the number of the line.
func eachValue(text []byte, f func(jsonValue) error) error {
	w := jsonWalk{text: text, dec: json.NewDecoder(bytes.NewReader(text)), line: 1}
	for w.next("") < len(text) {
		start := w.at
		v, err := w.outermost()
		if err != nil {
			return w.explain(start, err)
		}
		if err := f(v); err != nil {
			return err
		}
	}
	return nil
}

// jsonWalk goes through a text. Lines are counted as it goes.
type jsonWalk struct {
	text []byte
	dec  *json.Decoder
	at   int // how far lines are counted
	line int
	// skipped is what was decoded last: one piece of memory for all values.
	skipped json.RawMessage
}

// next moves to the beginning of the next value: past white space and the
// marks that may stand before a value here.
func (w *jsonWalk) next(marks string) int {
	to := int(w.dec.InputOffset())
	for to < len(w.text) && strings.IndexByte(" \t\r\n"+marks, w.text[to]) >= 0 {
		to++
	}
	w.line += bytes.Count(w.text[w.at:to], []byte("\n"))
	w.at = to
	return to
}

func (w *jsonWalk) outermost() (jsonValue, error) {
	if c := w.text[w.at]; c != '{' && c != '[' {
		return w.value()
	}
	v := jsonValue{line: w.line}
	start := w.at
	open, err := w.dec.Token()
	if err != nil {
		return v, err
	}
	for w.dec.More() {
		if len(v.members) == maxMembers {
			return v, fmt.Errorf("%w: more than %d", errTooMany, maxMembers)
		}
		var key string
		if open == json.Delim('{') {
			name, err := w.dec.Token()
			if err != nil {
				return v, err
			}
			key, _ = name.(string)
		}
		w.next(",:")
		m, err := w.value()
		if err != nil {
			return v, err
		}
		m.key = key
		v.members = append(v.members, m)
	}
	if _, err := w.dec.Token(); err != nil {
		return v, err
	}
	v.data = w.text[start:w.dec.InputOffset()]
	if !utf8.Valid(v.data) {
		return v, errNoUTF8
	}
	return v, nil
}

// maxMembers bounds what is held of an object or list: each member takes far
// more memory than the three bytes that it may take in the file.
const maxMembers = 1_000_000

var (
	errNoUTF8  = errors.New("this is not UTF-8")
	errTooMany = errors.New("too many values in one object or list")
)

// fieldsOf are those fields of an object that are named here, exactly, and the
// last of each name: as in Python. The others take no memory.
func fieldsOf(object []byte, names ...string) (map[string]json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(object))
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	fields := map[string]json.RawMessage{}
	var other json.RawMessage // one piece of memory for all of them
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, err
		}
		if name, _ := token.(string); slices.Contains(names, name) {
			var field json.RawMessage
			err = dec.Decode(&field)
			fields[name] = field
		} else {
			err = dec.Decode(&other)
		}
		if err != nil {
			return nil, err
		}
	}
	return fields, nil
}

func (w *jsonWalk) value() (jsonValue, error) {
	v := jsonValue{line: w.line}
	start := w.at
	if err := w.dec.Decode(&w.skipped); err != nil {
		return v, err
	}
	v.data = w.text[start:w.dec.InputOffset()]
	return v, nil
}

// explain finds the line of the first mistake from start on. The decoder's own
// offsets count from what it had read, so the text is looked at once more.
func (w *jsonWalk) explain(start int, err error) error {
	at := start
	var value json.RawMessage
	switch {
	case errors.Is(err, errTooMany):
		return fmt.Errorf("line %d: %w", w.line, err)
	case errors.Is(err, errNoUTF8):
		for at < len(w.text) {
			r, n := utf8.DecodeRune(w.text[at:])
			if r == utf8.RuneError && n == 1 {
				break
			}
			at += n
		}
	default:
		if s, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(w.text[start:], &value)); ok {
			err = s
			at += max(0, int(s.Offset)-1)
		}
	}
	line := 1 + bytes.Count(w.text[:at], []byte("\n"))
	return fmt.Errorf("line %d: %w", line, err)
}
