package export

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

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
	File
	f       *os.File
	buffer  *bufio.Writer
	csv     *csv.Writer // nil for parquet
	schema  *schema
	parquet *parquetWriter
	enc     *encoder
}

func newTableFile(dir, name string, row []cell, asParquet bool) (*tableFile, error) {
	t := &tableFile{enc: newEncoder()}
	t.Name = name + map[bool]string{false: ".csv", true: ".parquet"}[asParquet]
	var err error
	if t.f, err = os.Create(filepath.Join(dir, t.Name)); err != nil { //nolint:gosec // G304: a fixed name in the temporary folder
		return nil, err
	}
	t.buffer = bufio.NewWriterSize(t.f, 64<<10)
	var columns []column
	var head []string
	for _, c := range row {
		columns, head = append(columns, c.column), append(head, c.name)
	}
	if asParquet {
		t.schema = newSchema(columns)
		t.parquet = t.schema.newWriter(t.buffer)
		return t, nil
	}
	t.csv = csv.NewWriter(t.buffer)
	return t, t.csv.Write(head)
}

// write writes a row.
func (t *tableFile) write(row []cell) error {
	t.Rows++
	var fields []string
	var o object
	for _, c := range row {
		if t.csv != nil {
			fields = append(fields, csvField(c.value))
		} else {
			o = append(o, member{c.name, c.value})
		}
	}
	if t.csv != nil {
		return t.csv.Write(fields)
	}
	converted, err := t.schema.convert(o)
	if err != nil {
		return err
	}
	t.enc.buf.Reset()
	if err := t.enc.encode(o); err != nil {
		return err
	}
	return t.parquet.write(converted, t.enc.buf.Bytes())
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

// finish writes what is buffered and closes the file.
func (t *tableFile) finish() error {
	var err error
	if t.csv != nil {
		t.csv.Flush()
		err = t.csv.Error()
	} else {
		err = t.parquet.close()
	}
	err = errors.Join(err, t.buffer.Flush())
	if info, serr := t.f.Stat(); serr == nil {
		t.Bytes = info.Size()
	}
	return errors.Join(err, t.f.Sync(), t.f.Close())
}

// cell is a column with its value in a row; nil is null.
type cell struct {
	column
	value any
}

func textCell(name string, value any) cell { return cell{column{name: name}, value} }
func intCell(name string, value any) cell  { return cell{column{name: name, kind: intKind}, value} }

func floatCell(name string, value any) cell { return cell{column{name: name, kind: floatKind}, value} }

func boolCell(name string, value any) cell { return cell{column{name: name, kind: boolKind}, value} }

// timeCell is null for the zero time.
func timeCell(name string, t time.Time) cell {
	c := cell{column: column{name: name, kind: timeKind}}
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
	return append([]cell{
		textCell("run", orNull(s.run)),
		textCell("instance_id", s.instance),
		textCell("repo", orNull(s.repo)),
		intCell("requested", orNull(int64(s.requested))),
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
