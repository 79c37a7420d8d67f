package configs

// summaryKey is the section of the model that writes summaries.
const summaryKey = "model.summary"

// SummaryConfig returns a configuration whose section model has the settings of the
// model that writes summaries, or nil if model.summary is empty or invalid.
func (r *Resolved) SummaryConfig() *Resolved {
	if len(r.Model.Summary) == 0 {
		return nil
	}
	summaryCfg, err := r.withOverride(summaryKey, r.Model.Summary)
	if err != nil {
		return nil // validate has reported the error
	}
	summaryCfg.Model.Summary = nil
	return summaryCfg
}

// validateSummary validates the model that writes summaries.
func (r *Resolved) validateSummary() []error {
	if len(r.Model.Summary) == 0 {
		return nil
	}
	summaryCfg, err := r.withOverride(summaryKey, r.Model.Summary)
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
	for _, err := range summaryCfg.validateModel() {
		if !isReported(reported, summaryCfg.section, err) {
			errs = append(errs, err)
		}
	}
	return errs
}
