package datasets

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
)

// SourceInfo identifies the content of a source.
type SourceInfo struct {
	Name     string `json:"name"` // as the user typed it
	Revision string `json:"revision,omitempty"`
	Split    string `json:"split,omitempty"`
	// SHA256 is the checksum of the file, in hex. For several files it is the checksum
	// of the output of sha256sum for them, in order: one line
	// "<sha256 of the file>  <slash-separated name within the dataset>" per file.
	SHA256 string `json:"sha256"`
	Files  int    `json:"files"`
	Rows   int    `json:"rows"`
}

// maxRows limits the ids in memory. The largest dataset has about 60,000 rows.
const maxRows = 5_000_000

// scan reads the ids of a source and, if checksum is true, computes its checksum.
func (s Source) scan(ctx context.Context, checksum bool) ([]string, SourceInfo, error) {
	info := SourceInfo{Name: s.Name, Revision: s.Revision, Split: s.Split, Files: s.count()}
	c := collector{source: s, seen: map[string]position{}}
	var sums []byte
	for i := range s.count() {
		sum := hash.Hash(nil)
		if checksum {
			sum = sha256.New()
		}
		if err := c.file(ctx, i, sum); err != nil {
			return nil, SourceInfo{}, err
		}
		if !checksum {
			continue
		}
		info.SHA256 = hex.EncodeToString(sum.Sum(nil))
		if err := s.verify(i, info.SHA256); err != nil {
			return nil, SourceInfo{}, err
		}
		if s.count() > 1 {
			sums = fmt.Appendf(sums, "%s  %s\n", info.SHA256, s.sumName(i))
		}
	}
	if len(c.ids) == 0 {
		return nil, SourceInfo{}, &dataError{s.displayName() + ": no rows"}
	}
	if checksum && s.count() > 1 {
		sum := sha256.Sum256(sums)
		info.SHA256 = hex.EncodeToString(sum[:])
	}
	info.Rows = len(c.ids)
	return c.ids, info, nil
}

// displayName returns the name of the source for messages.
func (s Source) displayName() string {
	if s.count() == 1 {
		return s.label(0)
	}
	return printable(s.Name)
}

// position is the file and the number of a row.
type position struct{ file, row int32 }

// collector collects the ids of a source and rejects duplicates.
type collector struct {
	source Source
	ids    []string
	seen   map[string]position
}

// file reads one file and writes its bytes to sum, which may be nil.
func (c *collector) file(ctx context.Context, i int, sum hash.Hash) error {
	sh, err := c.source.open(ctx, i)
	if err != nil {
		return err
	}
	defer sh.close() //nolint:errcheck // read only
	return c.source.checkDamage(ctx, i, sh, c.rows(ctx, i, sh, sum))
}

func (c *collector) rows(ctx context.Context, i int, sh *shard, sum hash.Hash) error {
	kind, err := sh.kind()
	if err != nil {
		return err
	}
	add := func(row int, id string) error { return c.add(i, row, id) }
	if kind == kindParquet {
		if err := sh.wrapError(ctx, sh.parquetIDs(ctx, add)); err != nil || sum == nil {
			return err
		}
		_, err := io.Copy(sum, &ctxReader{ctx, sh.reader()})
		return sh.wrapError(ctx, err)
	}
	return sh.wrapError(ctx, sh.jsonIDs(ctx, kind, sum, add))
}

func (c *collector) add(file, row int, id string) error {
	first, duplicate := c.seen[id]
	switch {
	case duplicate && int(first.file) == file:
		return fmt.Errorf("rows %d and %d have the same instance_id %q", first.row, row, id)
	case duplicate:
		return &dataError{fmt.Sprintf("%s row %d and %s row %d have the same instance_id %q; use only one of the files",
			c.source.label(int(first.file)), first.row, c.source.label(file), row, id)}
	case len(c.ids) == maxRows:
		return fmt.Errorf("more than %d rows", maxRows)
	}
	c.seen[id] = position{int32(file), int32(row)}
	c.ids = append(c.ids, id)
	return nil
}

// jsonIDs calls f with the id of every row and writes all bytes of the file to sum, which
// may be nil.
func (sh *shard) jsonIDs(ctx context.Context, kind fileKind, sum io.Writer, f func(row int, id string) error) error {
	if sum == nil {
		sum = io.Discard
	}
	read := &countWriter{w: sum}
	r, err := sh.jsonReader(kind, read)
	if err != nil {
		return err
	}
	err = eachRow(ctx, r, func(row int, raw []byte) error {
		_, id, err := columnsOf(raw)
		if err != nil {
			return fmt.Errorf("row %d: %w", row, err)
		}
		return f(row, id)
	})
	if err != nil {
		return err
	}
	// Include the rest of the file in the checksum.
	_, err = io.Copy(sum, io.NewSectionReader(sh.from, read.n, sh.size-read.n))
	return err
}

// countWriter counts the bytes written.
type countWriter struct {
	w io.Writer
	n int64
}

// Write implements io.Writer.
func (c *countWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// jsonRows calls f with the wanted rows.
func (sh *shard) jsonRows(ctx context.Context, kind fileKind, want func(string) bool, f func(Instance) bool) error {
	r, err := sh.jsonReader(kind, io.Discard)
	if err != nil {
		return err
	}
	return eachRow(ctx, r, func(row int, raw []byte) error {
		columns, id, err := columnsOf(raw)
		if err != nil {
			return fmt.Errorf("row %d: %w", row, err)
		}
		if !want(id) {
			return nil
		}
		in, err := fromColumns(columns)
		if err != nil {
			return fmt.Errorf("row %d: %w", row, err)
		}
		if !f(in) {
			return errStop
		}
		return nil
	})
}
