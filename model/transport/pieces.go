package transport

import (
	"strings"

	"github.com/minibench/mini/model"
)

// Pieces tells a listener of a reply piece by piece, without keys: what may be
// the beginning of one is held back until it is known. It is for one goroutine;
// a nil one tells nobody.
type Pieces struct {
	tell            func(model.Delta)
	text, reasoning held
	told            bool
}

// Pieces is for one answer; nil where nobody listens.
func (r Redactor) Pieces(tell func(model.Delta)) *Pieces {
	if tell == nil {
		return nil
	}
	return &Pieces{tell: tell, text: held{redact: r}, reasoning: held{redact: r}}
}

// Text goes on with the reply.
func (p *Pieces) Text(s string) {
	if p == nil || s == "" {
		return
	}
	p.say(model.Delta{Reasoning: p.reasoning.pause()}) // which is over, mostly
	p.say(model.Delta{Text: p.text.add(s)})
}

// Reasoning goes on with the thinking.
func (p *Pieces) Reasoning(s string) {
	if p == nil || s == "" {
		return
	}
	p.say(model.Delta{Text: p.text.pause()})
	p.say(model.Delta{Reasoning: p.reasoning.add(s)})
}

// Restart says that the answer begins again.
func (p *Pieces) Restart() {
	if p == nil {
		return
	}
	p.text.end()
	p.reasoning.end()
	if p.told {
		p.told = false
		p.tell(model.Delta{Restart: true})
	}
}

// End tells what was held back.
func (p *Pieces) End() {
	if p == nil {
		return
	}
	p.say(model.Delta{Reasoning: p.reasoning.end()})
	p.say(model.Delta{Text: p.text.end()})
}

func (p *Pieces) say(d model.Delta) {
	if d.Text != "" || d.Reasoning != "" {
		p.told = true
		p.tell(d)
	}
}

// held is the end of a text, which may be the beginning of a key.
type held struct {
	redact Redactor
	rest   string
	told   int // bytes of rest that are told all the same
}

// add is what may be told once s has come.
func (h *held) add(s string) string {
	whole := h.rest + s
	clean := string(h.redact.Bytes([]byte(whole)))
	from := h.told
	if clean != whole {
		from = 0 // what was told is a part of the key that was taken out
	}
	n := len(clean) - h.redact.begun(clean)
	h.rest, h.told = clean[n:], max(0, from-n)
	return clean[min(from, n):n]
}

// pause tells an end of a few bytes, since something else follows: mostly it is
// no key's beginning, and of one it is too little to matter.
func (h *held) pause() string {
	if len(h.rest) >= shortest {
		return ""
	}
	s := h.rest[h.told:]
	h.told = len(h.rest)
	return s
}

// end is what was held back in vain.
func (h *held) end() string {
	s := h.rest[h.told:]
	h.rest, h.told = "", 0
	return s
}

// begun is how many bytes at the end of s may be the beginning of a key.
func (r Redactor) begun(s string) int {
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
