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

// writeFile writes the file of an attempt, for formats with one an attempt: in a
// folder of its instance, as mini-swe-agent lays out a run, below that of its run
// where there are several.
func (e *exporter) writeFile(it *Item, lost losses) (File, error) {
	if !filepath.IsLocal(it.InstanceID) || strings.ContainsAny(it.InstanceID, `/\`) {
		return File{}, Refusal("an instance whose id cannot name a file")
	}
	name := it.InstanceID
	if it.from.Several {
		name += fmt.Sprintf(".%d", it.from.Number)
	}
	f := File{Name: filepath.Join(it.from.Folder, it.InstanceID, name+".traj.json")}
	if e.format.name == ATIF {
		f.Name = strings.TrimSuffix(f.Name, ".traj.json") + ".json"
	}
	path := filepath.Join(e.out.tmp, f.Name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // results are for sharing
		return File{}, err
	}
	var err error
	if e.format.name == ATIF {
		err = writeATIF(it, path, lost)
	} else { // of the transcript, not the journal: what the filters took out is only out of that
		err = trajectories.DeriveFrom(it.Records(), path)
	}
	if err == nil {
		f.Bytes, err = sizeOf(path)
	}
	return f, err
}

func sizeOf(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func writeATIF(it *Item, path string, lost losses) (err error) {
	f, err := os.Create(path) //nolint:gosec // G304: within the folder that is being made
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := bufio.NewWriter(f)
	left, err := atif.Write(out, it.Transcript, it.Verdict)
	for _, sentence := range left {
		lost[sentence]++
	}
	return errors.Join(err, out.Flush())
}

// predict enters an attempt into preds.json.
func (e *exporter) predict(it *Item) error {
	if o := it.Outcome; o == nil || !o.Class.Counts() {
		return Refusal("an attempt that is no result")
	}
	if other, ok := e.preds[it.InstanceID]; ok {
		return wrong("%s: two attempts, of %s and of %s, and preds.json has place for one; choose with --select, and export runs one by one",
			it.InstanceID, other.Model, it.Header.ModelName)
	}
	e.preds[it.InstanceID] = trajectories.Prediction{
		Model: it.Header.ModelName, InstanceID: it.InstanceID, Patch: strings.ToValidUTF8(string(it.Outcome.Submission), "\ufffd"),
	}
	return nil
}

func (e *exporter) writePredictions() error {
	if len(e.preds) == 0 {
		return nil
	}
	path := filepath.Join(e.out.tmp, "preds.json")
	if err := trajectories.WritePredictions(path, e.preds); err != nil {
		return err
	}
	size, err := sizeOf(path)
	e.report.Files = []File{{Name: "preds.json", Rows: len(e.preds), Bytes: size}}
	return err
}
