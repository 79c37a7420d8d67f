package agent

// FormatError is what a model is told of a reply that is wrong.
func (a *Agent) FormatError(message string, actions int, finish string, cut bool) (string, error) {
	return a.templates.formatError.render(merged(sampleVariables(a.cfg), formatErrorValues(message, actions, finish, cut)))
}

// Observations are those of the samples that templates are checked with.
func (a *Agent) Observations() ([]string, error) {
	var texts []string
	for _, sample := range sampleObservations {
		text, err := a.templates.observation.render(merged(sampleVariables(a.cfg), sample))
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// StateAtOnce has the state of the working tree taken beside every call, from its
// beginning on. What it returns is to be called at the end.
func StateAtOnce() (end func()) {
	delay, share := stateDelay, stateShare
	stateDelay, stateShare = 0, 0
	return func() { stateDelay, stateShare = delay, share }
}
