package transport

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/minibench/mini/model"
)

// shortest is how long a key has to be to count as a secret. Local servers are
// given words like "EMPTY", which stand in ordinary text too.
const shortest = 8

const redacted = "[redacted]"

// Redactor takes a key out of what servers and libraries say. The zero value
// takes nothing out.
type Redactor struct{ forms []string }

// NewRedactor is for one key; words too short to be secret are let through.
func NewRedactor(key string) Redactor {
	if len(key) < shortest {
		return Redactor{}
	}
	r := Redactor{forms: []string{key}}
	if quoted, err := json.Marshal(key); err == nil {
		if inJSON := string(quoted[1 : len(quoted)-1]); inJSON != key {
			r.forms = append(r.forms, inJSON)
		}
	}
	return r
}

// Bytes returns b without the key, which may be b itself.
func (r Redactor) Bytes(b []byte) []byte {
	for _, form := range r.forms {
		if bytes.Contains(b, []byte(form)) {
			b = bytes.ReplaceAll(b, []byte(form), []byte(redacted))
		}
	}
	return b
}

// Error keeps an error as it is, unless its text has the key.
func (r Redactor) Error(err error) error {
	e, ok := errors.AsType[*model.Error](err)
	if !ok || e.Err == nil {
		return err
	}
	text := e.Err.Error()
	for _, form := range r.forms {
		text = strings.ReplaceAll(text, form, redacted)
	}
	if text == e.Err.Error() {
		return e
	}
	clean := *e
	clean.Err = errors.New(text)
	return &clean
}
