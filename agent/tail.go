package agent

import "strings"

// TailProvider is a ToolServer that adds variables to the tail template. The
// agent calls TailVariables before each model call if there is a tail template.
// Templates may use the list .goals even if no provider sets it.
type TailProvider interface {
	TailVariables(a *Attempt) map[string]any
}

// maxTail bounds a tail, in characters.
const maxTail = 20_000

// renderTail renders the tail of the next prompt.
func (r *run) renderTail() (string, error) {
	if r.cfg.TailTemplate == "" {
		return "", nil
	}
	vars := merge(r.variables(), tailValues(r.lastErrors()))
	if t, ok := r.Tools.(TailProvider); ok && r.info.Tools {
		vars = merge(vars, t.TailVariables(&r.toolAttempt))
	}
	text, err := r.templates.tail.render(vars)
	if err != nil {
		return "", err
	}
	r.lastTail = clip(strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD")), maxTail)
	return r.lastTail, nil
}
