package export

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/formats/atif"
)

// writeFile writes the file of an attempt, for formats with one file per attempt. The
// folders are those of a mini-swe-agent run, inside a folder of the run if there are
// several.
func (e *exporter) writeFile(it *Item, counts losses) (File, error) {
	if !filepath.IsLocal(it.InstanceID) || strings.ContainsAny(it.InstanceID, `/\`) {
		return File{}, SkipReason("an instance ID that is not a valid file name")
	}
	name := it.InstanceID
	if it.source.MultipleAttempts {
		name += fmt.Sprintf(".%d", it.source.Number)
	}
	f := File{Name: filepath.Join(it.source.Folder, it.InstanceID, name+".traj.json")}
	if e.format.name == ATIF {
		f.Name = strings.TrimSuffix(f.Name, ".traj.json") + ".json"
	}
	path := filepath.Join(e.out.tmp, f.Name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // results are for sharing
		return File{}, err
	}
	var err error
	if e.format.name == ATIF {
		err = writeATIF(it, path, counts)
	} else { // from the transcript, since the filter may have changed it
		err = trajectories.WriteTrajRecords(it.Records(), path)
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

func writeATIF(it *Item, path string, counts losses) (err error) {
	f, err := os.Create(path) //nolint:gosec // G304: within the folder that is being made
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := bufio.NewWriter(f)
	losses, err := atif.Write(out, it.Transcript, it.Verdict)
	for _, sentence := range losses {
		counts[sentence]++
	}
	return errors.Join(err, out.Flush())
}

// addPrediction adds an attempt to preds.json.
func (e *exporter) addPrediction(it *Item) error {
	if o := it.Outcome; o == nil || !o.Class.Counts() {
		return SkipReason("an attempt that does not count")
	}
	if other, ok := e.preds[it.InstanceID]; ok {
		return optionError("%s: two attempts, by %s and %s, but preds.json can have only one; use --select, and export runs separately",
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
