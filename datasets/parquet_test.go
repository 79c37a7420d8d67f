package datasets_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// table returns a parquet file with these rows, in row groups of two.
func table[T any](t testing.TB, rows []T, options ...parquet.WriterOption) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b, append(options, parquet.MaxRowsPerRowGroup(2))...)
	_, err := w.Write(rows)
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// plainRow has types of columns that the official datasets have.
type plainRow struct {
	ID      string   `parquet:"instance_id"`
	Problem string   `parquet:"problem_statement"`
	Tests   []string `parquet:"FAIL_TO_PASS,list"`
	Hints   *string  `parquet:"hints_text,optional"`
}

func plainRows(n int) []plainRow {
	rows := make([]plainRow, n)
	for i := range rows {
		rows[i] = plainRow{ID: fmt.Sprintf("a__b-%d", i), Problem: "p", Tests: []string{"x", fmt.Sprint(i)}}
	}
	return rows
}

func write(t testing.TB, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, data, 0o644))
	return path
}

func TestParquet(t *testing.T) {
	for name, option := range map[string]parquet.WriterOption{
		"snappy": parquet.Compression(&parquet.Snappy), "zstd": parquet.Compression(&parquet.Zstd),
		"gzip": parquet.Compression(&parquet.Gzip), "plain": parquet.Compression(&parquet.Uncompressed),
		"old pages": parquet.DataPageVersion(1), "tiny pages": parquet.PageBufferSize(8),
		"dictionaries": parquet.DefaultEncodingFor(parquet.ByteArray, &parquet.RLEDictionary),
		"deltas":       parquet.DefaultEncodingFor(parquet.ByteArray, &parquet.DeltaByteArray),
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, t.TempDir(), "cached-under-any-name.parquet", table(t, plainRows(101), option))
			set, err := load(t, path)
			require.NoError(t, err)
			for i, in := range set.Instances {
				got := []any{in.ID, in.ProblemStatement, in.FailToPass, in.Hints, string(in.Row["hints_text"])}
				want := []any{fmt.Sprintf("a__b-%d", i), "p", []string{"x", fmt.Sprint(i)}, "", "null"}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("row (-want +got):\n%s", diff)
				}
			}
			if len(set.IDs) != 101 || len(set.Instances) != 101 {
				t.Errorf("%d rows, %d instances", len(set.IDs), len(set.Instances))
			}
		})
	}
}

// inner is a group, alone and in lists, in kinds.
type inner struct {
	A int32    `parquet:"a"`
	B []string `parquet:"b,list,optional"`
}

// kinds has columns of the parquet types that the official datasets do not use.
type kinds struct {
	plainRow
	Yes     bool      `parquet:"yes"`
	Small   int8      `parquet:"small"`
	Unsign  uint64    `parquet:"unsign"`
	Exact   int64     `parquet:"exact"`
	Float   float32   `parquet:"float"`
	Double  float64   `parquet:"double"`
	NaN     float64   `parquet:"nan"`
	Milli   time.Time `parquet:"milli,timestamp(millisecond)"`
	Local   time.Time `parquet:"local,timestamp(microsecond:local)"`
	Nano    time.Time `parquet:"nano,timestamp(nanosecond)"`
	Day     int32     `parquet:"day,date"`
	Raw     []byte    `parquet:"raw"`
	ASCII   []byte    `parquet:"ascii"`
	JSON    string    `parquet:"json,json"`
	Inner   *inner    `parquet:"inner,optional"`
	Nothing *inner    `parquet:"nothing,optional"`
	Lists   [][]int32 `parquet:"lists,list" parquet-element:",list"`
	Groups  []inner   `parquet:"groups,list"`
	Bare    []string  `parquet:"bare"`
	Empty   []string  `parquet:"empty,list"`
}

