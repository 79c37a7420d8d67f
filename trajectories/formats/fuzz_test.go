package formats_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/formats"
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

// fuzz fuzzes a reader, starting with the fixtures whose names have one of the prefixes. It
// checks that every file is refused or converted to a valid journal. It writes files
// without fsync, which would be slow.
func fuzz(f *testing.F, prefixes ...string) {
	for _, path := range fixtures(f) {
		for _, prefix := range prefixes {
			if !strings.HasPrefix(filepath.Base(path), prefix) {
				continue
			}
			data, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	dir := f.TempDir() // each worker is a process with its own folder
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(dir, "file")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		n := 0
		for file, err := range formats.OpenAll(path) {
			if n++; (file == nil) == (err == nil) {
				t.Fatal("neither an attempt nor an error, or both")
			}
			if err != nil || n > 3 {
				continue
			}
			_, err := trajectories.Fold(formats.WithImportRecord(file, path))
			if err != nil && file.Format != trajectories.Format { // journals are checked while they are read
				t.Fatal(err)
			}
		}
	})
}
