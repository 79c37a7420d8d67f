package web

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/minibench/mini/cmd/mini/internal/web/webtest"
)

// get measures requests of a page, and reports the size of the response.
func get(b *testing.B, s *Server, target string) {
	b.Helper()
	size := 0
	for b.Loop() {
		w := ask(s, "GET", target)
		if w.Code != 200 {
			b.Fatalf("%s: status %d", target, w.Code)
		}
		size = w.Body.Len()
	}
	b.ReportMetric(float64(size)/1000, "kB")
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/1000, "ms")
}

// Pages of a run of 500 instances with 3 attempts of 100 steps.
func BenchmarkPages(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "run")
	webtest.BigRun(b, dir, 500, 3, 100)
	b.Run("run-cold", func(b *testing.B) {
		for b.Loop() {
			if w := ask(serverOf(b, "", dir), "GET", "/r/run/"); w.Code != 200 {
				b.Fatal(w.Code)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/1000, "ms")
	})
	s := serverOf(b, "", dir)
	b.Run("run-warm", func(b *testing.B) { get(b, s, "/r/run/") })
	b.Run("chunk", func(b *testing.B) { get(b, s, "/r/run/i/"+webtest.BigID(0)+"/a/1/steps?from=0") })
}

// The page of an attempt of 5,000 steps, whose journal is read each time.
func BenchmarkLongAttempt(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "run")
	webtest.LongAttempt(b, dir)
	s := serverOf(b, "", dir)
	b.Run("cold", func(b *testing.B) {
		for b.Loop() {
			s.viewer.attempts = attemptCache{}
			if w := ask(s, "GET", "/r/run/i/"+webtest.LongID+"/a/1"); w.Code != 200 {
				b.Fatal(w.Code)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/1000, "ms")
	})
	b.Run("warm", func(b *testing.B) { get(b, s, "/r/run/i/"+webtest.LongID+"/a/1?step=4711") })
	b.Run("search", func(b *testing.B) { get(b, s, "/r/run/i/"+webtest.LongID+"/a/1/search?q="+webtest.RareWord) })
}

// The comparison of 6 runs of 500 instances, with all tests and charts.
func BenchmarkCompare(b *testing.B) {
	var dirs []string
	for i := range 6 {
		dirs = append(dirs, filepath.Join(b.TempDir(), fmt.Sprint(i)))
		webtest.BigRun(b, dirs[i], 500, 1, 2)
	}
	s := serverOf(b, "", dirs...)
	b.Run("6x500", func(b *testing.B) { get(b, s, "/compare") })
}

// The list of 40 runs of 100 instances.
func BenchmarkHome(b *testing.B) {
	var dirs []string
	for i := range 40 {
		dirs = append(dirs, filepath.Join(b.TempDir(), fmt.Sprint(i)))
		if i == 0 {
			webtest.BigRun(b, dirs[0], 100, 1, 2)
			continue
		}
		linkRun(b, dirs[0], dirs[i])
	}
	b.Run("cold", func(b *testing.B) {
		for b.Loop() {
			if w := ask(serverOf(b, "", dirs...), "GET", "/"); w.Code != 200 {
				b.Fatal(w.Code)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/1000, "ms")
	})
	s := serverOf(b, "", dirs...)
	b.Run("warm", func(b *testing.B) { get(b, s, "/") })
}

// The memory of the server after 20 attempts of 5,000 steps have been opened.
func BenchmarkMemory(b *testing.B) {
	var dirs []string
	for i := range 20 {
		dirs = append(dirs, filepath.Join(b.TempDir(), fmt.Sprint(i)))
		if i == 0 {
			webtest.LongAttempt(b, dirs[0])
			continue
		}
		linkRun(b, dirs[0], dirs[i])
	}
	b.Run("20-attempts", func(b *testing.B) {
		for b.Loop() {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			s := serverOf(b, "", dirs...)
			for i := range dirs {
				if w := ask(s, "GET", fmt.Sprintf("/r/%s/i/%s/a/1", filepath.Base(dirs[i]), webtest.LongID)); w.Code != 200 {
					b.Fatal(w.Code)
				}
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB")
			runtime.KeepAlive(s)
		}
	})
}

// linkRun makes a run folder of the files of another, by hard links.
func linkRun(tb testing.TB, from, to string) {
	tb.Helper()
	err := filepath.Walk(from, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err == nil && info.IsDir() {
			return os.MkdirAll(filepath.Join(to, name), 0o750)
		}
		if err == nil {
			err = os.Link(path, filepath.Join(to, name))
		}
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
}
