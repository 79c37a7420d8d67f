package transport

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"html"
	"net/url"
	"slices"
	"strings"

	"github.com/minibench/mini/model"
)

// shortest is how long a key has to be to count as a secret. Local servers are
// given words like "EMPTY", which stand in ordinary text too.
const shortest = 8

const redacted = "[redacted]"

// Redactor takes keys out of what servers and libraries say: as they are, and
// in the forms in which texts quote, escape and encode them. The zero value
// takes nothing out.
type Redactor struct{ forms []string }

// NewRedactor is for these keys; words too short to be secret are let through.
func NewRedactor(keys ...string) Redactor {
	var r Redactor
	for _, key := range keys {
		if len(key) >= shortest {
			r.forms = append(r.forms, slices.Concat([]string{key}, escaped(key), encoded(key))...)
		}
	}
	slices.Sort(r.forms)
	r.forms = slices.Compact(r.forms)
	// The longest first: others may be a part of it.
	slices.SortStableFunc(r.forms, func(a, b string) int { return len(b) - len(a) })
	return r
}

// escaped is a key as JSON, HTML and URLs have it.
func escaped(key string) []string {
	all := []string{html.EscapeString(key)}
	for _, forHTML := range []bool{false, true} {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(forHTML)
		_ = e.Encode(key) // a string always has a form
		quoted := b.String()[1 : b.Len()-len("\"\n")]
		all = append(all, quoted, strings.ReplaceAll(quoted, "/", `\/`))
	}
	for _, s := range []string{url.QueryEscape(key), url.PathEscape(key)} {
		all = append(all, s, lowerEscapes(s))
	}
	return all
}

// lowerEscapes has %2f for %2F.
func lowerEscapes(s string) string {
	b := []byte(s)
	for i := range b {
		if b[i] == '%' && i+2 < len(b) {
			copy(b[i+1:], bytes.ToLower(b[i+1:i+3]))
		}
	}
	return string(b)
}

// encoded is a key in hexadecimal, and what all base64 of a text has that the
// key stands in: three bytes become four letters, so that it is one of three
// runs of letters, by the place where the key begins.
func encoded(key string) []string {
	digits := hex.EncodeToString([]byte(key))
	all := []string{digits, strings.ToUpper(digits)}
	for before := range 3 {
		text := append(make([]byte, before), key...)
		first, end := (before*8+5)/6, len(text)*8/6 // letters that are the key's alone
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			all = append(all, e.EncodeToString(text)[first:end])
		}
	}
	return all
}

// Bytes returns b without the keys, which may be b itself.
func (r Redactor) Bytes(b []byte) []byte {
	for _, form := range r.forms {
		if bytes.Contains(b, []byte(form)) {
			b = bytes.ReplaceAll(b, []byte(form), []byte(redacted))
		}
	}
	return b
}

// Error keeps an error as it is, unless its text has a key.
func (r Redactor) Error(err error) error {
	e, ok := errors.AsType[*model.Error](err)
	if !ok || e.Err == nil {
		return err
	}
	text := e.Err.Error()
	if clean := string(r.Bytes([]byte(text))); clean != text {
		told := *e
		told.Err = errors.New(clean)
		return &told
	}
	return e
}
