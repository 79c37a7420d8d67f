package grade

import (
	"maps"
	"slices"
)

// SchemaVersion is the form of summaries.
const SchemaVersion = 2

// Summary is what <model>.<run id>.json says of a run. Lists of ids are sorted
// by code point.
type Summary struct {
	Total      int // rows of the dataset
	Completed  []string
	Incomplete []string // rows without a prediction
	EmptyPatch []string
	Submitted  []string // predictions, also for other rows
	Resolved   []string
	Unresolved []string
	Errors     []string // without a verdict; or with a report that says nothing
	// InfraFailures and AmbiguousFailures are those of Unresolved and Errors
	// whose logs say what may have kept the patch from a verdict.
	InfraFailures     []string
	AmbiguousFailures []string
	FailureReasons    map[string]string // id -> one of Reasons
}

// JSON is the content of the file, byte for byte as the official harness
// writes it when it has no container engine to ask.
func (s Summary) JSON() []byte {
	lists := []struct {
		name string
		ids  []string
	}{
		{"submitted", s.Submitted},
		{"completed", s.Completed},
		{"resolved", s.Resolved},
		{"unresolved", s.Unresolved},
		{"infra_failure", s.InfraFailures},
		{"ambiguous_failure", s.AmbiguousFailures},
		{"empty_patch", s.EmptyPatch},
		{"error", s.Errors},
	}
	o := object{{"total_instances", s.Total}}
	for _, l := range lists {
		o = append(o, member{l.name + "_instances", len(sorted(l.ids))})
	}
	reasons := object{}
	for _, id := range slices.Sorted(maps.Keys(s.FailureReasons)) {
		reasons = append(reasons, member{id, s.FailureReasons[id]})
	}
	o = append(
		o,
		member{"completed_ids", sorted(s.Completed)},
		member{"incomplete_ids", sorted(s.Incomplete)},
		member{"empty_patch_ids", sorted(s.EmptyPatch)},
		member{"submitted_ids", sorted(s.Submitted)},
		member{"resolved_ids", sorted(s.Resolved)},
		member{"unresolved_ids", sorted(s.Unresolved)},
		member{"infra_failure_ids", sorted(s.InfraFailures)},
		member{"ambiguous_failure_ids", sorted(s.AmbiguousFailures)},
		member{"failure_reasons", reasons},
		member{"error_ids", sorted(s.Errors)},
		member{"schema_version", SchemaVersion},
	)
	return append(pyJSON(o, wide), '\n')
}

// sorted are the ids by code point, which is the order of their bytes, each
// once.
func sorted(ids []string) []string { return slices.Compact(slices.Sorted(slices.Values(ids))) }
