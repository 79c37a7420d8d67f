package datasets_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"go.uber.org/goleak"

	"github.com/minibench/mini/datasets"
)

// loadVar makes the test binary a program that loads a file and reports.
const loadVar = "MINI_TEST_LOAD"

func TestMain(m *testing.M) {
	if path := os.Getenv(loadVar); path != "" {
		if err := loadAndReport(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// report is what the child found.
type report struct {
	Rows, Kept int
	PeakKB     int // of resident memory, the whole process
	Took       time.Duration
}

func loadAndReport(path string) error {
	start := time.Now()
	src, err := datasets.Local(path, "")
	if err != nil {
		return err
	}
	sel := datasets.Selection{Filter: "row-(00007|04000|09999|10000|19999)$"}
	set, err := datasets.Load(context.Background(), []datasets.Source{src}, sel)
	if err != nil {
		return err
	}
	peak, err := peakKB()
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(report{set.Rows, len(set.Instances), peak, time.Since(start)})
}

// peakKB is the most memory this program had. The resource usage of a process
// would count what its parent had before the start, too.
func peakKB() (int, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			return strconv.Atoi(strings.Fields(value)[0])
		}
	}
	return 0, errors.New("no VmHWM")
}

// TestManyRowsLittleMemory filters five rows out of 20,000, whose file is many
// times larger than the memory this takes.
func TestManyRowsLittleMemory(t *testing.T) {
	if _, err := peakKB(); err != nil {
		t.Skipf("this system does not tell the peak of memory: %v", err)
	}
	const rows, limit = 20_000, 96 << 20
	for name, fill := range map[string]func(io.Writer, int) error{"rows.jsonl.gz": fillLines, "rows.parquet": fillParquet} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), name)
			size := fillFile(t, path, func(w io.Writer) error { return fill(w, rows) })
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), loadVar+"="+path)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, stderr.String())
			}
			var got report
			if err := json.Unmarshal(out, &got); err != nil {
				t.Fatal(err)
			}
			t.Logf("file %d MB, peak %d MB, %v", size>>20, got.PeakKB>>10, got.Took)
			if got.Rows != rows || got.Kept != 5 {
				t.Errorf("%d rows, %d kept", got.Rows, got.Kept)
			}
			if size < 2*limit || got.PeakKB<<10 > limit {
				t.Errorf("file of %d MB, peak of %d MB; want at most %d", size>>20, got.PeakKB>>10, limit>>20)
			}
		})
	}
}

func fillFile(t *testing.T, path string, fill func(io.Writer) error) int64 {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	err = errors.Join(fill(w), w.Flush())
	info, errStat := f.Stat()
	if err = errors.Join(err, errStat, f.Close()); err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// problems are texts that do not compress to nothing.
func problems() func(i int) (id, problem string) {
	r := rand.New(rand.NewPCG(1, 2))
	pool := make([]byte, 4<<20)
	for i := range pool {
		pool[i] = ' ' + byte(r.Uint32N(94))
		if pool[i] == '"' || pool[i] == '\\' {
			pool[i] = '\''
		}
	}
	return func(i int) (string, string) {
		at := r.IntN(len(pool) - 20_000)
		return fmt.Sprintf("row-%05d", i), string(pool[at : at+20_000])
	}
}

func fillLines(w io.Writer, n int) error {
	z, err := gzip.NewWriterLevel(w, gzip.NoCompression) // the test is about memory, and is to be fast
	if err != nil {
		return err
	}
	next := problems()
	for i := range n {
		id, problem := next(i)
		if _, err := fmt.Fprintf(z, `{"instance_id":"%s","problem_statement":"%s"}`+"\n", id, problem); err != nil {
			return err
		}
	}
	return z.Close()
}

func fillParquet(w io.Writer, n int) error {
	p := parquet.NewGenericWriter[plainRow](w, parquet.MaxRowsPerRowGroup(1000), parquet.Compression(&parquet.Snappy))
	next := problems()
	for i := range n {
		id, problem := next(i)
		if _, err := p.Write([]plainRow{{ID: id, Problem: problem}}); err != nil {
			return err
		}
	}
	return p.Close()
}
