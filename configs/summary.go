package configs

// summaryKey is the section of the model that writes summaries.
const summaryKey = "model.summary"

// SummaryModel returns a configuration whose section model has the settings of the
// model that writes summaries, or nil if there is none.
func (r *Resolved) SummaryModel() *Resolved {
	if len(r.Model.Summary) == 0 {
		return nil
	}
	one, err := r.withOverride(summaryKey, r.Model.Summary)
	if err != nil {
		return nil // validate reported it
	}
	one.Model.Summary = nil
	return one
}

// validateSummary validates the model that writes summaries.
func (r *Resolved) validateSummary() []error {
	if len(r.Model.Summary) == 0 {
		return nil
	}
	one, err := r.withOverride(summaryKey, r.Model.Summary)
	if err != nil {
		return []error{r.errorf(summaryKey, "%s", firstYAMLError(err))}
	}
	for _, key := range []string{"route", "summary"} {
		if _, ok := r.Model.Summary[key]; ok {
			return []error{r.errorf(summaryKey, "%s cannot be set here", key)}
		}
	}
	var errs []error
	reported := r.validateModel()
	for _, err := range one.validateModel() {
		if !isReported(reported, one.section, err) { // reported for the section model
			errs = append(errs, err)
		}
	}
	return errs
}
