package export

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
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
	splits     []string          // in the order of output files
	columns    parquet.Node      // of parquet files; nil for JSON lines
	openShards map[string]*shard // by split
	counts     map[string]int    // number of files by split
	closed     []*shard
}

// shard is a file with rows of a split.
type shard struct {
	outFile
	number    int   // within the split, from 1
	jsonBytes int64 // size of the rows as JSON
}

// outFile is an output file with rows.
type outFile struct {
	File
	f      *os.File
	buffer *bufio.Writer
	rows   rowWriter
}

// createFile creates a file for parquet with these columns or, if columns is nil, for text.
func createFile(dir, name string, columns parquet.Node) (outFile, error) {
	f, err := os.Create(filepath.Join(dir, name)) //nolint:gosec // G304: a name of ours in the temporary folder
	if err != nil {
		return outFile{}, err
	}
	o := outFile{File: File{Name: name}, f: f, buffer: bufio.NewWriterSize(f, 64<<10)} // longer rows bypass the buffer
	o.rows = jsonLines{o.buffer}
	if columns != nil {
		o.rows = newParquetWriter(o.buffer, columns)
	}
	return o, nil
}

// finish writes what is buffered and closes the file.
func (o *outFile) finish() error {
	err := errors.Join(o.rows.close(), o.buffer.Flush())
	if info, serr := o.f.Stat(); serr == nil {
		o.Bytes = info.Size()
	}
	return errors.Join(err, o.f.Sync(), o.f.Close())
}

// jsonLines writes rows as JSON lines.
type jsonLines struct{ w io.Writer }

func (l jsonLines) write(line []byte) error {
	_, err := l.w.Write(append(line, '\n'))
	return err
}

func (l jsonLines) close() error { return nil }

// put writes rows to a split.
func (s *shards) put(split string, rows []any) error {
	split = cmp.Or(split, s.splits[0])
	for _, r := range rows {
		line, err := encode(r)
		if err == nil {
			err = s.write(split, line)
		}
		if err != nil {
			return fmt.Errorf("write rows: %w", err)
		}
	}
	return nil
}

// write writes a row to the open file of a split. It starts a new file if the row would
// exceed the limits of the open one. A single row may exceed ShardBytes.
func (s *shards) write(split string, line []byte) error {
	sh, err := s.openShard(split)
	if err != nil {
		return err
	}
	size := int64(len(line) + 1)
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
	return sh.rows.write(line)
}

// openShard returns the open file of a split, and creates it if there is none.
func (s *shards) openShard(split string) (*shard, error) {
	if sh := s.openShards[split]; sh != nil {
		return sh, nil
	}
	s.counts[split]++
	number := s.counts[split]
	f, err := createFile(s.dir, fmt.Sprintf("%s-%d.partial", split, number), s.columns)
	if err != nil {
		return nil, err
	}
	f.Split = split
	s.openShards[split] = &shard{outFile: f, number: number}
	return s.openShards[split], nil
}

// closeShard closes the open file of a split.
func (s *shards) closeShard(split string) error {
	sh := s.openShards[split]
	delete(s.openShards, split)
	s.closed = append(s.closed, sh)
	return sh.finish()
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
	if s.columns != nil {
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
