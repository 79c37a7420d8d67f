package transport

import (
	"strings"

	"github.com/minibench/mini/model"
)

// DeltaWriter sends deltas to a listener without keys. It holds back text that
// may be the start of a key. It is not safe for concurrent use; a nil
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
func (p *DeltaWriter) Text(s string) {
	if p == nil || s == "" {
		return
	}
	p.send(model.Delta{Reasoning: p.reasoning.flushShort()}) // thinking is usually complete here
	p.send(model.Delta{Text: p.text.add(s)})
}

// Reasoning appends to the thinking.
func (p *DeltaWriter) Reasoning(s string) {
	if p == nil || s == "" {
		return
	}
	p.send(model.Delta{Text: p.text.flushShort()})
	p.send(model.Delta{Reasoning: p.reasoning.add(s)})
}

// Restart voids everything written so far.
func (p *DeltaWriter) Restart() {
	if p == nil {
		return
	}
	p.text.flush()
	p.reasoning.flush()
	if p.sent {
		p.sent = false
		p.listener(model.Delta{Restart: true})
	}
}

// Close sends the text that was held back.
func (p *DeltaWriter) Close() {
	if p == nil {
		return
	}
	p.send(model.Delta{Reasoning: p.reasoning.flush()})
	p.send(model.Delta{Text: p.text.flush()})
}

func (p *DeltaWriter) send(d model.Delta) {
	if d.Text != "" || d.Reasoning != "" {
		p.sent = true
		p.listener(d)
	}
}

// keyFilter redacts a text that arrives in parts, and holds back an end that may
// be the start of a key.
type keyFilter struct {
	redact   Redactor
	held     string
	released int // bytes of held that were already released
}

// add appends s and returns the text to release.
func (k *keyFilter) add(s string) string {
	whole := k.held + s
	clean := string(k.redact.Bytes([]byte(whole)))
	from := k.released
	if clean != whole {
		from = 0 // the released text was part of the redacted key
	}
	n := len(clean) - k.redact.partialKey(clean)
	k.held, k.released = clean[n:], max(0, from-n)
	return clean[min(from, n):n]
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