func TestParquetKinds(t *testing.T) {
	at := time.Date(2024, 5, 6, 7, 8, 9, 10_000, time.UTC)
	row := kinds{
		plainRow: plainRow{ID: "i", Problem: "p"}, Yes: true, Small: -7, Unsign: math.MaxUint64, Exact: math.MinInt64 + 1,
		Float: 0.1, Double: 1e300, NaN: math.NaN(), Milli: at, Local: at, Nano: at.Add(1), Day: 19849,
		Raw: []byte{0xff, 0}, ASCII: []byte("a<b&\""),
		JSON: `{"k":1}`, Inner: &inner{A: 2},
		Lists: [][]int32{{1, 2}, {}, {3}}, Groups: []inner{{A: 1}, {A: 2, B: []string{"y", "z"}}}, Bare: []string{"b", "c"},
	}
	set, err := datasets.Load(t.Context(), []datasets.Source{datasets.Embedded("kinds", table(t, []kinds{row}))}, datasets.AllRows)
	require.NoError(t, err)
	want := map[string]string{
		"yes": "true", "small": "-7", "unsign": "18446744073709551615", "exact": "-9223372036854775807",
		"float": "0.1", "double": "1e+300", "nan": "null",
		"milli": `"2024-05-06T07:08:09Z"`, "local": `"2024-05-06T07:08:09.000010"`, "nano": `"2024-05-06T07:08:09.000010001Z"`,
		"day": `"2024-05-06"`,
		"raw": `"/wA="`, "ascii": `"a<b&\""`,
		"json": `{"k":1}`, "inner": `{"a":2,"b":null}`, "nothing": "null",
		"lists": "[[1,2],[],[3]]", "groups": `[{"a":1,"b":null},{"a":2,"b":["y","z"]}]`, "bare": `["b","c"]`, "empty": "[]",
		"instance_id": `"i"`, "problem_statement": `"p"`, "FAIL_TO_PASS": "[]", "hints_text": "null",
	}
	got := map[string]string{}
	for name, raw := range set.Instances[0].Row {
		got[name] = string(raw)
	}
	assert.Equal(t, want, got, "columns")
}

// TestParquetOldLists reads the forms of lists that older writers used.
func TestParquetOldLists(t *testing.T) {
	leaf := func() parquet.Node { return parquet.Leaf(parquet.Int32Type) }
	for name, tt := range map[string]struct {
		list parquet.Node
		row  []parquet.Value // values of the list's leaf, the column after instance_id
		want string
	}{
		"three levels":          {parquet.List(leaf()), values(0, 1, 7, 1, 1, 8), "[7,8]"},
		"elements may be null":  {parquet.List(parquet.Optional(leaf())), append(values(0, 2, 7), parquet.NullValue().Level(1, 1, 1)), "[7,null]"},
		"the list may be null":  {parquet.Optional(parquet.List(leaf())), []parquet.Value{parquet.NullValue().Level(0, 0, 1)}, "null"},
		"the list may be empty": {parquet.Optional(parquet.List(leaf())), []parquet.Value{parquet.NullValue().Level(0, 1, 1)}, "[]"},
		"repeated":              {parquet.Repeated(leaf()), values(0, 1, 7, 1, 1, 8), "[7,8]"},
		"repeated groups":       {parquet.Repeated(parquet.Group{"x": leaf()}), values(0, 1, 7, 1, 1, 8), `[{"x":7},{"x":8}]`},
	} {
		t.Run(name, func(t *testing.T) {
			schema := parquet.NewSchema("rows", parquet.Group{"instance_id": parquet.String(), "list": tt.list, "problem_statement": parquet.String()})
			var b bytes.Buffer
			w := parquet.NewWriter(&b, schema)
			row := parquet.Row{parquet.ByteArrayValue([]byte("i")).Level(0, 0, 0)}
			row = append(row, tt.row...)
			row = append(row, parquet.ByteArrayValue([]byte("p")).Level(0, 0, 2))
			_, err := w.WriteRows([]parquet.Row{row})
			if err = errors.Join(err, w.Close()); err != nil {
				t.Fatal(err)
			}
			set, err := read(t, "old", b.String())
			require.NoError(t, err)
			assert.Equal(t, tt.want, string(set.Instances[0].Row["list"]))
		})
	}
}

// values returns integers of column 1. Each triple has the repetition level, the
// definition level and the integer.
func values(triples ...int) []parquet.Value {
	var list []parquet.Value
	for i := 0; i < len(triples); i += 3 {
		list = append(list, parquet.Int32Value(int32(triples[i+2])).Level(triples[i], triples[i+1], 1))
	}
	return list
}

