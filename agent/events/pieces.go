package events

import (
	"slices"
	"unicode/utf8"

	"github.com/minibench/mini/model"
)

// Deltas is what a call of the model has to tell its pieces to, as those of a
// step (model.WithDeltas); nil when nobody listens.
func (b *Bus) Deltas(step int) func(model.Delta) {
	if !b.Wanted() {
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

// Watch is what has to watch the output of a command, as that of a step
// (env.Command.Watch); nil when nobody listens. end is called once the command
// is over.
//
// A character that is cut between two pieces comes whole with the second.
func (b *Bus) Watch(step int) (watch func(piece []byte), end func()) {
	if !b.Wanted() {
		return nil, func() {}
	}
	var cut []byte // the beginning of a character
	watch = func(p []byte) {
		whole := slices.Concat(cut, p) // p is not ours
		n := len(whole) - torn(whole)
		cut = whole[n:]
		if n > 0 {
			b.Publish(OutputChunk{Step: step, Data: whole[:n:n]})
		}
	}
	return watch, func() {
		if len(cut) > 0 {
			b.Publish(OutputChunk{Step: step, Data: cut})
			cut = nil
		}
	}
}

// torn is how many bytes at the end of p may be the beginning of a character.
func torn(p []byte) int {
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
