package export

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/minibench/mini/internal/atomicfile"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/formats/atif"
)

// writeFile writes the file of an attempt, for formats with one file per attempt. The
// folder is named after the instance, as in a run of mini-swe-agent. It is inside a
// folder of the run if the export has several runs.
func (e *exporter) writeFile(item *Item, counts losses) (File, error) {
	if !filepath.IsLocal(item.InstanceID) || strings.ContainsAny(item.InstanceID, `/\`) {
		return File{}, SkipReason("an instance ID that is not a valid file name")
	}
	name := item.InstanceID
	if item.source.MultipleAttempts {
		name += fmt.Sprintf(".%d", item.source.Number)
	}
	f := File{Name: filepath.Join(item.source.Folder, item.InstanceID, name+".traj.json")}
	if e.format.name == ATIF {
		f.Name = strings.TrimSuffix(f.Name, ".traj.json") + ".json"
	}
	if e.format.name == ATIF && len(item.Entries) == 0 {
		return File{}, SkipReason("no message: ATIF requires at least one step")
	}
	path := filepath.Join(e.out.tmp, f.Name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // results are for sharing
		return File{}, err
	}
	var err error
	if e.format.name == ATIF {
		err = writeATIF(item, path, counts)
	} else { // not a copy of the run's file, since the filter may have changed the attempt
		err = atomicfile.WriteFunc(path, 0o644, item.WriteTraj)
	}
	if err == nil {
		f.Bytes, err = fileSize(path)
	}
	return f, err
}

func fileSize(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func writeATIF(item *Item, path string, counts losses) (err error) {
	f, err := os.Create(path) //nolint:gosec // G304: path is within the temporary folder
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := bufio.NewWriter(f)
	losses, err := atif.Write(out, item.Attempt, item.Verdict)
	for _, sentence := range losses {
		counts[sentence]++
	}
	return errors.Join(err, out.Flush())
}

// addPrediction adds an attempt to preds.json.
func (e *exporter) addPrediction(item *Item) error {
	if o := item.Outcome; o == nil || !o.Class.IsResult() {
		return SkipReason("an attempt that does not count")
	}
	if other, ok := e.preds[item.InstanceID]; ok {
		return optionError("%s: two attempts, by %s and %s, but preds.json can have only one; use --select, and export runs separately",
			item.InstanceID, other.Model, item.Header.ModelName)
	}
	e.preds[item.InstanceID] = trajectories.Prediction{
		Model: item.Header.ModelName, InstanceID: item.InstanceID, Patch: strings.ToValidUTF8(string(item.Outcome.Submission), "\ufffd"),
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
	size, err := fileSize(path)
	e.report.Files = []File{{Name: "preds.json", Rows: len(e.preds), Bytes: size}}
	return err
}
