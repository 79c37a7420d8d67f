package grade

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/minibench/mini/internal/logfile"
)

// Prediction identifies a prediction for Summarize.
type Prediction struct {
	InstanceID string
	Model      string // model name in the prediction
	Empty      bool   // null or ""
}

// maxReport is the maximum size of a report.json, in bytes. Official reports have at
// most a few hundred kilobytes.
const maxReport = 64 << 20

// Summarize reads the files of an evaluation and summarizes the instances with these
// ids. predictions has at most one prediction for each instance. A missing or damaged
// report puts its instance into Summary.Errors. Summarize returns an error if an
// existing file cannot be read or a name is not a valid file name.
func (l Layout) Summarize(ids []string, predictions []Prediction) (Summary, error) {
	s := Summary{Total: len(ids), FailureReasons: map[string]string{}}
	byID := make(map[string]Prediction, len(predictions))
	for _, p := range predictions {
		byID[p.InstanceID] = p
		s.Submitted = append(s.Submitted, p.InstanceID)
	}
	for _, id := range ids {
		p, ok := byID[id]
		switch {
		case !ok:
			s.Incomplete = append(s.Incomplete, id)
		case p.Empty:
			s.EmptyPatch = append(s.EmptyPatch, id)
		default:
			if err := l.count(&s, p); err != nil {
				return Summary{}, fmt.Errorf("summarize %s: %w", id, err)
			}
		}
	}
	return s, nil
}

// count adds an instance with a patch to s.
func (l Layout) count(s *Summary, p Prediction) error {
	files, err := l.Files(p.Model, p.InstanceID)
	if err != nil {
		return err
	}
	report, err := logfile.Read(files.Report, maxReport)
	switch {
	case err == nil:
		s.Completed = append(s.Completed, p.InstanceID)
		resolved, err := ReadResolved(report, p.InstanceID)
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
	return s.classifyFailure(p.InstanceID, files)
}

// classifyFailure searches the logs of an instance for infrastructure failures.
func (s *Summary) classifyFailure(id string, files Files) error {
	var texts []string
	for _, path := range []string{files.TestOutput, files.Log} {
		data, err := logfile.Read(path, logfile.MaxSize)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		texts = append(texts, string(data))
	}
	f := ClassifyFailure(texts...)
	switch f.Tier {
	case TierEnvironment:
		s.InfraFailures = append(s.InfraFailures, id)
	case TierAmbiguous:
		s.AmbiguousFailures = append(s.AmbiguousFailures, id)
	}
	if f.Reason != "" {
		s.FailureReasons[id] = f.Reason
	}
	return nil
}
