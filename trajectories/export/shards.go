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

// shards are the files with rows. A split has one file, or several if Options.ShardRows
// or Options.ShardBytes is set.
type shards struct {
	opts       Options
	dir        string
	splits     []string // in the order of output files
	schema     *schema  // of parquet files; nil for JSON lines
	enc        *encoder
	openShards map[string]*shard // by split
	counts     map[string]int    // number of files by split
	closed     []*shard
}

// shard is a file with rows.
type shard struct {
	File
	number    int // within the split, from 1
	f         *os.File
	rows      rowWriter
	jsonBytes int64 // size of the rows as JSON
}

// jsonLines writes rows as JSON lines.
type jsonLines struct{ *bufio.Writer }

func (l *jsonLines) write(_ parquet.Row, line []byte) error {
	_, err := l.Write(line)
	return err
}

func (l *jsonLines) close() error { return l.Flush() }

// put writes rows to a split. If a row does not fit the schema, put writes no row.
func (s *shards) put(split string, rows []object) error {
	var converted []parquet.Row
	for _, r := range rows {
		var values parquet.Row
		if s.schema != nil {
			var err error
			if values, err = s.schema.convert(r); err != nil {
				return err
			}
		}
		converted = append(converted, values)
	}
	split = cmp.Or(split, s.splits[0])
	for i, r := range rows {
		s.enc.buf.Reset()
		if err := s.enc.encode(r); err != nil {
			return err
		}
		s.enc.buf.WriteByte('\n')
		if err := s.write(split, converted[i], s.enc.buf.Bytes()); err != nil {
			return fmt.Errorf("write rows: %w", err)
		}
	}
	return nil
}

// write writes a row to the open file of a split. It starts a new file if the row would
// exceed the limits of the open one. A single row may exceed ShardBytes.
func (s *shards) write(split string, row parquet.Row, line []byte) error {
	sh, err := s.openShard(split)
	if err != nil {
		return err
	}
	size := int64(len(line))
	if sh.Rows > 0 && (s.opts.ShardRows > 0 && sh.Rows >= s.opts.ShardRows || s.opts.ShardBytes > 0 && sh.jsonBytes+size > s.opts.ShardBytes) {
		if err := s.closeShard(split); err != nil {
			return err
		}
		if sh, err = s.openShard(split); err != nil {
			return err
		}
	}
	sh.Rows++
	sh.jsonBytes += size
	return sh.rows.write(row, line)
}

// openShard returns the open file of a split, and creates it if there is none.
func (s *shards) openShard(split string) (*shard, error) {
	if sh := s.openShards[split]; sh != nil {
		return sh, nil
	}
	s.counts[split]++
	sh := &shard{number: s.counts[split]}
	sh.Split = split
	var err error
	if sh.f, err = os.Create(filepath.Join(s.dir, fmt.Sprintf("%s-%d.partial", split, sh.number))); err != nil {
		return nil, err
	}
	if s.schema != nil {
		sh.rows = s.schema.newWriter(sh.f)
	} else {
		sh.rows = &jsonLines{bufio.NewWriterSize(sh.f, 64<<10)} // rows that are longer bypass the buffer
	}
	s.openShards[split] = sh
	return sh, nil
}

// closeShard closes the open file of a split.
func (s *shards) closeShard(split string) error {
	sh := s.openShards[split]
	delete(s.openShards, split)
	s.closed = append(s.closed, sh)
	err := sh.rows.close()
	if info, serr := sh.f.Stat(); serr == nil {
		sh.Bytes = info.Size()
	}
	return errors.Join(err, sh.f.Sync(), sh.f.Close())
}

// finish closes all files and gives them their final names. If files are limited in size,
// the names contain the number of files.
func (s *shards) finish() ([]File, error) {
	var files []File
	for _, split := range s.splits {
		_, err := s.openShard(split) // creates an empty file for a split without rows
		if err == nil {
			err = s.closeShard(split)
		}
		if err != nil {
			return nil, fmt.Errorf("write rows: %w", err)
		}
	}
	suffix := ".jsonl"
	if s.schema != nil {
		suffix = ".parquet"
	}
	slices.SortStableFunc(s.closed, func(a, b *shard) int {
		return slices.Index(s.splits, a.Split) - slices.Index(s.splits, b.Split)
	})
	for _, sh := range s.closed {
		sh.Name = sh.Split + suffix
		if s.opts.ShardRows > 0 || s.opts.ShardBytes > 0 {
			sh.Name = fmt.Sprintf("%s-%05d-of-%05d%s", sh.Split, sh.number, s.counts[sh.Split], suffix)
		}
		if err := os.Rename(sh.f.Name(), filepath.Join(s.dir, sh.Name)); err != nil {
			return nil, fmt.Errorf("rename file: %w", err)
		}
		files = append(files, sh.File)
	}
	return files, nil
}

// closeFiles closes open files after a failed export.
func (s *shards) closeFiles() {
	for _, sh := range s.openShards {
		_ = sh.f.Close() // the exporter removes the folder
	}
}
