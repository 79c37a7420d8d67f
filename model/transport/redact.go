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

// minSecret is the minimum length of a secret, in bytes. Local servers get keys
// like "EMPTY", which also occur in ordinary text.
const minSecret = 8

const redacted = "[redacted]"

// Redactor removes keys from texts, also quoted, escaped and encoded keys. The
// zero value removes nothing.
type Redactor struct {
	forms []string // the keys, as they are, escaped and encoded
}

// NewRedactor returns a Redactor for keys. Keys too short to be secret are
// ignored.
func NewRedactor(keys ...string) Redactor {
	var r Redactor
	for _, key := range keys {
		if len(key) >= minSecret {
			r.forms = append(r.forms, slices.Concat([]string{key}, escaped(key), encoded(key))...)
		}
	}
	slices.Sort(r.forms)
	r.forms = slices.Compact(r.forms)
	// The longest first: a form may contain another.
	slices.SortStableFunc(r.forms, func(a, b string) int { return len(b) - len(a) })
	return r
}

// escaped returns a key as escaped in JSON, HTML and URLs.
func escaped(key string) []string {
	all := []string{html.EscapeString(key)}
	for _, forHTML := range []bool{false, true} {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(forHTML)
		_ = e.Encode(key) // strings always encode
		quoted := b.String()[1 : b.Len()-len("\"\n")]
		all = append(all, quoted, strings.ReplaceAll(quoted, "/", `\/`))
	}
	for _, s := range []string{url.QueryEscape(key), url.PathEscape(key)} {
		all = append(all, s, lowerEscapes(s))
	}
	return all
}

// lowerEscapes turns %2F into %2f.
func lowerEscapes(s string) string {
	b := []byte(s)
	for i := range b {
		if b[i] == '%' && i+2 < len(b) {
			copy(b[i+1:], bytes.ToLower(b[i+1:i+3]))
		}
	}
	return string(b)
}

// encoded returns a key in hexadecimal, and the letters that depend on the key alone in
// the base64 text of longer data. base64 encodes three bytes in four letters, so there are three
// forms, by the offset of the key modulo three.
func encoded(key string) []string {
	digits := hex.EncodeToString([]byte(key))
	all := []string{digits, strings.ToUpper(digits)}
	for before := range 3 {
		text := append(make([]byte, before), key...)
		first, end := (before*8+5)/6, len(text)*8/6 // letters that depend on the key only
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			all = append(all, e.EncodeToString(text)[first:end])
		}
	}
	return all
}

// Bytes returns b with each key replaced by "[redacted]". The result may be b itself.
func (r Redactor) Bytes(b []byte) []byte {
	for _, form := range r.forms {
		if bytes.Contains(b, []byte(form)) {
			b = bytes.ReplaceAll(b, []byte(form), []byte(redacted))
		}
	}
	return b
}

// Error returns the *model.Error in err with its text redacted, and other errors
// unchanged.
func (r Redactor) Error(err error) error {
	e, ok := errors.AsType[*model.Error](err)
	if !ok || e.Err == nil {
		return err
	}
	text := e.Err.Error()
	if clean := string(r.Bytes([]byte(text))); clean != text {
		clone := *e
		clone.Err = errors.New(clean)
		return &clone
	}
	return e
}
