package export_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/minibench/mini/trajectories/export"
)

// TestParquet compares the rows of a parquet file with the JSON lines of the same
// attempts. They are equal except for nulls.
func TestParquet(t *testing.T) {
	for _, o := range []export.Options{
		{Format: export.OpenAI},
		{Format: export.OpenAI, ToolArguments: export.ArgumentsText, Reasoning: export.ReasoningDrop},
		{Format: export.ShareGPT},
		{Format: export.Axolotl, FormatErrors: export.FormatErrorsMask},
		{Format: export.PromptCompletion},
		{Format: export.KTO},
		{Format: export.DPO, Completion: export.CompletionRest},
	} {
		t.Run(fmt.Sprint(o.Format, o.ToolArguments), func(t *testing.T) {
			dir, _ := run(t, o, allAttempts()[2:]...) // the attempts with calls
			want := rows(t, filepath.Join(dir, "train.jsonl"))
			o.Parquet = true
			dir, r := run(t, o, allAttempts()[2:]...)
			got := parquetRows(t, filepath.Join(dir, "train.parquet"))
			if r.Rows != len(got) {
				t.Errorf("%d rows reported, %d read", r.Rows, len(got))
			}
			for _, row := range want { // parquet.Reader leaves nulls out
				maps.DeleteFunc(row, func(_ string, v any) bool { return v == nil })
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("lines of JSON are -, parquet is +:\n%s", diff)
			}
		})
	}
}

// parquetRows reads the rows of a parquet file with the library.
func parquetRows(t *testing.T, path string) []map[string]any {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := parquet.NewReader(f)
	defer r.Close()
	var all []map[string]any
	for {
		row := map[string]any{}
		err := r.Read(&row)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		plain, _ := plain(row).(map[string]any)
		all = append(all, plain)
	}
}

// plain converts a value to the form of encoding/json. It removes nulls and the groups that
// parquet puts around lists.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if list, ok := v["list"]; ok && len(v) == 1 {
			return plain(list)
		}
		if e, ok := v["element"]; ok && len(v) == 1 {
			return plain(e)
		}
		m := map[string]any{}
		for name, value := range v {
			if p := plain(value); p != nil {
				m[name] = p
			}
		}
		if len(m) == 0 {
			return nil
		}
		return m
	case []any:
		var list []any
		for _, e := range v {
			list = append(list, plain(e))
		}
		if len(list) == 0 {
			return nil
		}
		return list
	case []byte:
		return string(v)
	case int64:
		return float64(v)
	}
	return v
}

// TestParquetOrder checks the order of members, since chat templates print members in
// order.
func TestParquetOrder(t *testing.T) {
	dir, _ := run(t, export.Options{Format: export.OpenAI, Parquet: true}, allAttempts()...)
	f, err := os.Open(filepath.Join(dir, "train.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	file, err := parquet.OpenFile(f, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, path := range file.Schema().Columns() {
		names = append(names, fmt.Sprint(path))
	}
	indexOf := func(name string) int { return slices.Index(names, name) }
	function := "[tools list element function "
	if a, b, c := indexOf(function+"name]"), indexOf(function+"description]"), indexOf(function+"parameters type]"); a < 0 || b < a || c < b {
		t.Errorf("columns %q", names)
	}
}

// TestParquetRefuses checks attempts that do not fit the columns of a file.
func TestParquetRefuses(t *testing.T) {
	mixed := callAttempt()
	mixed.t.Entries[2].ToolCalls[0].Arguments = `{"command":"ls","timeout":5}`
	dir := filepath.Join(t.TempDir(), "out")
	tools, err := export.EncodeTools(mixed.t.Header.Tools)
	if err != nil {
		t.Fatal(err)
	}
	cfg := export.Config{Options: export.Options{Format: export.OpenAI, Parquet: true}, Dir: dir, Tools: []json.RawMessage{tools}}
	r, err := export.Run(t.Context(), cfg, attempts(item("a__b-1", 1, "", mixed)))
	if !errors.Is(err, export.ErrNothingToExport) || len(r.Dropped) != 1 {
		t.Errorf("a call with an argument that the tool has not: %v, %v", err, r.Dropped)
	}
	cfg.Tools = append(cfg.Tools, json.RawMessage(`[{"type":"function","function":{"name":"edit","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}}]`))
	if _, err := export.Run(t.Context(), cfg, attempts(item("a__b-1", 1, "", callAttempt()))); !errors.Is(err, export.ErrOptions) {
		t.Errorf("two sets of tools: %v", err)
	}
	cfg.ToolArguments = export.ArgumentsText
	if _, err := export.Run(t.Context(), cfg, attempts(item("a__b-1", 1, "", callAttempt()))); err != nil {
		t.Errorf("two sets of tools, with arguments as text: %v", err)
	}
}
