package events

import (
	"slices"
	"unicode/utf8"

	"github.com/minibench/mini/model"
)

// DeltaFunc returns a function for model.WithDeltas that publishes the pieces
// of a step's reply; nil if there are no subscribers.
func (b *Bus) DeltaFunc(step int) func(model.Delta) {
	if !b.HasSubscribers() {
		return nil
	}
	return func(d model.Delta) {
		restart := d.Restart
		if d.Reasoning != "" {
			b.Publish(TextDelta{Step: step, Text: d.Reasoning, Thinking: true, Restart: restart})
			restart = false
		}
		if d.Text != "" || restart {
			b.Publish(TextDelta{Step: step, Text: d.Text, Restart: restart})
		}
	}
}

// OutputFunc returns a function for env.Command.OnOutput that publishes the
// output of a step's command; nil if there are no subscribers. The caller must
// call end after the command.
//
// A character that is split between pieces is published with the last of these
// pieces.
func (b *Bus) OutputFunc(step int) (onOutput func(piece []byte), end func()) {
	if !b.HasSubscribers() {
		return nil, func() {}
	}
	var partial []byte // the start of a character
	onOutput = func(p []byte) {
		whole := slices.Concat(partial, p) // the caller may reuse p
		n := len(whole) - incompleteRune(whole)
		partial = whole[n:]
		if n > 0 {
			b.Publish(OutputChunk{Step: step, Data: whole[:n:n]})
		}
	}
	return onOutput, func() {
		if len(partial) > 0 {
			b.Publish(OutputChunk{Step: step, Data: partial})
			partial = nil
		}
	}
}

// incompleteRune returns the number of bytes at the end of p that may be the
// start of a character.
func incompleteRune(p []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(p); n++ {
		if b := p[len(p)-n]; utf8.RuneStart(b) {
			if b >= utf8.RuneSelf && !utf8.FullRune(p[len(p)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}
