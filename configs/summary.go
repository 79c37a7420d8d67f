package configs

// summaryKey is where the model that makes summaries is set.
const summaryKey = "model.summary"

// Summarizing is the configuration of the model that makes summaries: in it the
// section model has that one's settings. It is nil where none is set: then the
// model that answers makes them.
func (r *Resolved) Summarizing() *Resolved {
	if len(r.Model.Summary) == 0 {
		return nil
	}
	one, err := r.overlaid(summaryKey, r.Model.Summary)
	if err != nil {
		return nil // validate has said so
	}
	one.Model.Summary = nil
	return one
}

// validateSummary holds the model that makes summaries to what every model is held
// to.
func (r *Resolved) validateSummary() []error {
	if len(r.Model.Summary) == 0 {
		return nil
	}
	one, err := r.overlaid(summaryKey, r.Model.Summary)
	if err != nil {
		return []error{r.errorf(summaryKey, "%s", yamlReason(err))}
	}
	for _, key := range []string{"route", "summary"} {
		if _, ok := r.Model.Summary[key]; ok {
			return []error{r.errorf(summaryKey, "%s is none of its settings", key)}
		}
	}
	var errs []error
	said := r.validateModel()
	for _, err := range one.validateModel() {
		if !saidOf(said, one.entry, err) { // it is said of the section
			errs = append(errs, err)
		}
	}
	return errs
}
