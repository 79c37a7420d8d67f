package transport

import (
	"strings"

	"github.com/minibench/mini/model"
)

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
