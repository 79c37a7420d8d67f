package openai

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

// redactor takes the key out of what servers and libraries say.
type redactor struct{ forms []string }

func newRedactor(key string) redactor {
	if len(key) < shortest {
		return redactor{}
	}
	r := redactor{forms: []string{key}}
	if quoted, err := json.Marshal(key); err == nil {
		if inJSON := string(quoted[1 : len(quoted)-1]); inJSON != key {
			r.forms = append(r.forms, inJSON)
		}
	}
	return r
}

func (r redactor) bytes(b []byte) []byte {
	for _, form := range r.forms {
		if bytes.Contains(b, []byte(form)) {
			b = bytes.ReplaceAll(b, []byte(form), []byte(redacted))
		}
	}
	return b
}

// error keeps an error as it is, unless its text has the key.
func (r redactor) error(err error) error {
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
