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
	for _, f := range []struct {
		to      **tableFile
		name    string
		columns []column
	}{
		{&t.instances, "instances", columnsOf(instanceColumns())},
		{&t.attempts, "attempts", columnsOf(attemptColumns())},
		{&t.steps, "steps", columnsOf(stepColumns())},
	} {
		var err error
		if *f.to, err = newTableFile(dir, f.name, f.columns, asParquet); err != nil {
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
		if err := t.steps.write(rowOf(stepColumns(), s)); err != nil {
			return err
		}
	}
	return t.attempts.write(rowOf(attemptColumns(), a))
}

// flush writes the row of the instance whose attempts have been added.
func (t *tables) flush() error {
	if t.sum == nil {
		return nil
	}
	row := rowOf(instanceColumns(), t.sum)
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

func newTableFile(dir, name string, columns []column, asParquet bool) (*tableFile, error) {
	t := &tableFile{enc: newEncoder()}
	t.Name = name + map[bool]string{false: ".csv", true: ".parquet"}[asParquet]
	var err error
	if t.f, err = os.Create(filepath.Join(dir, t.Name)); err != nil { //nolint:gosec // G304: a fixed name in the temporary folder
		return nil, err
	}
	t.buffer = bufio.NewWriterSize(t.f, 64<<10)
	if asParquet {
		t.schema = newSchema(columns)
		t.parquet = t.schema.newWriter(t.buffer)
		return t, nil
	}
	t.csv = csv.NewWriter(t.buffer)
	var head []string
	for _, c := range columns {
		head = append(head, c.name)
	}
	return t, t.csv.Write(head)
}

// write writes a row with a value for each column.
func (t *tableFile) write(o object) error {
	t.Rows++
	if t.csv != nil {
		var fields []string
		for _, m := range o {
			fields = append(fields, csvField(m.value))
		}
		return t.csv.Write(fields)
	}
	row, err := t.schema.convert(o)
	if err != nil {
		return err
	}
	t.enc.buf.Reset()
	if err := t.enc.encode(o); err != nil {
		return err
	}
	return t.parquet.write(row, t.enc.buf.Bytes())
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

// tableColumn is a column with the value that it has for a T.
type tableColumn[T any] struct {
	column
	value func(T) any
}

func columnsOf[T any](columns []tableColumn[T]) []column {
	var all []column
	for _, c := range columns {
		all = append(all, c.column)
	}
	return all
}

func rowOf[T any](columns []tableColumn[T], v T) object {
	var o object
	for _, c := range columns {
		o = append(o, member{c.name, c.value(v)})
	}
	return o
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

func instanceColumns() []tableColumn[*instanceSum] {
	return append([]tableColumn[*instanceSum]{
		{column{name: "run"}, func(s *instanceSum) any { return orNull(s.run) }},
		{column{name: "instance_id"}, func(s *instanceSum) any { return s.instance }},
		{column{name: "repo"}, func(s *instanceSum) any { return orNull(s.repo) }},
		{column{name: "requested", kind: intKind}, func(s *instanceSum) any { return orNull(int64(s.requested)) }},
		{column{name: "repetitions", kind: intKind}, func(s *instanceSum) any { return int64(len(s.repetitions)) }},
		{column{name: "attempts", kind: intKind}, func(s *instanceSum) any { return s.attempts }},
		{column{name: "judged", kind: intKind}, func(s *instanceSum) any { return s.judged }},
		{column{name: "resolved", kind: intKind}, func(s *instanceSum) any { return s.resolved }},
		{column{name: "flagged", kind: intKind}, func(s *instanceSum) any { return s.flagged }},
	}, sumColumns(func(s *instanceSum) sums { return s.sums })...)
}

// decimal returns a number with at most six decimals.
func decimal(v float64) any {
	return json.Number(cmp.Or(strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.6f", v), "0"), "."), "0"))
}

// orNullTime returns nil for the zero time.
func orNullTime(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t
}
