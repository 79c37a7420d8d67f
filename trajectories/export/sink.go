package export

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// sink is where the rows or files of an export go. All but file is called by
// one goroutine.
type sink interface {
	// file writes those of an attempt that has its own.
	file(it *Item, lost losses) ([]File, error)
	put(w written) error
	finish() ([]File, error)
	// abandon closes what is open.
	abandon() error
}

func (e *exporter) newSink() (sink, error) {
	switch {
	case e.form.name == Preds:
		return newPredictions(e.out.tmp), nil
	case e.form.write == nil:
		return &attemptFiles{dir: e.out.tmp, format: e.form.name}, nil
	}
	s := &shards{o: e.cfg.Options, schema: e.schema, dir: e.out.tmp, open: map[string]*shard{}, count: map[string]int{}}
	s.splits = e.cfg.Splits
	if len(s.splits) == 0 {
		s.splits = []string{OneSplit}
	}
	return s, nil
}

// shards are the files of rows: one a split, or several where they are bounded.
type shards struct {
	o      Options
	dir    string
	splits []string
	schema *schema // of parquet files
	open   map[string]*shard
	count  map[string]int // by split
	done   []*shard
}

// shard is one file of rows.
type shard struct {
	File
	number int
	f      *os.File
	to     rowWriter
	text   int64 // bytes of JSON in it
}

// rowWriter takes rows of JSON, a line each.
type rowWriter interface {
	write(w *writer, from, to int) error
	close() error
}

func (s *shards) file(*Item, losses) ([]File, error) { return nil, nil }

// put appends rows, moving on to the next file where one is full. A row is never
// cut in two, and a file has one at least.
func (s *shards) put(w written) error {
	split := w.split
	if split == "" {
		split = s.splits[0]
	}
	from, start := 0, 0
	for i, end := range w.rows.ends {
		sh, err := s.at(split)
		if err != nil {
			return err
		}
		if full := sh.Rows > 0 && (s.o.ShardRows > 0 && sh.Rows >= s.o.ShardRows ||
			s.o.ShardBytes > 0 && sh.text+int64(end-start) > s.o.ShardBytes); full {
			if err := s.write(sh, w.rows, from, i); err != nil {
				return err
			}
			if err := s.seal(split); err != nil {
				return err
			}
			from = i
			if sh, err = s.at(split); err != nil {
				return err
			}
		}
		sh.Rows++
		sh.text += int64(end - start)
		start = end
	}
	sh, err := s.at(split)
	if err != nil {
		return err
	}
	return s.write(sh, w.rows, from, len(w.rows.ends))
}

func (s *shards) write(sh *shard, w *writer, from, to int) error {
	if from == to {
		return nil
	}
	if err := sh.to.write(w, from, to); err != nil {
		return fmt.Errorf("write rows: %w", err)
	}
	return nil
}

// at is the open file of a split.
func (s *shards) at(split string) (*shard, error) {
	if sh := s.open[split]; sh != nil {
		return sh, nil
	}
	s.count[split]++
	sh := &shard{number: s.count[split]}
	sh.Split = split
	var err error
	if sh.f, err = os.Create(filepath.Join(s.dir, fmt.Sprintf("%s-%d.partial", split, sh.number))); err != nil {
		return nil, fmt.Errorf("write rows: %w", err)
	}
	if s.o.Parquet {
		sh.to = s.schema.writer(sh.f)
	} else {
		sh.to = &lines{bufio.NewWriterSize(sh.f, 64<<10)} // long rows pass it by
	}
	s.open[split] = sh
	return sh, nil
}

// seal completes the open file of a split.
func (s *shards) seal(split string) error {
	sh := s.open[split]
	delete(s.open, split)
	s.done = append(s.done, sh)
	err := sh.to.close()
	if info, serr := sh.f.Stat(); serr == nil {
		sh.Bytes = info.Size()
	}
	if err = errors.Join(err, sh.f.Sync(), sh.f.Close()); err != nil {
		return fmt.Errorf("write rows: %w", err)
	}
	return nil
}

// finish gives files their names, which say how many there are.
func (s *shards) finish() ([]File, error) {
	var files []File
	for _, split := range s.splits {
		if _, err := s.at(split); err != nil { // one without rows is a file too
			return nil, err
		}
		if err := s.seal(split); err != nil {
			return nil, err
		}
	}
	suffix := ".jsonl"
	if s.o.Parquet {
		suffix = ".parquet"
	}
	slices.SortStableFunc(s.done, func(a, b *shard) int {
		return slices.Index(s.splits, a.Split) - slices.Index(s.splits, b.Split)
	})
	for _, sh := range s.done {
		sh.Name = sh.Split + suffix
		if s.o.ShardRows > 0 || s.o.ShardBytes > 0 {
			sh.Name = fmt.Sprintf("%s-%05d-of-%05d%s", sh.Split, sh.number, s.count[sh.Split], suffix)
		}
		if err := os.Rename(sh.f.Name(), filepath.Join(s.dir, sh.Name)); err != nil {
			return nil, fmt.Errorf("name file: %w", err)
		}
		files = append(files, sh.File)
	}
	return files, nil
}

func (s *shards) abandon() error {
	var errs []error
	for _, sh := range s.open {
		errs = append(errs, sh.f.Close())
	}
	return errors.Join(errs...)
}

// lines writes rows as they are.
type lines struct{ *bufio.Writer }

func (l *lines) write(w *writer, from, to int) error {
	start := 0
	if from > 0 {
		start = w.ends[from-1]
	}
	_, err := l.Write(w.row.data[start:w.ends[to-1]])
	return err
}

func (l *lines) close() error { return l.Flush() }

// writeJSON makes a file of one document.
func writeJSON(path string, v any) (err error) {
	f, err := os.Create(path) //nolint:gosec // G304: within the folder that is being made
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return encode(f, v)
}

func encode(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
