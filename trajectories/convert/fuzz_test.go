package convert_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/convert"
)

func FuzzRelease1(f *testing.F)  { fuzz(f, "release1") }
func FuzzRelease2(f *testing.F)  { fuzz(f, "release2") }
func FuzzSWEAgent(f *testing.F)  { fuzz(f, "swe-agent") }
func FuzzOpenHands(f *testing.F) { fuzz(f, "openhands") }
func FuzzMessages(f *testing.F)  { fuzz(f, "messages", "list") }
func FuzzATIF(f *testing.F)      { fuzz(f, "atif") }

func FuzzJournal(f *testing.F) {
	f.Add([]byte(header + `{"id":2,"parent_id":1,"type":"context","data":{"sent":[{"from":1}]}}` + "\n"))
	fuzz(f)
}

// fuzz begins with the fixtures of a format. Whatever a file holds, it is read
// or refused, and what was read is a journal. (Nothing is written that waits for
// the disk.)
func fuzz(f *testing.F, names ...string) {
	for _, path := range fixtures(f) {
		for _, name := range names {
			if !strings.HasPrefix(filepath.Base(path), name) {
				continue
			}
			data, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	dir := f.TempDir() // each worker is a process of its own, and has one
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(dir, "file")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		n := 0
		for file, err := range convert.All(path) {
			if n++; (file == nil) == (err == nil) {
				t.Fatal("neither an attempt nor an error, or both")
			}
			if err != nil || n > 3 {
				continue
			}
			_, err := trajectories.Gather(convert.Adopted(file, path))
			if err != nil && file.Format != trajectories.Format { // a journal is checked as it is read
				t.Fatal(err)
			}
		}
	})
}
