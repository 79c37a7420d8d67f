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
// or refused, and what was read can be written as every other format.
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
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "file")
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
			journal := filepath.Join(t.TempDir(), "journal.jsonl")
			if err := trajectories.Write(journal, convert.Adopted(file, path)); err != nil {
				if file.Format == trajectories.Format {
					continue // a journal is checked as it is read
				}
				t.Fatal(err)
			}
			again, err := convert.Open(journal)
			if err != nil {
				t.Fatalf("not read again: %v", err)
			}
			if _, err := trajectories.Gather(again.Records); err != nil && file.Format != trajectories.Format {
				t.Fatal(err)
			}
			if err := trajectories.Derive(journal, journal+".traj.json"); err != nil && file.Format != trajectories.Format {
				t.Fatal(err)
			}
		}
	})
}
