package datasets_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"

	"github.com/minibench/mini/datasets"
)

// TestParquetBomb: pages that are each of a reasonable size, and too much all
// together.
func TestParquetBomb(t *testing.T) {
	const columns, each = 9, 60 << 20
	packed := &lying{&parquet.Snappy, binary.AppendUvarint(nil, each)}
	group := parquet.Group{"instance_id": parquet.String(), "problem_statement": parquet.String()}
	row := parquet.Row{parquet.ValueOf("a").Level(0, 0, 0), parquet.ValueOf("p").Level(0, 0, 1)}
	for i := range columns {
		group[fmt.Sprintf("x%02d", i)] = parquet.Compressed(parquet.String(), packed)
		row = append(row, parquet.ValueOf("x").Level(0, 0, i+2))
	}
	var b bytes.Buffer
	w := parquet.NewWriter(&b, parquet.NewSchema("rows", group))
	_, err := w.WriteRows([]parquet.Row{row})
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	_, err = read(t, "x.parquet", b.String())
	if !errors.Is(err, datasets.ErrData) || !strings.Contains(err.Error(), "more than 512 MB at a time") {
		t.Errorf("got %v", err)
	}
}

// TestListsOfOneRow: a row is put together in memory, however many pages its
// lists have, and ones that are all the same take no room in a file.
func TestListsOfOneRow(t *testing.T) {
	type row struct {
		plainRow
		A []bool `parquet:"a"`
		B []bool `parquet:"b"`
	}
	half := make([]bool, 9<<20)
	data := table(t, []row{{plainRows(1)[0], half, half}}, parquet.Compression(&parquet.Zstd))
	_, err := read(t, "x.parquet", string(data))
	if !errors.Is(err, datasets.ErrData) || !strings.Contains(err.Error(), "lists of more than") {
		t.Errorf("%d KB: got %v", len(data)>>10, err)
	}
}

// TestListsOfAGroup: writers may put a million rows into a group, whose lists
// are long all together, and short in the rows that are read at once.
func TestListsOfAGroup(t *testing.T) {
	type row struct {
		plainRow
		A []bool `parquet:"a"`
	}
	const rows, each = 40, 1 << 19
	var b bytes.Buffer
	w := parquet.NewGenericWriter[row](&b, parquet.Compression(&parquet.Zstd))
	long := make([]bool, each)
	for _, r := range plainRows(rows) {
		if _, err := w.Write([]row{{r, long}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	set, err := readSome(t, b.String(), "1:2")
	if err != nil || set.Rows != rows || len(set.Instances) != 1 {
		t.Errorf("%d rows, %d taken, %v", set.Rows, len(set.Instances), err)
	}
}

// TestLargeStatistics: the library's own writer has the largest value and the
// smallest in the description of each page, twice.
func TestLargeStatistics(t *testing.T) {
	for _, tt := range []struct{ rows, size int }{{40, 4 << 20}, {6, 10 << 20}, {1, 60 << 20}} {
		rows := plainRows(tt.rows)
		long := strings.Repeat("x", tt.size)
		for i := range rows {
			rows[i].Problem = long
		}
		var b bytes.Buffer
		w := parquet.NewGenericWriter[plainRow](&b)
		_, err := w.Write(rows)
		if err = errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		set, err := readSome(t, b.String(), "-1:")
		if err != nil || set.Rows != tt.rows || len(set.Instances[0].ProblemStatement) != tt.size {
			t.Errorf("%d rows of %d MB, in %d MB: %v", tt.rows, tt.size>>20, b.Len()>>20, err)
		}
		t.Logf("file %d MB, footer %d MB", b.Len()>>20, binary.LittleEndian.Uint32(b.Bytes()[b.Len()-8:])>>20)
	}
}

// TestLongDescription: a page whose description is longer than allowed is not
// called damaged.
func TestLongDescription(t *testing.T) {
	if testing.Short() {
		t.Skip("it writes a file of half a GB")
	}
	rows := plainRows(1)
	rows[0].Problem = strings.Repeat("x", 70<<20)
	var b bytes.Buffer
	w := parquet.NewGenericWriter[plainRow](&b)
	_, err := w.Write(rows)
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	_, err = readSome(t, b.String(), ":")
	if want := "described in more than 257 MB; write it without statistics of pages"; !errors.Is(err, datasets.ErrData) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func readSome(t *testing.T, data, slice string) (datasets.Set, error) {
	t.Helper()
	src, err := datasets.Local(write(t, t.TempDir(), "x.parquet", []byte(data)), "")
	if err != nil {
		t.Fatal(err)
	}
	return datasets.Load(t.Context(), []datasets.Source{src}, datasets.Selection{Slice: slice})
}

// TestPagesThatLie claim a few bytes, and unpack to as many as they like.
func TestPagesThatLie(t *testing.T) {
	const claimed = 600 << 20
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, err := z.Write(make([]byte, 1<<20))
	if err = errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	frame := []byte{0x28, 0xb5, 0x2f, 0xfd}
	endless := append(bytes.Clone(frame), 0, 0x58) // no size; a window of 2 MB
	for range claimed >> 17 {
		endless = append(endless, 2, 0, 0x10, 'x') // 128 KB of one letter
	}
	endless = append(endless, 1, 0, 0)
	for name, tt := range map[string]struct {
		codec compress.Codec
		page  []byte
	}{
		"snappy":               {&parquet.Snappy, binary.AppendUvarint(nil, claimed)},
		"gzip":                 {&parquet.Gzip, bytes.Repeat(zipped.Bytes(), claimed>>20)},
		"zstd, with its size":  {&parquet.Zstd, append(binary.LittleEndian.AppendUint32(append(bytes.Clone(frame), 0xa0), claimed), 1, 0, 0)},
		"zstd, without a size": {&parquet.Zstd, endless},
		"zstd, a second frame": {&parquet.Zstd, append(append(bytes.Clone(frame), 0x20, 0, 1, 0, 0), endless...)},
	} {
		t.Run(name, func(t *testing.T) {
			data := replacePage(t, tt.codec, tt.page)
			_, err := read(t, "x.parquet", string(data))
			if !errors.Is(err, datasets.ErrData) || !strings.Contains(err.Error(), "more than 512 MB at a time") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// replacePage writes a file whose first page, of ids, has other bytes after its
// header. The writer compresses nothing of its own in between.
func replacePage(t *testing.T, codec compress.Codec, page []byte) []byte {
	t.Helper()
	type row struct {
		ID      string `parquet:"instance_id"`
		Problem string `parquet:"problem_statement"`
	}
	return table(t, []row{{"a", "p"}}, parquet.Compression(&lying{codec, page}), parquet.DataPageVersion(1))
}

// lying compresses everything to the same bytes.
type lying struct {
	compress.Codec
	page []byte
}

func (l *lying) Encode(_, _ []byte) ([]byte, error) { return bytes.Clone(l.page), nil }
