package trajectories

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"unicode/utf8"
)

// maxFile bounds the derived and foreign files that are read whole, in bytes.
const maxFile = 512 << 20

// Prediction is a submission in the form that the SWE-bench harness and sb-cli
// read. The patch is kept to the byte, the last newline included.
type Prediction struct {
	Model      string `json:"model_name_or_path"`
	InstanceID string `json:"instance_id"`
	Patch      string `json:"model_patch"`
}

// WritePredictions writes preds.json: an object from instance id to
// prediction, sorted by id, replaced atomically. A patch has to be valid UTF-8,
// for JSON has no other text; the caller makes a binary patch of what is not.
func WritePredictions(path string, preds map[string]Prediction) error {
	for id, p := range preds {
		if id == "" || p.InstanceID != id {
			return fmt.Errorf("write %s: prediction of %q stands under %q", path, p.InstanceID, id)
		}
		if !utf8.ValidString(p.Patch) {
			return fmt.Errorf("write %s: the patch of %s is not valid UTF-8", path, id)
		}
	}
	if preds == nil {
		preds = map[string]Prediction{}
	}
	return writeAtomic(path, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(preds); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		return nil
	})
}

// ReadPredictions reads predictions by instance id, from any of the three
// forms in use: an object from id to prediction, a list, or one prediction a
// line. A null patch is an empty one. Errors name the file and the prediction.
func ReadPredictions(path string) (map[string]Prediction, error) {
	f, err := os.Open(path) //nolint:gosec // G304: reading the named file is the purpose
	if err != nil {
		return nil, fmt.Errorf("read predictions: %w", err)
	}
	defer func() { _ = f.Close() }()
	preds, err := parsePredictions(f, maxFile)
	if err != nil {
		return nil, fmt.Errorf("read predictions %s: %w", path, err)
	}
	return preds, nil
}

func parsePredictions(r io.Reader, limit int64) (map[string]Prediction, error) {
	in := &io.LimitedReader{R: r, N: limit + 1}
	preds := map[string]Prediction{}
	d := json.NewDecoder(in)
	for n := 1; ; n++ {
		var value json.RawMessage
		err := d.Decode(&value)
		if in.N <= 0 {
			return nil, fmt.Errorf("more than %d bytes", limit)
		}
		if errors.Is(err, io.EOF) {
			return preds, nil
		}
		if err == nil {
			err = addPredictions(preds, value)
		}
		if err != nil {
			return nil, fmt.Errorf("value %d: %w", n, err)
		}
	}
}

// addPredictions takes one JSON value of the file: a prediction, a list, or an
// object of them.
func addPredictions(preds map[string]Prediction, value json.RawMessage) error {
	if bytes.HasPrefix(value, []byte("[")) {
		var list []json.RawMessage
		if err := json.Unmarshal(value, &list); err != nil {
			return err
		}
		for i, item := range list {
			if err := addPrediction(preds, "", item); err != nil {
				return fmt.Errorf("item %d: %w", i, err)
			}
		}
		return nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(value, &object); err != nil {
		return errors.New("neither an object nor a list of predictions")
	}
	if id := object["instance_id"]; bytes.HasPrefix(id, []byte(`"`)) {
		return addPrediction(preds, "", value)
	}
	for _, id := range slices.Sorted(maps.Keys(object)) {
		if err := addPrediction(preds, id, object[id]); err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
	}
	return nil
}

// addPrediction adds one; key is the id it stands under, or empty.
func addPrediction(preds map[string]Prediction, key string, item json.RawMessage) error {
	var p Prediction
	if err := json.Unmarshal(item, &p); err != nil {
		return err
	}
	if p.InstanceID == "" {
		p.InstanceID = key
	}
	switch _, twice := preds[p.InstanceID]; {
	case p.InstanceID == "":
		return errors.New("instance_id is missing")
	case key != "" && key != p.InstanceID:
		return fmt.Errorf("instance_id is %q", p.InstanceID)
	case twice:
		return fmt.Errorf("%s stands there twice", p.InstanceID)
	}
	preds[p.InstanceID] = p
	return nil
}
