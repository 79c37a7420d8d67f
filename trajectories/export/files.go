package export

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/minibench/mini/trajectories"
)

// attemptFiles are a file an attempt.
type attemptFiles struct {
	dir, format string
	files       []File
}

// name is where the file of an attempt goes, as mini-swe-agent lays out a run:
// in a folder of its instance, below that of its run where there are several.
func (s *attemptFiles) name(a Attempt, suffix string) string {
	name := a.InstanceID
	if a.Several {
		name += fmt.Sprintf(".%d", a.Number)
	}
	return filepath.Join(a.Folder, a.InstanceID, name+suffix)
}

func (s *attemptFiles) file(group []loaded) ([]File, error) {
	l := group[0]
	if !filepath.IsLocal(l.InstanceID) || strings.ContainsAny(l.InstanceID, `/\`) {
		return nil, Refusal("an instance whose id cannot name a file")
	}
	suffix := ".traj.json"
	if s.format == ATIF {
		suffix = ".json"
	}
	f := File{Name: s.name(l.Attempt, suffix)}
	path := filepath.Join(s.dir, f.Name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // results are for sharing
		return nil, err
	}
	if err := s.write(l, path); err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	f.Bytes = info.Size()
	return []File{f}, nil
}

func (s *attemptFiles) write(l loaded, path string) error {
	if s.format == Traj {
		return trajectories.DeriveFrom(l.item.Records, path)
	}
	return Refusal("ATIF is not written yet")
}

func (s *attemptFiles) put(w written) error {
	s.files = append(s.files, w.files...)
	return nil
}

func (s *attemptFiles) finish() ([]File, error) { return s.files, nil }

func (s *attemptFiles) abandon() error { return nil }

// predictions are one preds.json.
type predictions struct {
	dir  string
	list map[string]trajectories.Prediction
}

func newPredictions(dir string) *predictions {
	return &predictions{dir: dir, list: map[string]trajectories.Prediction{}}
}

func (p *predictions) file(group []loaded) ([]File, error) {
	if o := group[0].item.Outcome; o == nil || !o.Class.Counts() {
		return nil, Refusal("an attempt that is no result")
	}
	return nil, nil
}

func (p *predictions) put(w written) error {
	it := w.group[0].item
	if other, ok := p.list[it.InstanceID]; ok {
		return wrong("%s: two attempts, of %s and of %s, and preds.json has place for one; choose with --select, and export runs one by one",
			it.InstanceID, other.Model, it.Header.ModelName)
	}
	p.list[it.InstanceID] = trajectories.Prediction{
		Model: it.Header.ModelName, InstanceID: it.InstanceID, Patch: strings.ToValidUTF8(string(it.Outcome.Submission), "\ufffd"),
	}
	return nil
}

func (p *predictions) finish() ([]File, error) {
	if len(p.list) == 0 {
		return nil, nil
	}
	path := filepath.Join(p.dir, "preds.json")
	if err := trajectories.WritePredictions(path, p.list); err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	return []File{{Name: "preds.json", Rows: len(p.list), Bytes: info.Size()}}, nil
}

func (p *predictions) abandon() error { return nil }
