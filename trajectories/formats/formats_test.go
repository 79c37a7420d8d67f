package formats_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/golden"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/formats"
)

func fixtures(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.*")
	if err != nil || len(files) < 12 {
		t.Fatalf("%d fixtures; %v", len(files), err)
	}
	return files
}

// TestRecords compares the records of each format with golden files.
func TestRecords(t *testing.T) {
	for _, path := range fixtures(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			var got bytes.Buffer
			for f, err := range formats.OpenAll(path) {
				require.NoError(t, err)
				fmt.Fprintf(&got, "# %s, row %d\n", f.Format, f.Row)
				for r, err := range f.Records {
					require.NoError(t, err)
					data := bytes.ReplaceAll(r.Data, []byte(f.SHA256), []byte("SHA256"))
					at := ""
					if !r.Time.IsZero() {
						at = r.Time.Format(" 15:04:05.999")
					}
					fmt.Fprintf(&got, "%d<-%d %s%s %s\n", r.ID, r.Parent, r.Type, at, data)
				}
			}
			golden.Check(t, filepath.Join("testdata", "golden", filepath.Base(path)+".golden"), got.Bytes())
		})
	}
}

// TestFixtureRoundTrip converts every format to .traj.json and ATIF and back.
func TestFixtureRoundTrip(t *testing.T) {
	for _, path := range fixtures(t) {
		for f, err := range formats.OpenAll(path) {
			require.NoError(t, err)
			t.Run(fmt.Sprintf("%s,%d", filepath.Base(path), f.Row), func(t *testing.T) {
				first := readData(t, f)
				assert.NoDiff(t, cmp.Diff(first, readData(t, viaTraj(t, f))), "by way of .traj.json (-first +again)")
				timeless := cmpopts.IgnoreFields(messageData{}, "Time")
				assert.NoDiff(t, cmp.Diff(first, readData(t, viaATIF(t, f)), timeless), "by way of ATIF (-first +again)")
			})
		}
	}
}

// TestReadJournals checks that the journal of an imported attempt is read unchanged.
func TestReadJournals(t *testing.T) {
	f := open(t, "testdata/release2-tools.traj.json")
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	require.NoError(t, trajectories.WriteJournal(path, f.Records))
	reread := open(t, path)
	if reread.Format != trajectories.Format || reread.SHA256 != f.SHA256 {
		t.Errorf("format %q, hash %q", reread.Format, reread.SHA256)
	}
	assert.NoDiff(t, cmp.Diff(f.Losses, reread.Losses), "losses (-first +again)")
	assert.NoDiff(t, cmp.Diff(readData(t, f), readData(t, reread)), "(-first +again)")
}

func open(t *testing.T, path string) *formats.File {
	t.Helper()
	f, err := formats.Open(path)
	require.NoError(t, err)
	return f
}

// TestPromptsAfterDroppedReply checks that prompts do not contain an earlier reply that
// mini-swe-agent dropped.
func TestPromptsAfterDroppedReply(t *testing.T) {
	f := open(t, "testdata/release2-text.traj.json")
	var sizes []int
	for p, err := range trajectories.Prompts(f.Records) {
		require.NoError(t, err)
		sizes = append(sizes, len(p.Messages))
		for _, m := range p.Messages {
			if m.Content == "Let me think about it." {
				t.Errorf("call %d was sent a reply that was dropped", p.Record)
			}
		}
	}
	assert.Equal(t, []int{2, 4, 5, 6}, sizes, "messages of each prompt")
}

func TestKeysAreRemoved(t *testing.T) {
	for _, path := range fixtures(t) {
		for f, err := range formats.OpenAll(path) {
			require.NoError(t, err)
			for r, err := range f.Records {
				if err != nil || bytes.Contains(r.Data, []byte("sk-not-for-others")) {
					t.Errorf("%s: record %d has a key; %v", path, r.ID, err)
				}
			}
		}
	}
}

// header is the first line of a journal.
const header = `{"id":1,"parent_id":0,"type":"header","time":"2026-01-01T00:00:00Z","data":{"format":"mini-1","instance_id":"a"}}` + "\n"

// TestBadFiles compares the error of each bad file, which names the file once.
func TestBadFiles(t *testing.T) {
	refuse := func(t *testing.T, file, text string) string {
		path := filepath.Join(t.TempDir(), file)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		var last error
		for f, err := range formats.OpenAll(path) {
			if (f == nil) == (err == nil) {
				t.Fatal("neither an attempt nor an error, or both")
			}
			if err != nil {
				last = err
			}
		}
		if last == nil || strings.Count(last.Error(), path) != 1 || strings.ContainsAny(last.Error(), "\n\x1b") {
			t.Fatalf("error %q, want the path once, and nothing unfit for a terminal", last)
		}
		return strings.ReplaceAll(last.Error(), path, file)
	}
	golden.Cases(t, "testdata/golden/badfiles.txt", func(t *testing.T, input string) string {
		file, text, _ := strings.Cut(strings.TrimSuffix(input, "\n"), "\n")
		return refuse(t, file, text)
	})
	assert.Contains(t, refuse(t, "a.json", strings.Repeat("[", 1e5)), "exceeded max depth", "too deep")
}

