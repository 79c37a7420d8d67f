package datasets_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minibench/mini/datasets"
)

// FuzzRead checks that any input gives rows whose ids are safe as file names, or an error
// that names the file.
func FuzzRead(f *testing.F) {
	for _, s := range []string{
		row, "[" + row + "]", "null", `{"instance_id":"a/b"}`, "[[[", `{"FAIL_TO_PASS":""}`,
		`{"instance_id":"a","x":{"instance_id":"b","y":["}",{}]},"problem_statement":"\\\"","instance_id":"c"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if bytes.HasPrefix(data, []byte("PAR1")) {
			t.Skip("the library reads parquet files")
		}
		checkSafe(t, data)
	})
}

// checkSafe reads data and checks the rows or the error.
func checkSafe(t *testing.T, data []byte) {
	t.Helper()
	set, err := read(t, "x", string(data))
	if err != nil {
		if !strings.HasPrefix(err.Error(), "x: ") || !errors.Is(err, datasets.ErrData) {
			t.Errorf("error without the file: %v", err)
		}
		return
	}
	for _, in := range set.Instances {
		if in.ID == "" || in.ID != filepath.Base(in.ID) || strings.HasPrefix(in.ID, ".") || strings.ContainsRune(in.ID, 0) {
			t.Errorf("unsafe id %q", in.ID)
		}
		for name, raw := range in.Row {
			if !json.Valid(raw) {
				t.Errorf("column %q is not JSON: %.100q", name, raw)
			}
		}
		in.Fields()
	}
}
