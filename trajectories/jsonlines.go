package trajectories

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"
)

// jsonValue is a value within a text of JSON: a part of the text, not a copy.
type jsonValue struct {
	text     []byte
	from, to int
}

func (v jsonValue) data() []byte { return v.text[v.from:v.to] }

func (v jsonValue) kind() string { return KindOf(v.data()) }

// wrong says what is wrong with a value, and on which line it begins.
func (v jsonValue) wrong(format string, args ...any) error {
	return fmt.Errorf("line %d: %w", lineAt(v.text, v.from), fmt.Errorf(format, args...))
}

func lineAt(text []byte, at int) int { return 1 + bytes.Count(text[:at], []byte("\n")) }

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
	dec := json.NewDecoder(bytes.NewReader(text))
	single := json.Valid(text)
	var raw json.RawMessage // one piece of memory for all values
	for at := skip(text, 0, ""); at < len(text); at = skip(text, at, "") {
		v := jsonValue{text, at, len(bytes.TrimRight(text, " \t\r\n"))}
		if !single {
			if err := dec.Decode(&raw); err != nil {
				return syntaxError(v, err)
			}
			v.to = int(dec.InputOffset())
		}
		if n := validUTF8(v.data()); n < v.to-v.from {
			return jsonValue{text, at + n, v.to}.wrong("this is not UTF-8")
		}
		if err := f(v); err != nil {
			return err
		}
		at = v.to
	}
	return nil
}

// skip is where the next value begins: behind white space, and the marks that may
// stand before it.
func skip(text []byte, at int, marks string) int {
	for at < len(text) && strings.IndexByte(" \t\r\n"+marks, text[at]) >= 0 {
		at++
	}
	return at
}

// syntaxError finds the line of the first mistake. The decoder's own offsets count
// from what it had read, so the text is looked at once more.
func syntaxError(v jsonValue, err error) error {
	at := v.from
	if s, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(v.text[v.from:], new(json.RawMessage))); ok {
		err = s
		at += max(0, int(s.Offset)-1)
	}
	return fmt.Errorf("line %d: %w", lineAt(v.text, at), err)
}

// validUTF8 is how many of the first bytes are UTF-8.
func validUTF8(data []byte) int {
	if utf8.Valid(data) {
		return len(data)
	}
	for at := 0; ; {
		r, n := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && n == 1 {
			return at
		}
		at += n
	}
}

// members are those of a valid object or list, with the names that they have in
// an object.
func (v jsonValue) members() iter.Seq2[string, jsonValue] {
	return func(yield func(string, jsonValue) bool) {
		dec := json.NewDecoder(bytes.NewReader(v.data()))
		open, _ := dec.Token()
		var raw json.RawMessage // one piece of memory for all values
		for dec.More() {
			key := ""
			if open == json.Delim('{') {
				name, _ := dec.Token()
				key, _ = name.(string)
			}
			from := skip(v.text, v.from+int(dec.InputOffset()), ",:")
			if dec.Decode(&raw) != nil || !yield(key, jsonValue{v.text, from, v.from + int(dec.InputOffset())}) {
				return
			}
		}
	}
}
