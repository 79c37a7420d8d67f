package trajectories

import (
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/minibench/mini/internal/atomicfile"
)

// maxFile bounds the derived and foreign files that are read whole, in bytes.
const maxFile = 512 << 20

// Prediction is a submission in the form that the SWE-bench harness and sb-cli
// read. The patch is kept to the byte, the last newline included.
type Prediction struct {
	Model      string `json:"model_name_or_path"`
	InstanceID string `json:"instance_id"`
	Patch      string `json:"model_patch"`
	// Null says that the file had null for a patch, or none at all; Patch is
	// empty then. Verdicts tell it from an empty one.
	Null bool `json:"-"`
}

// WritePredictions writes preds.json: an object from instance id to
// prediction, sorted by id, replaced atomically. A patch has to be valid UTF-8,
// for JSON has no other text; the caller makes a binary patch of what is not. A null
// patch is written as an empty one.
func WritePredictions(path string, preds map[string]Prediction) error {
	err := atomicfile.WriteFunc(path, 0o644, func(w io.Writer) error { return EncodePredictions(w, preds) })
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// EncodePredictions writes what WritePredictions does.
func EncodePredictions(w io.Writer, preds map[string]Prediction) error {
	for id, p := range preds {
		if id == "" || p.InstanceID != id {
			return fmt.Errorf("prediction of %q stands under %q", p.InstanceID, id)
		}
		if !utf8.ValidString(p.Patch) {
			return fmt.Errorf("the patch of %s is not valid UTF-8", id)
		}
	}
	if preds == nil {
		preds = map[string]Prediction{}
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(preds)
}
