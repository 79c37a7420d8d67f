package export_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/golden"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
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
			assert.Equal(t, len(got), r.Rows, "rows reported")
			for _, row := range want { // parquet.Reader leaves nulls out
				maps.DeleteFunc(row, func(_ string, v any) bool { return v == nil })
			}
			assert.Equal(t, want, got, "lines of JSON are -, parquet is +")
		})
	}
}

// parquetRows reads the rows of a parquet file with the library.
func parquetRows(t *testing.T, path string) []map[string]any {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
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
		require.NoError(t, err)
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
	require.NoError(t, err)
	defer f.Close()
	info, err := f.Stat()
	require.NoError(t, err)
	file, err := parquet.OpenFile(f, info.Size())
	require.NoError(t, err)
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
	require.NoError(t, err)
	cfg := export.Config{Options: export.Options{Format: export.OpenAI, Parquet: true}, Dir: dir, Tools: []json.RawMessage{tools}}
	r, err := export.Run(t.Context(), cfg, attempts(item("a__b-1", 1, "", mixed)))
	if !errors.Is(err, export.ErrNothingToExport) || len(r.Dropped) != 1 {
		t.Errorf("a call with an argument that the tool has not: %v, %v", err, r.Dropped)
	}
	cfg.Tools = append(cfg.Tools, json.RawMessage(`[{"type":"function","function":{"name":"edit","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}}]`))
	_, err = export.Run(t.Context(), cfg, attempts(item("a__b-1", 1, "", callAttempt())))
	assert.ErrorIs(t, err, export.ErrOptions, "two sets of tools")
	cfg.ToolArguments = export.ArgumentsText
	if _, err := export.Run(t.Context(), cfg, attempts(item("a__b-1", 1, "", callAttempt()))); err != nil {
		t.Errorf("two sets of tools, with arguments as text: %v", err)
	}
}

// tableAttempts returns attempts of two runs with what columns distinguish: a retry, an
// attempt that has not ended, unknown costs, an inherited reply, and commands that
// failed, were rejected or would be formulas.
func tableAttempts() []export.AttemptSource {
	text := item("owner__lib-1", 1, "resolved", textAttempt().withExecutions())
	text.Repo, text.Flags, text.Selected = "owner/lib", []string{"edits_tests", "skips"}, true
	text.Outcome.Times = trajectories.Times{Model: trajectories.Seconds(1500 * time.Millisecond)}
	text.Entries[2].Executions[0].ExitCode = 2
	text.Entries[2].Call.Duration = trajectories.Seconds(2500 * time.Millisecond)

	called := callAttempt().withExecutions()
	called.t.Entries[2].Actions[0] = "=cmd()\x00\n\"quoted\", -1"
	called.t.Entries[2].Executions[1].TimedOut = true
	called.t.Entries[2].Executions[1].ExitCodeUnknown = true
	called.t.Entries[5].Call = nil
	retried := item("owner__lib-1", 2, "", called)
	retried.Repetition, retried.Outcome.Class, retried.Outcome.Error = 1, trajectories.Provider, "connection reset"
	retried.Outcome.Cost, retried.Outcome.Usage.Unpriced = 0, 3

	running := textAttempt().withExecutions()
	running.t.Outcome, running.t.Header.Origin = nil, &trajectories.Origin{Record: running.t.Entries[2].Record}
	running.t.FailedCalls = []trajectories.Call{{Cost: 0.125, Usage: model.Usage{Prompt: 7}}}

	var list []export.AttemptSource
	for i, it := range []*export.Item{text, retried, item("owner__lib-1", 1, "", running)} {
		source := attempts(it)[0]
		if source.Run = "first"; i == 2 {
			source.Run, source.Requested = "second", 3
		}
		list = append(list, source)
	}
	return append(list, attempts(item("single", 1, "error", newAttempt("", false)))...)
}

func runTable(t *testing.T, asParquet bool) (string, export.Report) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	o := export.Options{Format: export.Table, Parquet: asParquet}
	r, err := export.Run(t.Context(), export.Config{Options: o, Dir: dir, Workers: 2}, tableAttempts())
	require.NoError(t, err)
	return dir, r
}

var tableNames = []string{"instances", "attempts", "steps"}

// TestTable compares the CSV files, joined, with a golden file.
func TestTable(t *testing.T) {
	dir, r := runTable(t, false)
	var all bytes.Buffer
	for i, name := range tableNames {
		data, err := os.ReadFile(filepath.Join(dir, name+".csv"))
		require.NoError(t, err)
		fmt.Fprintf(&all, "# %s, %d rows\n%s", r.Files[i].Name, r.Files[i].Rows, data)
	}
	golden.Check(t, filepath.Join("testdata", "table.golden"), all.Bytes())
	assert.Equal(t, r.Files[0].Rows+r.Files[1].Rows+r.Files[2].Rows, r.Rows, "rows")
}

// TestTableParquet compares parquet files with CSV files of the same attempts.
func TestTableParquet(t *testing.T) {
	csvDir, _ := runTable(t, false)
	dir, _ := runTable(t, true)
	for _, name := range tableNames {
		var got []map[string]string
		for _, row := range parquetRows(t, filepath.Join(dir, name+".parquet")) {
			texts := map[string]string{}
			for column, v := range row {
				switch column {
				case "start", "end", "time":
					micros, ok := v.(float64) // as in JSON
					if !ok {
						t.Fatalf("%s is %T", column, v)
					}
					v = time.UnixMicro(int64(micros)).UTC().Format("2006-01-02T15:04:05.000000Z")
				case "command": // a spreadsheet does not read parquet
					v = strings.ReplaceAll(strings.Replace(fmt.Sprint(v), "=", "'=", 1), "\x00", "\ufffd")
				}
				texts[column] = fmt.Sprint(v)
			}
			got = append(got, texts)
		}
		assert.Equal(t, csvRows(t, filepath.Join(csvDir, name+".csv")), got, "%s: CSV is -, parquet is +", name)
	}
}

// csvRows returns the rows of a CSV file, without empty fields.
func csvRows(t *testing.T, path string) []map[string]string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	lines, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	require.NoError(t, err)
	var all []map[string]string
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, field := range line {
			if field != "" {
				row[lines[0][i]] = field
			}
		}
		all = append(all, row)
	}
	return all
}

// TestTableColumnsDocumented checks that docs/export.md explains each column.
func TestTableColumnsDocumented(t *testing.T) {
	docs, err := os.ReadFile("../../docs/export.md")
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(docs), "\n## table\n")
	dir, _ := runTable(t, false)
	for _, name := range tableNames {
		data, err := os.ReadFile(filepath.Join(dir, name+".csv"))
		require.NoError(t, err)
		head, _, _ := strings.Cut(string(data), "\n")
		for column := range strings.SplitSeq(head, ",") {
			assert.Contains(t, section, "`"+column+"`", "docs/export.md does not explain %s of %s", column, name)
		}
	}
}
