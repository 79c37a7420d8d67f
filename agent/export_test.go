package agent

import "github.com/minibench/mini/agent/protocol"

// FormatError renders the message to the model for an invalid reply.
func (a *Agent) FormatError(message string, actions int, finish string, truncated bool) (string, error) {
	return a.templates[formatErrorPrompt].render(merge(a.templates.sampleVariables(a.cfg), formatErrorValues(
		protocol.ParsedReply{Problem: message, Actions: make([]protocol.Action, actions), Truncated: truncated}, finish)))
}

// Observations renders the sample observations that templates are checked with.
func (a *Agent) Observations() ([]string, error) {
	var texts []string
	for _, sample := range sampleObservations {
		text, err := a.templates[observationPrompt].render(merge(a.templates.sampleVariables(a.cfg), sample))
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// HashEveryCall makes every model call hash the working tree immediately, until
// the returned function is called.
func HashEveryCall() (restore func()) {
	delay, share := hashDelay, hashTimeShare
	hashDelay, hashTimeShare = 0, 0
	return func() { hashDelay, hashTimeShare = delay, share }
}
