package export

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/trajectories"
)

// tables are the files of the format Table: a row for each instance of a run, for each
// attempt and for each step.
type tables struct {
	instances, attempts, steps *tableFile
	sum                        *instanceSum // of the newest attempt's instance
}

// newTables creates the files in dir.
func newTables(dir string, asParquet bool) (*tables, error) {
	t := &tables{}
	empty := &Item{Attempt: &trajectories.Attempt{}}
	for _, f := range []struct {
		to   **tableFile
		name string
		row  []cell // with the columns
	}{
		{&t.instances, "instances", (&instanceSum{}).row()},
		{&t.attempts, "attempts", newAttemptRow(empty).row()},
		{&t.steps, "steps", (&stepRow{Item: empty, entry: &trajectories.Entry{}}).row()},
	} {
		var err error
		if *f.to, err = newTableFile(dir, f.name, f.row, asParquet); err != nil {
			t.close()
			return nil, err
		}
	}
	return t, nil
}

// add writes the rows of an attempt, and that of the instance before it.
func (t *tables) add(item *Item) error {
	if t.sum != nil && (t.sum.instance != item.InstanceID || t.sum.run != item.source.Run) {
		if err := t.flush(); err != nil {
			return err
		}
	}
	a := newAttemptRow(item)
	if t.sum == nil {
		t.sum = &instanceSum{
			run: item.source.Run, instance: item.InstanceID, repo: item.Repo, requested: item.source.Requested,
			repetitions: map[int]bool{},
		}
	}
	t.sum.add(a)
	for _, s := range a.steps {
		if err := t.steps.write(s.row()); err != nil {
			return err
		}
	}
	return t.attempts.write(a.row())
}

// flush writes the row of the instance whose attempts have been added.
func (t *tables) flush() error {
	if t.sum == nil {
		return nil
	}
	row := t.sum.row()
	t.sum = nil
	return t.instances.write(row)
}

// finish completes the files.
func (t *tables) finish() ([]File, error) {
	err := t.flush()
	var files []File
	for _, f := range []*tableFile{t.instances, t.attempts, t.steps} {
		err = errors.Join(err, f.finish())
		files = append(files, f.File)
	}
	return files, err
}

// close closes the files after a failed export.
func (t *tables) close() {
	for _, f := range []*tableFile{t.instances, t.attempts, t.steps} {
		if f != nil {
			_ = f.f.Close() // the exporter removes the folder
		}
	}
}

// tableFile is a CSV or parquet file.
type tableFile struct {
	outFile
	csv *csv.Writer // nil for parquet
}

func newTableFile(dir, name string, row []cell, asParquet bool) (*tableFile, error) {
	var nodes []parquet.Node
	var head []string
	for _, c := range row {
		nodes, head = append(nodes, c.node), append(head, c.name)
	}
	if asParquet {
		f, err := createFile(dir, name+".parquet", groupOf(head, nodes))
		return &tableFile{outFile: f}, err
	}
	f, err := createFile(dir, name+".csv", nil)
	if err != nil {
		return nil, err
	}
	t := &tableFile{f, csv.NewWriter(f.buffer)}
	return t, t.csv.Write(head)
}

// write writes a row.
func (t *tableFile) write(row []cell) error {
	t.Rows++
	if t.csv != nil {
		var fields []string
		for _, c := range row {
			fields = append(fields, csvField(c.value))
		}
		return t.csv.Write(fields)
	}
	values := map[string]any{}
	for _, c := range row {
		values[c.name] = c.value
	}
	line, err := encode(values)
	if err != nil {
		return err
	}
	return t.rows.write(line)
}

// finish completes the file.
func (t *tableFile) finish() error {
	if t.csv != nil {
		t.csv.Flush()
	}
	return t.outFile.finish() // also returns errors of the CSV writer's buffer
}

// csvField formats a value. Null is empty. Programs that read CSV stop at NUL, or
// reject bytes that are not UTF-8, so U+FFFD replaces them.
func csvField(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return text.CSVField(strings.ReplaceAll(strings.ToValidUTF8(v, "\ufffd"), "\x00", "\ufffd"))
	case time.Time:
		return v.UTC().Format("2006-01-02T15:04:05.000000Z07:00")
	}
	return fmt.Sprint(v)
}

// cell is a column with its value in a row; nil is null.
type cell struct {
	name  string
	node  parquet.Node
	value any
}

func textCell(name, value string) cell { return cell{name, parquet.String(), value} }

// knownText is null for the empty text.
func knownText(name, value string) cell {
	c := textCell(name, value)
	if value == "" {
		c.value = nil
	}
	return c
}

func intCell(name string, value any) cell { return cell{name, parquet.Int(64), value} }

func floatCell(name string, value any) cell {
	return cell{name, parquet.Leaf(parquet.DoubleType), value}
}

func boolCell(name string, value any) cell {
	return cell{name, parquet.Leaf(parquet.BooleanType), value}
}

// timeCell is null for the zero time.
func timeCell(name string, t time.Time) cell {
	c := cell{name: name, node: parquet.Timestamp(parquet.Microsecond)}
	if !t.IsZero() {
		c.value = t
	}
	return c
}

// instanceSum adds up the rows of the attempts on an instance in a run.
type instanceSum struct {
	run, instance, repo string
	requested           int
	repetitions         map[int]bool
	attempts            int64
	// judged counts the selected attempts with a verdict of the tests, resolved and
	// flagged those of them.
	judged, resolved, flagged int64
	sums                      sums
}

func (s *instanceSum) add(a *attemptRow) {
	s.attempts++
	s.repetitions[a.Repetition] = true
	if a.Selected && a.Verdict != "" && a.Verdict != "infrastructure" && a.Verdict != "error" {
		s.judged++
		s.resolved += count(a.Verdict == "resolved")
		s.flagged += count(len(a.Flags) > 0)
	}
	s.sums.add(a.sums)
}

func count(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func (s *instanceSum) row() []cell {
	requested := intCell("requested", int64(s.requested))
	if s.requested == 0 {
		requested.value = nil
	}
	return append([]cell{
		knownText("run", s.run),
		textCell("instance_id", s.instance),
		knownText("repo", s.repo),
		requested,
		intCell("repetitions", int64(len(s.repetitions))),
		intCell("attempts", s.attempts),
		intCell("judged", s.judged),
		intCell("resolved", s.resolved),
		intCell("flagged", s.flagged),
	}, s.sums.cells()...)
}

// decimal returns a number with at most six decimals.
func decimal(v float64) any {
	return json.Number(cmp.Or(strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.6f", v), "0"), "."), "0"))
}
