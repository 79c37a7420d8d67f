package datasets

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
)

// Set is a dataset as it was read.
type Set struct {
	Name      string // what the user called it
	SHA256    string // of the file's bytes, in hex
	Instances []Instance
}

// ErrData is wrapped by every mistake in a dataset; the text names the file
// and the row.
var ErrData = errors.New("dataset")

type badData struct{ text string }

func (b *badData) Error() string { return b.text }
func (b *badData) Unwrap() error { return ErrData }

// maxRow bounds one row, in bytes. The largest official row has about 10 MB.
const maxRow = 256 << 20

// Load reads a file of rows: .jsonl (a row a line) or .json (a list of rows),
// either of them with .gz.
func Load(ctx context.Context, path string) (Set, error) {
	f, err := os.Open(path) //nolint:gosec // the path is the user's own
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return Set{}, &badData{fmt.Sprintf("%s: no such file", path)}
		}
		return Set{}, fmt.Errorf("read dataset: %w", err)
	}
	defer f.Close() //nolint:errcheck // read only
	return Read(ctx, path, f)
}

// Read is Load from a stream; the ending of name says what is in it.
func Read(ctx context.Context, name string, r io.Reader) (Set, error) {
	hash := sha256.New()
	tee := io.TeeReader(r, hash)
	src := tee
	base, zipped := strings.CutSuffix(name, ".gz")
	if zipped {
		z, err := gzip.NewReader(tee)
		if err != nil {
			return Set{}, &badData{fmt.Sprintf("%s: not a gzip file: %v", name, err)}
		}
		src = z
	}
	if !strings.HasSuffix(base, ".json") && !strings.HasSuffix(base, ".jsonl") {
		return Set{}, &badData{fmt.Sprintf("%s: not a dataset; .jsonl and .json files are read, also with .gz", name)}
	}
	c := collector{name: name, seen: map[string]int{}}
	if err := c.read(ctx, bufio.NewReaderSize(src, 1<<20)); err != nil {
		return Set{}, err
	}
	if _, err := io.Copy(io.Discard, tee); err != nil {
		return Set{}, fmt.Errorf("read dataset %s: %w", name, err)
	}
	if len(c.instances) == 0 {
		return Set{}, &badData{name + ": no rows"}
	}
	return Set{Name: name, SHA256: hex.EncodeToString(hash.Sum(nil)), Instances: c.instances}, nil
}

// collector gathers rows and refuses the second one of an id.
type collector struct {
	name      string
	instances []Instance
	seen      map[string]int // id -> row
}

// read goes by the first byte, not by the name: many a .json file has a row a
// line, and the other way round.
func (c *collector) read(ctx context.Context, r *bufio.Reader) error {
	first, err := skipSpace(r)
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return c.failed(err)
	case first == '[':
		return c.readList(ctx, r)
	default:
		return c.readLines(ctx, r)
	}
}

func (c *collector) readLines(ctx context.Context, r *bufio.Reader) error {
	for row := 1; ; row++ {
		line, err := readLine(r)
		if len(bytes.TrimSpace(line)) > 0 {
			if err := c.add(row, line); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return c.failed(fmt.Errorf("row %d: %w", row, err))
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxRow {
			return nil, fmt.Errorf("longer than %d MB", maxRow>>20)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// meter fails a read when too much has come since it was last set back.
type meter struct {
	r io.Reader
	n int
}

// Read implements io.Reader.
func (m *meter) Read(p []byte) (int, error) {
	if m.n > maxRow {
		return 0, fmt.Errorf("longer than %d MB", maxRow>>20)
	}
	n, err := m.r.Read(p)
	m.n += n
	return n, err
}

func (c *collector) readList(ctx context.Context, r io.Reader) error {
	metered := &meter{r: r}
	dec := json.NewDecoder(metered)
	if _, err := dec.Token(); err != nil { // the opening bracket
		return c.failed(err)
	}
	for row := 1; dec.More(); row++ {
		metered.n = 0
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return c.failed(fmt.Errorf("row %d: %w", row, explain(err)))
		}
		if err := c.add(row, raw); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if _, err := dec.Token(); err != nil {
		return c.failed(fmt.Errorf("after row %d: the list does not end: %w", len(c.instances), err))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return c.failed(fmt.Errorf("after row %d: something follows the end of the list", len(c.instances)))
	}
	return nil
}

func (c *collector) add(row int, data []byte) error {
	in, err := parseRow(data)
	if err != nil {
		return c.failed(fmt.Errorf("row %d: %w", row, err))
	}
	if first, dup := c.seen[in.ID]; dup {
		return c.failed(fmt.Errorf("rows %d and %d have the same instance_id %q", first, row, in.ID))
	}
	c.seen[in.ID] = row
	c.instances = append(c.instances, in)
	return nil
}

func (c *collector) failed(err error) error {
	return &badData{c.name + ": " + err.Error()}
}

// skipSpace passes white space and a byte order mark, and peeks at what
// follows.
func skipSpace(r *bufio.Reader) (byte, error) {
	if bom, err := r.Peek(3); err == nil && string(bom) == "\ufeff" {
		_, _ = r.Discard(3) // just peeked
	}
	for {
		b, err := r.Peek(1)
		if err != nil {
			return 0, err
		}
		if !unicode.IsSpace(rune(b[0])) {
			return b[0], nil
		}
		_, _ = r.Discard(1) // just peeked
	}
}
