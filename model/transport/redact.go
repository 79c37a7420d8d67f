package transport

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/model"
)

// minSecret is the minimum length of a secret, in bytes. Local servers get keys
// like "EMPTY", which also occur in ordinary text.
const minSecret = 8

const redacted = "[redacted]"

// Redactor removes keys from texts, also quoted, escaped and encoded keys, and those that
// line ends or colours divide. The zero value removes nothing.
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
	return r.divided(b)
}

// Lengths of the forms of a key that are looked for across dividers: shorter ones occur
// there by chance, and longer ones are not of one line.
const (
	minDivided = 16
	maxDivided = 1000
)

// divider matches line ends with the space after them, and colours, both also as JSON and
// shells escape them.
const divider = `(?:[\r\n][\r\n\t ]*|\\[rn] *|(?:\x1b|\\u001b|\\x1b|\\e)\[[0-9;]*[A-Za-z])*`

var dividers = lazyregexp.New("^" + divider)

// divided removes the keys that have dividers in them.
func (r Redactor) divided(b []byte) []byte {
	const longest = 64 // bytes of dividers in one place
	var joined []byte  // b without dividers
	start := 0
	for i := 0; len(r.forms) > 0; i++ {
		next := bytes.IndexAny(b[i:], "\r\n\\\x1b")
		if next < 0 {
			break
		}
		i += next
		if end := i + len(dividers.FindSubmatch(b[i:min(i+longest, len(b))])[0]); end > i {
			joined = append(joined, b[start:i]...)
			start, i = end, end-1
		}
	}
	if start == 0 {
		return b
	}
	joined = append(joined, b[start:]...)
	for _, form := range r.forms {
		if len(form) < minDivided || len(form) > maxDivided || !bytes.Contains(joined, []byte(form)) {
			continue
		}
		letters := strings.Split(form, "")
		for i := range letters {
			letters[i] = regexp.QuoteMeta(letters[i])
		}
		if form, err := regexp.Compile(strings.Join(letters, divider)); err == nil { // else it is not UTF-8
			b = form.ReplaceAll(b, []byte(redacted))
		}
	}
	return b
}

// error returns e with its text redacted.
func (r Redactor) error(e *model.Error) *model.Error {
	if e.Err == nil {
		return e
	}
	text := e.Err.Error()
	if clean := string(r.Bytes([]byte(text))); clean != text {
		e.Err = errors.New(clean)
	}
	return e
}

// DeltaWriter removes keys from deltas and sends them to a listener. It holds back
// text that may be the start of a key. It is not safe for concurrent use. A nil
// DeltaWriter discards everything.
type DeltaWriter struct {
	listener        func(model.Delta)
	text, reasoning keyFilter
	sent            bool
}

// DeltaWriter returns a writer for one response; nil if listener is nil.
func (r Redactor) DeltaWriter(listener func(model.Delta)) *DeltaWriter {
	if listener == nil {
		return nil
	}
	return &DeltaWriter{listener: listener, text: keyFilter{redact: r}, reasoning: keyFilter{redact: r}}
}

// Text appends to the reply.
func (w *DeltaWriter) Text(s string) {
	if w == nil || s == "" {
		return
	}
	w.send(model.Delta{Reasoning: w.reasoning.flushShort()}) // usually the thinking is complete now
	w.send(model.Delta{Text: w.text.add(s)})
}

// Reasoning appends to the thinking.
func (w *DeltaWriter) Reasoning(s string) {
	if w == nil || s == "" {
		return
	}
	w.send(model.Delta{Text: w.text.flushShort()})
	w.send(model.Delta{Reasoning: w.reasoning.add(s)})
}

// Restart voids everything written so far.
func (w *DeltaWriter) Restart() {
	if w == nil {
		return
	}
	w.text.flush()
	w.reasoning.flush()
	if w.sent {
		w.sent = false
		w.listener(model.Delta{Restart: true})
	}
}

// Close sends the text and the thinking that were held back.
func (w *DeltaWriter) Close() {
	if w == nil {
		return
	}
	w.send(model.Delta{Reasoning: w.reasoning.flush()})
	w.send(model.Delta{Text: w.text.flush()})
}

func (w *DeltaWriter) send(d model.Delta) {
	if d.Text != "" || d.Reasoning != "" {
		w.sent = true
		w.listener(d)
	}
}

// keyFilter redacts a text that arrives in parts, and holds back an end that may
// be the start of a key.
type keyFilter struct {
	redact   Redactor
	held     string
	released int // bytes of held that were released by flushShort
}

// add appends s and returns the text to release.
func (k *keyFilter) add(s string) string {
	whole := k.held + s
	clean := string(k.redact.Bytes([]byte(whole)))
	start := k.released
	if clean != whole {
		start = 0 // the released text was part of the redacted key
	}
	end := len(clean) - k.redact.partialKey(clean)
	k.held, k.released = clean[end:], max(0, start-end)
	return clean[min(start, end):end]
}

// flushShort releases a short held end when other output follows: it is probably
// not a key, and too short to reveal one.
func (k *keyFilter) flushShort() string {
	if len(k.held) >= minSecret {
		return ""
	}
	s := k.held[k.released:]
	k.released = len(k.held)
	return s
}

// flush releases the held end.
func (k *keyFilter) flush() string {
	s := k.held[k.released:]
	k.held, k.released = "", 0
	return s
}

// partialKey returns how many bytes at the end of s may be the start of a key.
func (r Redactor) partialKey(s string) int {
	longest := 0
	for _, form := range r.forms {
		for n := min(len(form)-1, len(s)); n > longest; n-- {
			if strings.HasSuffix(s, form[:n]) {
				longest = n
			}
		}
	}
	return longest
}
