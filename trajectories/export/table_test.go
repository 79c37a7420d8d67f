package export_test

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/export"
)

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
	if err != nil {
		t.Fatal(err)
	}
	return dir, r
}

var tableNames = []string{"instances", "attempts", "steps"}

// TestTable compares the CSV files, joined, with a golden file.
func TestTable(t *testing.T) {
	dir, r := runTable(t, false)
	var all bytes.Buffer
	for i, name := range tableNames {
		data, err := os.ReadFile(filepath.Join(dir, name+".csv"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&all, "# %s, %d rows\n%s", r.Files[i].Name, r.Files[i].Rows, data)
	}
	golden(t, "table.golden", all.Bytes())
	if r.Rows != r.Files[0].Rows+r.Files[1].Rows+r.Files[2].Rows {
		t.Errorf("%d rows", r.Rows)
	}
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
		if diff := cmp.Diff(csvRows(t, filepath.Join(csvDir, name+".csv")), got); diff != "" {
			t.Errorf("%s: CSV is -, parquet is +:\n%s", name, diff)
		}
	}
}

// csvRows returns the rows of a CSV file, without empty fields.
func csvRows(t *testing.T, path string) []map[string]string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(docs), "\n## table\n")
	dir, _ := runTable(t, false)
	for _, name := range tableNames {
		data, err := os.ReadFile(filepath.Join(dir, name+".csv"))
		if err != nil {
			t.Fatal(err)
		}
		head, _, _ := strings.Cut(string(data), "\n")
		for column := range strings.SplitSeq(head, ",") {
			if !strings.Contains(section, "`"+column+"`") {
				t.Errorf("docs/export.md does not explain %s of %s", column, name)
			}
		}
	}
}
