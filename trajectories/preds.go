package trajectories

import (
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/minibench/mini/internal/atomicfile"
)

// maxFile bounds a predictions file, in bytes, since it is read into memory as a whole.
const maxFile = 512 << 20

// Prediction is a submission in the format of the SWE-bench harness and sb-cli. The
// patch is unchanged, including its last newline.
type Prediction struct {
	Model      string `json:"model_name_or_path"`
	InstanceID string `json:"instance_id"`
	Patch      string `json:"model_patch"`
	// IsNull is set if the patch in the file is null. Patch is then empty.
	// Evaluation treats a null patch differently from an empty one.
	IsNull bool `json:"-"`
}

// WritePredictions writes preds.json atomically. The file is an object that maps
// instance IDs to predictions, sorted by ID. WritePredictions fails if a key of preds is
// empty or not the InstanceID of its prediction, or if a patch is not valid UTF-8; the
// caller must make such a patch a binary patch. A null patch becomes an empty one.
func WritePredictions(path string, preds map[string]Prediction) error {
	err := atomicfile.WriteFunc(path, 0o644, func(w io.Writer) error { return EncodePredictions(w, preds) })
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// EncodePredictions is WritePredictions for an io.Writer.
func EncodePredictions(w io.Writer, preds map[string]Prediction) error {
	for id, p := range preds {
		if id == "" || p.InstanceID != id {
			return fmt.Errorf("prediction of %q is stored under %q", p.InstanceID, id)
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
