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
