package agent

import "strings"

// Tailer is a Toolbox that has something to say at the end of each prompt. Tail is
// asked before each call of the model, where there is a template for it; what it
// returns are variables of that template, beside the session's own and .errors. A
// list "goals" is one that templates may name in any case.
type Tailer interface {
	Tail(a *Attempt) map[string]any
}

// maxTail bounds a tail, in characters.
const maxTail = 20_000

// tail is what stands at the end of the next prompt, in that one alone; empty for
// nothing.
func (r *run) tail() (string, error) {
	if r.cfg.TailTemplate == "" {
		return "", nil
	}
	vars := merged(r.variables(), tailValues(r.lastErrors()))
	if t, ok := r.Tools.(Tailer); ok && r.info.Tools {
		vars = merged(vars, t.Tail(&r.asking))
	}
	text, err := r.templates.tail.render(vars)
	if err != nil {
		return "", err
	}
	r.tailSaid = clipped(strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD")), maxTail)
	return r.tailSaid, nil
}
