package export

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/parquet-go/parquet-go"
)

// shards are the files of rows: one a split, or several where they are bounded.
type shards struct {
	o      Options
	dir    string
	splits []string
	schema *schema // of parquet files; nil for lines of JSON
	enc    *encoder
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

// lines writes rows as JSON, a line each.
type lines struct{ *bufio.Writer }

func (l *lines) write(_ parquet.Row, line []byte) error {
	_, err := l.Write(line)
	return err
}

func (l *lines) close() error { return l.Flush() }

// put appends the rows of a batch, all or none of them. Where a file is full it
// moves on to the next one. A row is never cut in two, and a file has one at least.
func (s *shards) put(split string, rows []object) error {
	var taken []parquet.Row
	for _, r := range rows {
		var values parquet.Row
		if s.schema != nil {
			var err error
			if values, err = s.schema.shred(r); err != nil {
				return err
			}
		}
		taken = append(taken, values)
	}
	split = cmp.Or(split, s.splits[0])
	for i, r := range rows {
		s.enc.buf.Reset()
		if err := s.enc.value(r); err != nil {
			return err
		}
		s.enc.buf.WriteByte('\n')
		if err := s.write(split, taken[i], s.enc.buf.Bytes()); err != nil {
			return fmt.Errorf("write rows: %w", err)
		}
	}
	return nil
}

func (s *shards) write(split string, row parquet.Row, line []byte) error {
	sh, err := s.at(split)
	if err != nil {
		return err
	}
	size := int64(len(line))
	if sh.Rows > 0 && (s.o.ShardRows > 0 && sh.Rows >= s.o.ShardRows || s.o.ShardBytes > 0 && sh.text+size > s.o.ShardBytes) {
		if err := s.seal(split); err != nil {
			return err
		}
		if sh, err = s.at(split); err != nil {
			return err
		}
	}
	sh.Rows++
	sh.text += size
	return sh.to.write(row, line)
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
		return nil, err
	}
	if s.schema != nil {
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
	return errors.Join(err, sh.f.Sync(), sh.f.Close())
}

// finish gives files their names, which say how many there are.
func (s *shards) finish() ([]File, error) {
	var files []File
	for _, split := range s.splits {
		_, err := s.at(split) // one without rows is a file too
		if err == nil {
			err = s.seal(split)
		}
		if err != nil {
			return nil, fmt.Errorf("write rows: %w", err)
		}
	}
	suffix := ".jsonl"
	if s.schema != nil {
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

// abandon closes what is open.
func (s *shards) abandon() {
	for _, sh := range s.open {
		_ = sh.f.Close() // its folder is removed
	}
}
