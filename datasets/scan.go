package datasets

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
)

// Edition says which bytes a dataset was.
type Edition struct {
	Name     string `json:"name"` // what the user called it
	Revision string `json:"revision,omitempty"`
	Split    string `json:"split,omitempty"`
	// SHA256 is that of the file, in hex. Of several files it is that of the
	// text that sha256sum prints for them, in the order of their rows: a line
	// "<sha256 of the file>  <slash-separated name within the dataset>" each.
	SHA256 string `json:"sha256"`
	Files  int    `json:"files"`
	Rows   int    `json:"rows"`
}

// maxRows bounds the ids held in memory. The largest set of the family has
// some 60,000 rows.
const maxRows = 5_000_000

// scan reads the ids of a source and, where the edition is wanted, every byte.
func (s Source) scan(ctx context.Context, edition bool) ([]string, Edition, error) {
	e := Edition{Name: s.Name, Revision: s.Revision, Split: s.Split, Files: s.count()}
	c := collector{source: s, seen: map[string]place{}}
	var sums []byte
	for i := range s.count() {
		sum := hash.Hash(nil)
		if edition {
			sum = sha256.New()
		}
		if err := c.file(ctx, i, sum); err != nil {
			return nil, Edition{}, err
		}
		if !edition {
			continue
		}
		e.SHA256 = hex.EncodeToString(sum.Sum(nil))
		if err := s.verify(i, e.SHA256); err != nil {
			return nil, Edition{}, err
		}
		if s.count() > 1 {
			sums = fmt.Appendf(sums, "%s  %s\n", e.SHA256, s.sumName(i))
		}
	}
	if len(c.ids) == 0 {
		return nil, Edition{}, &badData{s.all() + ": no rows"}
	}
	if edition && s.count() > 1 {
		sum := sha256.Sum256(sums)
		e.SHA256 = hex.EncodeToString(sum[:])
	}
	e.Rows = len(c.ids)
	return c.ids, e, nil
}

// all is what the files of the source are called together.
func (s Source) all() string {
	if s.count() == 1 {
		return s.label(0)
	}
	return printable(s.Name)
}

// place is where a row is.
type place struct{ file, row int32 }

// collector gathers the ids of a source and refuses the second one of a kind.
type collector struct {
	source Source
	ids    []string
	seen   map[string]place
}

// file reads one file; all its bytes go to sum, unless that is nil.
func (c *collector) file(ctx context.Context, i int, sum hash.Hash) error {
	sh, err := c.source.open(ctx, i)
	if err != nil {
		return err
	}
	defer sh.close() //nolint:errcheck // read only
	return c.source.blame(ctx, i, sh, c.rows(ctx, i, sh, sum))
}

func (c *collector) rows(ctx context.Context, i int, sh *shard, sum hash.Hash) error {
	kind, err := sh.content()
	if err != nil {
		return err
	}
	add := func(row int, id string) error { return c.add(i, row, id) }
	if kind == rowsParquet {
		if err := sh.wrong(ctx, sh.parquetIDs(ctx, add)); err != nil || sum == nil {
			return err
		}
		_, err := io.Copy(sum, &heedful{ctx, sh.all()})
		return sh.wrong(ctx, err)
	}
	return sh.wrong(ctx, sh.jsonIDs(ctx, kind, sum, add))
}

func (c *collector) add(file, row int, id string) error {
	first, dup := c.seen[id]
	switch {
	case dup && int(first.file) == file:
		return fmt.Errorf("rows %d and %d have the same instance_id %q", first.row, row, id)
	case dup:
		return &badData{fmt.Sprintf("%s row %d and %s row %d have the same instance_id %q; name the one file that is meant",
			c.source.label(int(first.file)), first.row, c.source.label(file), row, id)}
	case len(c.ids) == maxRows:
		return fmt.Errorf("more than %d rows", maxRows)
	}
	c.seen[id] = place{int32(file), int32(row)}
	c.ids = append(c.ids, id)
	return nil
}

// jsonIDs calls f with the id of every row; all bytes of the file go to sum,
// unless that is nil.
func (sh *shard) jsonIDs(ctx context.Context, kind content, sum io.Writer, f func(row int, id string) error) error {
	if sum == nil {
		sum = io.Discard
	}
	seen := &counter{w: sum}
	r, err := sh.text(kind, seen)
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
	// What follows the rows, unread so far, is part of the file.
	_, err = io.Copy(sum, io.NewSectionReader(sh.from, seen.n, sh.size-seen.n))
	return err
}

// counter counts what is written.
type counter struct {
	w io.Writer
	n int64
}

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// jsonRows calls f with the wanted rows.
func (sh *shard) jsonRows(ctx context.Context, kind content, want func(string) bool, f func(Instance) bool) error {
	r, err := sh.text(kind, io.Discard)
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
			return errEnough
		}
		return nil
	})
}
