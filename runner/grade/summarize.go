package grade

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/minibench/mini/runner/grade/logfile"
)

// Prediction is what a summary needs to know of a patch.
type Prediction struct {
	InstanceID string
	Model      string // as the prediction names it
	Empty      bool   // null or ""
}

// maxReport bounds what is read of a report.json, in bytes. Official ones have
// some hundred kilobytes at most.
const maxReport = 64 << 20

// Summarize reads the files of a run and says what came of the rows with
// these ids. Predictions come once for an instance. Files that are missing or
// damaged are results; only files that are there and cannot be read are an
// error.
func (r Run) Summarize(ids []string, predictions []Prediction) (Summary, error) {
	s := Summary{Total: len(ids), FailureReasons: map[string]string{}}
	of := make(map[string]Prediction, len(predictions))
	for _, p := range predictions {
		of[p.InstanceID] = p
		s.Submitted = append(s.Submitted, p.InstanceID)
	}
	for _, id := range ids {
		p, ok := of[id]
		switch {
		case !ok:
			s.Incomplete = append(s.Incomplete, id)
		case p.Empty:
			s.EmptyPatch = append(s.EmptyPatch, id)
		default:
			if err := r.count(&s, p); err != nil {
				return Summary{}, fmt.Errorf("summarize %s: %w", id, err)
			}
		}
	}
	for _, list := range []*[]string{
		&s.Completed, &s.Incomplete, &s.EmptyPatch, &s.Submitted, &s.Resolved,
		&s.Unresolved, &s.Errors, &s.InfraFailures, &s.AmbiguousFailures,
	} {
		*list = sorted(*list)
	}
	return s, nil
}

// count adds an instance whose patch was to be evaluated.
func (r Run) count(s *Summary, p Prediction) error {
	files, err := r.Files(p.Model, p.InstanceID)
	if err != nil {
		return err
	}
	report, err := logfile.Read(files.Report, maxReport)
	switch {
	case err == nil:
		s.Completed = append(s.Completed, p.InstanceID)
		resolved, err := readResolved(report, p.InstanceID)
		switch {
		case err != nil:
			s.Errors = append(s.Errors, p.InstanceID)
		case resolved:
			s.Resolved = append(s.Resolved, p.InstanceID)
			return nil
		default:
			s.Unresolved = append(s.Unresolved, p.InstanceID)
		}
	case errors.Is(err, fs.ErrNotExist):
		s.Errors = append(s.Errors, p.InstanceID)
	default:
		return err
	}
	return s.classify(p.InstanceID, files)
}

// classify looks in the logs of an instance for what failed.
func (s *Summary) classify(id string, files Files) error {
	var texts []string
	for _, path := range []string{files.TestOutput, files.Log} {
		data, err := logfile.Read(path, logfile.Most)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		texts = append(texts, string(data))
	}
	f := Classify(texts...)
	switch f.Tier {
	case Environment:
		s.InfraFailures = append(s.InfraFailures, id)
	case Ambiguous:
		s.AmbiguousFailures = append(s.AmbiguousFailures, id)
	}
	if f.Reason != "" {
		s.FailureReasons[id] = f.Reason
	}
	return nil
}
