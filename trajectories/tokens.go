package trajectories

import (
	"github.com/minibench/mini/model"
)

// Tokens are the tokens of a model call. The journal does not repeat what the call recorded before it had: the
// prompt is the first Keep tokens of that call, of its prompt and completion, and then Added.
type Tokens struct {
	Keep       int     `json:"keep,omitempty"`
	Added      []int32 `json:"prompt"`
	Completion []int32 `json:"completion"`
	// Logprobs are the log probabilities of the tokens of Completion, Texts their texts; nil if unknown.
	Logprobs []float64 `json:"logprobs,omitempty"`
	Texts    []string  `json:"texts,omitempty"`

	prompt []int32 // the whole prompt; Attempt sets it
}

// Prompt returns the tokens of the prompt. The caller must not change them.
func (t *Tokens) Prompt() []int32 { return t.prompt }

// RecordTokens returns the tokens of a call that follows the calls of the attempt; nil for nil.
func (a *Attempt) RecordTokens(t *model.Tokens) *Tokens {
	if t == nil {
		return nil
	}
	keep := commonTokens(a.sequence, t.Prompt)
	return &Tokens{Keep: keep, Added: t.Prompt[keep:], Completion: t.Completion, Logprobs: t.Logprobs, Texts: t.Texts}
}

// Continues returns how many tokens of the call before, of its prompt and completion, the prompt begins with, and whether
// these are all of them. A nil call before has none, and nothing continues it.
func (t *Tokens) Continues(before *Tokens) (n int, all bool) {
	if before == nil {
		return 0, false
	}
	n = commonTokens(before.prompt, t.prompt)
	if n < len(before.prompt) {
		return n, false
	}
	n += commonTokens(before.Completion, t.prompt[n:])
	return n, n == len(before.prompt)+len(before.Completion)
}

// commonTokens returns how many tokens two lists have in common at their beginning.
func commonTokens(a, b []int32) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// addTokens returns the tokens of the next call with their whole prompt. Prompts that continue the tokens of the
// call before share its memory.
func (a *Attempt) addTokens(t *Tokens) *Tokens {
	if t == nil || a.omits(OmitTokens) {
		return nil
	}
	known := *t
	keep := max(0, min(t.Keep, len(a.sequence)))
	begin := a.sequence[:keep]
	if keep < len(a.sequence) {
		begin = begin[:keep:keep] // what follows belongs to the call before
	}
	prompt := append(begin, t.Added...)
	known.prompt = prompt[:len(prompt):len(prompt)]
	a.sequence = append(prompt, t.Completion...)
	return &known
}