func TestParquetSaysWhatIsWrong(t *testing.T) {
	good := table(t, plainRows(5))
	type noID struct {
		A, B string
	}
	type numberID struct {
		ID int64 `parquet:"instance_id"`
	}
	twice := plainRows(4)
	twice[3].ID = twice[0].ID
	unsafe := plainRows(3)
	unsafe[2].ID = "../../x"
	empty := plainRows(3)
	empty[1].ID = ""
	patched := func(offset int, b ...byte) []byte {
		data := bytes.Clone(good)
		copy(data[offset:], b)
		return data
	}
	footer := len(good) - 8
	for name, tt := range map[string]struct {
		data []byte
		want string
	}{
		"no column of ids":    {table(t, []noID{{"a", "b"}}), "no text column instance_id; the columns are A, B"},
		"ids are numbers":     {table(t, []numberID{{1}}), "no text column instance_id"},
		"an id twice":         {table(t, twice), `rows 1 and 4 have the same instance_id "a__b-0"`},
		"an unsafe id":        {table(t, unsafe), "row 3: instance_id"},
		"no id":               {table(t, empty), "row 2: instance_id is missing or empty"},
		"no rows":             {table(t, []plainRow{}), "no rows"},
		"cut at the end":      {good[:len(good)-1], "not a parquet file, or damaged"},
		"cut in the middle":   {good[:len(good)/2], "not a parquet file, or damaged"},
		"only the magic":      {good[:4], "not a parquet file, or damaged"},
		"footer is rubbish":   {patched(footer-20, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), "not a parquet file, or damaged"},
		"pages are rubbish":   {patched(4, bytes.Repeat([]byte{0xee}, 64)...), "after row 0"},
		"a map":               {table(t, []mapped{{plainRows(1)[0], map[string]string{"k": "v"}}}), "column map: mini cannot read columns of type map"},
		"the footer is empty": {append([]byte("PAR1"), append(binary.LittleEndian.AppendUint32(nil, 0), "PAR1"...)...), "not a parquet file"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(t, "x.parquet", string(tt.data))
			if !errors.Is(err, datasets.ErrData) || !strings.HasPrefix(err.Error(), "x.parquet: ") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

type mapped struct {
	plainRow
	Map map[string]string `parquet:"map"`
}

// TestParquetDamagedRow damages a column of the second row group.
func TestParquetDamagedRow(t *testing.T) {
	rows := plainRows(4)
	rows[2].Problem = "only here"
	data := table(t, rows, parquet.Compression(&parquet.Uncompressed))
	at := bytes.Index(data, []byte("only here"))
	copy(data[at-8:], bytes.Repeat([]byte{0xff}, 8))
	src := datasets.Embedded("x.parquet", data)
	if set, err := datasets.Load(t.Context(), []datasets.Source{src}, datasets.NoRows); err != nil || len(set.IDs) != 4 {
		t.Errorf("ids: %v, %v", set.IDs, err)
	}
	if _, err := datasets.Load(t.Context(), []datasets.Source{src}, datasets.Selection{IDs: []string{"a__b-2"}}.Apply); !errors.Is(err, datasets.ErrData) || !strings.Contains(err.Error(), "damaged; fetch it again") {
		t.Errorf("second group: %v", err)
	}
}

// TestLargeStatistics reads files with large statistics: the library writes the largest
// and the smallest value of each page into the file twice.
func TestLargeStatistics(t *testing.T) {
	tests := []struct{ rows, size int }{{4, 4 << 20}, {1, 16 << 20}}
	for _, tt := range tests {
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
		if err != nil || len(set.IDs) != tt.rows || len(set.Instances[0].ProblemStatement) != tt.size {
			t.Errorf("%d rows of %d MB, in %d MB: %v", tt.rows, tt.size>>20, b.Len()>>20, err)
		}
		t.Logf("file %d MB, footer %d MB", b.Len()>>20, binary.LittleEndian.Uint32(b.Bytes()[b.Len()-8:])>>20)
	}
}

func readSome(t *testing.T, data, slice string) (datasets.Set, error) {
	t.Helper()
	src, err := datasets.Local(write(t, t.TempDir(), "x.parquet", []byte(data)), "")
	require.NoError(t, err)
	return datasets.Load(t.Context(), []datasets.Source{src}, datasets.Selection{Slice: slice}.Apply)
}

// TestFewRowsTakeLittleMemory loads five of 20,000 rows, of 80 MB.
func TestFewRowsTakeLittleMemory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.parquet")
	f, err := os.Create(path)
	require.NoError(t, err)
	w := parquet.NewGenericWriter[plainRow](f, parquet.MaxRowsPerRowGroup(5000), parquet.Compression(&parquet.Uncompressed))
	long := make([]byte, 4000)
	for i := range 20_000 {
		_, err = rand.NewChaCha8([32]byte{byte(i), byte(i >> 8)}).Read(long)
		row := plainRow{ID: fmt.Sprintf("a__b-%d", i), Problem: string(long)}
		if _, writeErr := w.Write([]plainRow{row}); errors.Join(err, writeErr) != nil {
			t.Fatal(err, writeErr)
		}
	}
	require.NoError(t, errors.Join(w.Close(), f.Close()))
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	runtime.GC()
	runtime.GC() // also what pools hold
	before, most := heap(), uint64(0)
	ctx, cancel := context.WithCancel(t.Context())
	var g errgroup.Group
	g.Go(func() error {
		for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
			most = max(most, heap())
		}
		return nil
	})
	src, err := datasets.Local(path, "")
	require.NoError(t, err)
	set, err := datasets.Load(t.Context(), []datasets.Source{src}, datasets.Selection{Slice: "::4000"}.Apply)
	cancel()
	_ = g.Wait() // returns no error
	if err != nil || len(set.Instances) != 5 || len(set.IDs) != 20_000 || int64(most)-int64(before) > 40<<20 {
		t.Errorf("%d of %d rows in %d MB, %v", len(set.Instances), len(set.IDs), (int64(most)-int64(before))>>20, err)
	}
}
