package logs

import (
	"strings"
	"unicode/utf8"
)

// p5js reads mocha's list of failures, "  1) suite\n       name:", out of what a
// browser prints: JSON and XML are dropped first.
func p5js(t *Tests, text string, _ Subject) error {
	kept, err := dropXML(withoutJSON(text))
	if err != nil {
		return err
	}
	p := p5Failures{text: kept, next: -1}
	for name := range p.all {
		if parts := strings.Split(name, "\n"); deepening(parts) {
			for i, part := range parts {
				parts[i] = strip(part)
			}
			t.Set(strings.Join(parts, ":"), Failed)
		}
	}
	return nil
}

// withoutJSON drops escape sequences and the lines of JSON: blocks from a line
// that ends with a bracket to a line that is one, and lines that are in
// brackets. Blocks do not nest.
func withoutJSON(text string) []byte {
	kept := make([]byte, 0, len(text)+1)
	var object, list bool
	for line := range lines(text) {
		line = dropANSI(line)
		bare := stripRight(line)
		switch {
		case strings.HasSuffix(bare, "{"):
			object = true
		case strings.HasSuffix(bare, "["):
			list = true
		case bare == "}" && object:
			object = false
		case bare == "]" && list:
			list = false
		case object || list:
		case strings.HasPrefix(bare, "{") && strings.HasSuffix(bare, "}"):
		case strings.HasPrefix(bare, "[") && strings.HasSuffix(bare, "]"):
		default:
			kept = append(append(kept, line...), '\n')
		}
	}
	return kept[:max(len(kept)-1, 0)]
}

// p5Name is how many characters the name of a failure may have.
const p5Name = 1000

// p5Failures finds failures: at the start of a line spaces, a number, a
// parenthesis, and up to p5Name characters to the next colon.
type p5Failures struct {
	text  string
	next  int // the next colon from the last place that was asked for
	reach int // the earliest start of a name that may end at next
}

// all yields what is between the parenthesis and the colon.
func (p *p5Failures) all(yield func(name string) bool) {
	for at := 0; at < len(p.text); {
		begun := len(p.text) - len(stripLeft(p.text[at:]))
		if rest, ok := cutNumber(p.text[begun:]); ok {
			start := len(p.text) - len(rest)
			if end := p.colon(start); end >= 0 {
				if !yield(p.text[start:end]) {
					return
				}
				begun = end
			}
		}
		// No start of a line before begun can do better: its spaces end there.
		at = begun + endOfLine(p.text[begun:]) + 1
	}
}

// colon is where a name ends that begins at start, or -1. Starts only grow.
func (p *p5Failures) colon(start int) int {
	if p.next < start {
		i := strings.IndexByte(p.text[start:], ':')
		if i < 0 {
			p.next, p.reach = len(p.text), len(p.text)+1
			return -1
		}
		p.next, p.reach = start+i, -1
	}
	if p.next-start > p5Name && p.reach < 0 {
		p.reach = p.next
		for range p5Name {
			_, size := utf8.DecodeLastRuneInString(p.text[:p.reach])
			p.reach -= size
		}
	}
	if start < p.reach {
		return -1
	}
	return p.next
}

// deepening says that each part is further to the right than the one before it,
// and the first not at the margin.
func deepening(parts []string) bool {
	last := 0
	for _, part := range parts {
		in := indent(part)
		if in <= last {
			return false
		}
		last = in
	}
	return true
}
