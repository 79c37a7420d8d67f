package export

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/atif"
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

func (s *attemptFiles) file(it *Item, lost losses) ([]File, error) {
	if !filepath.IsLocal(it.InstanceID) || strings.ContainsAny(it.InstanceID, `/\`) {
		return nil, Refusal("an instance whose id cannot name a file")
	}
	suffix, write := ".traj.json", writeTraj
	if s.format == ATIF {
		suffix, write = ".json", writeATIF
	}
	f := File{Name: s.name(it.from, suffix)}
	path := filepath.Join(s.dir, f.Name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // results are for sharing
		return nil, err
	}
	if err := write(it, path, lost); err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	f.Bytes = info.Size()
	return []File{f}, nil
}

// writeTraj makes the file of the transcript, not of the journal: what the sieve
// took out is only out of that.
func writeTraj(it *Item, path string, _ losses) error {
	return trajectories.DeriveFrom(it.Records(), path)
}

func writeATIF(it *Item, path string, lost losses) (err error) {
	f, err := os.Create(path) //nolint:gosec // G304: within the folder that is being made
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := bufio.NewWriter(f)
	left, err := atif.Write(out, it.Transcript, atif.Options{Verdict: it.Verdict})
	for _, sentence := range left {
		lost[sentence]++
	}
	return errors.Join(err, out.Flush())
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

func (p *predictions) file(it *Item, _ losses) ([]File, error) {
	if o := it.Outcome; o == nil || !o.Class.Counts() {
		return nil, Refusal("an attempt that is no result")
	}
	return nil, nil
}

func (p *predictions) put(w written) error {
	it := w.items[0]
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
