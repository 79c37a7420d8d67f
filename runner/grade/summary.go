package grade

import "slices"

// SchemaVersion is the value of schema_version in summaries.
const SchemaVersion = 2

// Summary is the content of <model>.<run id>.json. JSON sorts the lists of ids
// by code point and removes duplicates.
type Summary struct {
	Total      int // rows of the dataset
	Completed  []string
	Incomplete []string // rows without a prediction
	EmptyPatch []string
	Submitted  []string // instances of all predictions, even if they are not in the dataset
	Resolved   []string
	Unresolved []string
	Errors     []string // instances whose report is missing or unusable
	// InfraFailures and AmbiguousFailures list, by tier, the instances of
	// Unresolved and Errors whose logs mention an infrastructure failure.
	InfraFailures     []string
	AmbiguousFailures []string
	FailureReasons    map[string]string // id -> one of FailureReasons
}

// JSON returns the content of the file. It equals, byte for byte, the file that the
// official harness writes when it has no access to a container engine.
func (s Summary) JSON() []byte {
	reasons := s.FailureReasons
	if reasons == nil {
		reasons = map[string]string{}
	}
	completed, submitted, resolved, unresolved := sorted(s.Completed), sorted(s.Submitted), sorted(s.Resolved), sorted(s.Unresolved)
	infra, ambiguous, empty, failed := sorted(s.InfraFailures), sorted(s.AmbiguousFailures), sorted(s.EmptyPatch), sorted(s.Errors)
	return append(pyJSON(struct {
		Total        int               `json:"total_instances"`
		Submitted    int               `json:"submitted_instances"`
		Completed    int               `json:"completed_instances"`
		Resolved     int               `json:"resolved_instances"`
		Unresolved   int               `json:"unresolved_instances"`
		Infra        int               `json:"infra_failure_instances"`
		Ambiguous    int               `json:"ambiguous_failure_instances"`
		Empty        int               `json:"empty_patch_instances"`
		Errors       int               `json:"error_instances"`
		CompletedIDs []string          `json:"completed_ids"`
		Incomplete   []string          `json:"incomplete_ids"`
		EmptyIDs     []string          `json:"empty_patch_ids"`
		SubmittedIDs []string          `json:"submitted_ids"`
		ResolvedIDs  []string          `json:"resolved_ids"`
		UnresolvedID []string          `json:"unresolved_ids"`
		InfraIDs     []string          `json:"infra_failure_ids"`
		AmbiguousIDs []string          `json:"ambiguous_failure_ids"`
		Reasons      map[string]string `json:"failure_reasons"`
		ErrorIDs     []string          `json:"error_ids"`
		Schema       int               `json:"schema_version"`
	}{
		s.Total, len(submitted), len(completed), len(resolved), len(unresolved), len(infra), len(ambiguous), len(empty), len(failed),
		completed, sorted(s.Incomplete), empty, submitted, resolved, unresolved, infra, ambiguous, reasons, failed, SchemaVersion,
	}, wideIndent), '\n')
}

// sorted returns the distinct ids in byte order, which equals the order by code point.
func sorted(ids []string) []string { return nonNil(slices.Compact(slices.Sorted(slices.Values(ids)))) }