func TestJournalCycles(t *testing.T) {
	record := func(id, parent int) string {
		return fmt.Sprintf(`{"id":%d,"parent_id":%d,"type":"diff","time":"2026-01-01T00:00:00Z","data":{}}`+"\n", id, parent)
	}
	for name, tt := range map[string]struct{ text, want string }{
		"itself": {header + record(2, 2), "record 2 has parent 2"},
		"wrong":  {header + `{"id":2,"parent_id":"1","type":"diff"}` + "\n", "j.jsonl:2: not a record"},
		"torn":   {header + record(2, 1) + `{"id":3,"par`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "j.jsonl")
			require.NoError(t, os.WriteFile(path, []byte(tt.text), 0o600))
			f, err := formats.Open(path)
			if err == nil {
				_, err = trajectories.Fold(f.Records)
			}
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestOpenSeveralAttempts(t *testing.T) {
	_, err := formats.Open("testdata/messages.jsonl")
	assert.ErrorContains(t, err, "several conversations")
	_, err = formats.Open(filepath.Join(t.TempDir(), "none"))
	assert.ErrorContains(t, err, "no such file")
	_, err = formats.Open(t.TempDir())
	assert.ErrorContains(t, err, "not a regular file")
	unknown := filepath.Join(t.TempDir(), "a.json")
	require.NoError(t, os.WriteFile(unknown, []byte(`{}`), 0o600))
	_, err = formats.Open(unknown)
	assert.ErrorIs(t, err, formats.ErrUnknownFormat)
}

// TestNewerATIF checks that unknown fields of a document are kept.
func TestNewerATIF(t *testing.T) {
	f, err := formats.Read("f.json", []byte(`{"schema_version":"ATIF-v1.12","agent":{"name":"a","soul":1},"steps":[`+
		`{"source":"user","message":[{"type":"text","text":"hi"},{"type":"audio"}],"timestamp":"now","reasoning_content":"hm"}]}`))
	require.NoError(t, err)
	if diff := cmp.Diff([]string{
		"the version ATIF-v1.12 is unknown; the file was read as 1.8",
		"a timestamp that is not a time of ISO 8601 is kept as data only",
		"an audio part is not kept, only its path as data",
		"the reasoning, calls and metrics of a step that is not the agent's are kept as data only",
	}, f.Losses); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	a, err := trajectories.Fold(f.Records)
	if err != nil || !bytes.Contains(a.Import.Extra, []byte(`"soul":1`)) {
		t.Errorf("%+v, %v", a.Import, err)
	}
}

// TestWithImportRecord checks that WithImportRecord renumbers references between records.
func TestWithImportRecord(t *testing.T) {
	lines := header +
		`{"id":2,"parent_id":1,"type":"message","time":"2026-01-01T00:00:00Z","data":{"role":"user","content":"x","cause":"prompt"}}` + "\n" +
		`{"id":3,"parent_id":2,"type":"context","time":"2026-01-01T00:00:00Z","data":{"sent":[{"from":2,"to":2}]}}` + "\n" +
		`{"id":4,"parent_id":3,"type":"call","time":"2026-01-01T00:00:00Z","data":{}}` + "\n" +
		`{"id":5,"parent_id":4,"type":"resume","time":"2026-01-01T00:00:00Z","data":{"mini_version":"1","record":3}}` + "\n"
	path := filepath.Join(t.TempDir(), "j.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(lines), 0o600))
	var got []string
	withImport := filepath.Join(t.TempDir(), "adopted.jsonl")
	require.NoError(t, trajectories.WriteJournal(withImport, formats.WithImportRecord(open(t, path), path)))
	reread := open(t, withImport)
	for r, err := range reread.Records {
		require.NoError(t, err)
		line := fmt.Sprintf("%d<-%d %s", r.ID, r.Parent, r.Type)
		switch r.Type {
		case trajectories.TypeContext, trajectories.TypeResume:
			line += " " + string(r.Data)
		case trajectories.TypeImport:
			var from trajectories.Import
			if err := json.Unmarshal(r.Data, &from); err != nil || from.Format != "mini-1" || len(from.SHA256) != 64 || from.File != "j.jsonl" {
				t.Errorf("import record %+v; %v", from, err)
			}
		}
		got = append(got, line)
	}
	want := []string{
		"1<-0 header", "2<-1 import", "3<-2 message", `4<-3 context {"sent":[{"from":3,"to":3}]}`, "5<-4 call",
		`6<-5 resume {"mini_version":"1","record":4}`,
	}
	assert.Equal(t, want, got, "the result")
}

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
			require.NoError(f, err)
			f.Add(data)
		}
	}
	dir := f.TempDir() // each worker is a process with its own folder
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(dir, "file")
		require.NoError(t, os.WriteFile(path, data, 0o600))
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
