package formats_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/formats"
)

var update = flag.Bool("update", false, "rewrite golden files")

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
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&got, "# %s, row %d\n", f.Format, f.Row)
				for r, err := range f.Records {
					if err != nil {
						t.Fatal(err)
					}
					data := bytes.ReplaceAll(r.Data, []byte(f.SHA256), []byte("SHA256"))
					at := ""
					if !r.Time.IsZero() {
						at = r.Time.Format(" 15:04:05.999")
					}
					fmt.Fprintf(&got, "%d<-%d %s%s %s\n", r.ID, r.Parent, r.Type, at, data)
				}
			}
			golden(t, filepath.Join("testdata", "golden", filepath.Base(path)+".golden"), got.Bytes())
		})
	}
}

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFixtureRoundTrip converts every format to .traj.json and ATIF and back.
func TestFixtureRoundTrip(t *testing.T) {
	for _, path := range fixtures(t) {
		for f, err := range formats.OpenAll(path) {
			if err != nil {
				t.Fatal(err)
			}
			t.Run(fmt.Sprintf("%s,%d", filepath.Base(path), f.Row), func(t *testing.T) {
				first := readData(t, f)
				if diff := cmp.Diff(first, readData(t, viaTraj(t, f))); diff != "" {
					t.Errorf("by way of .traj.json (-first +again):\n%s", diff)
				}
				timeless := cmpopts.IgnoreFields(messageData{}, "Time")
				if diff := cmp.Diff(first, readData(t, viaATIF(t, f)), timeless); diff != "" {
					t.Errorf("by way of ATIF (-first +again):\n%s", diff)
				}
			})
		}
	}
}

// TestReadJournals checks that the journal of an imported attempt is read unchanged.
func TestReadJournals(t *testing.T) {
	f := open(t, "testdata/release2-tools.traj.json")
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	if err := trajectories.WriteJournal(path, f.Records); err != nil {
		t.Fatal(err)
	}
	reread := open(t, path)
	if reread.Format != trajectories.Format || reread.SHA256 != f.SHA256 {
		t.Errorf("format %q, hash %q", reread.Format, reread.SHA256)
	}
	if diff := cmp.Diff(f.Losses, reread.Losses); diff != "" {
		t.Errorf("losses (-first +again):\n%s", diff)
	}
	if diff := cmp.Diff(readData(t, f), readData(t, reread)); diff != "" {
		t.Errorf("(-first +again):\n%s", diff)
	}
}

func open(t *testing.T, path string) *formats.File {
	t.Helper()
	f, err := formats.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestPromptsAfterDroppedReply checks that prompts do not contain an earlier reply that
// mini-swe-agent dropped.
func TestPromptsAfterDroppedReply(t *testing.T) {
	f := open(t, "testdata/release2-text.traj.json")
	var sizes []int
	for p, err := range trajectories.Prompts(f.Records) {
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, len(p.Messages))
		for _, m := range p.Messages {
			if m.Content == "Let me think about it." {
				t.Errorf("call %d was sent a reply that was dropped", p.Record)
			}
		}
	}
	if diff := cmp.Diff([]int{2, 4, 5, 6}, sizes); diff != "" {
		t.Errorf("messages of each prompt (-want +got):\n%s", diff)
	}
}

func TestKeysAreRemoved(t *testing.T) {
	for _, path := range fixtures(t) {
		for f, err := range formats.OpenAll(path) {
			if err != nil {
				t.Fatal(err)
			}
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

func TestBadFiles(t *testing.T) {
	for name, tt := range map[string]struct{ file, text, want string }{
		"empty":            {"a.json", "", "the file is empty"},
		"white space":      {"a.json", " \n\n", "the file is empty"},
		"no JSON":          {"a.json", "hello", "invalid or truncated JSON (byte 1)"},
		"torn":             {"a.json", `{"trajectory_format":"mini-swe-agent-1.1","mess`, "invalid or truncated JSON"},
		"empty list":       {"a.json", "[]", "an empty list"},
		"numbers":          {"a.json", "[1,2]", "[1]: not a trajectory of a supported format"},
		"something else":   {"a.json", `{"a":1,"b":2}`, `an object with "a", "b"`},
		"unknown release":  {"a.json", `{"trajectory_format":"mini-swe-agent-9","messages":[]}`, `unknown trajectory_format "mini-swe-agent-9"`},
		"messages no list": {"a.json", `{"trajectory_format":"mini-swe-agent-1","messages":7}`, "messages: a number has the wrong type"},
		"messages null":    {"a.json", `{"messages":null}`, "not a list"},
		"empty action":     {"a.json", `[{"role":"assistant","extra":{"actions":[{}]}}]`, "messages[0].extra.actions[0]: command is missing"},
		"wrong info":       {"a.json", `{"trajectory_format":"mini-swe-agent-1","info":{"exit_status":7},"messages":[]}`, "info: "},
		"too deep":         {"a.json", strings.Repeat("[", 1e5), "exceeded max depth"},
		"no messages":      {"a.json", `{"messages":[]}`, "no messages"},
		"empty messages":   {"a.json", `{"messages":[{"role":"user","said":"x"},{"role":"assistant","said":"y"}]}`, "all 2 messages would be empty"},
		"empty steps":      {"a.traj", `{"trajectory":[{"answer":"x"},{"answer":"y"}],"info":{}}`, "messages would be empty"},
		"other content":    {"a.json", `[{"role":"user","content":{"a":1}},{"role":"assistant","content":""}]`, "messages[0].content: an object has the wrong type"},
		"no role":          {"a.json", `[{"role":"user","content":"x"},{"content":"y"}]`, "messages[1]: role is missing"},
		"content a number": {"a.json", `[{"role":"user","content":7}]`, "messages[0].content"},
		"history torn":     {"a.traj", `{"history":[{"role":"user","content":7}],"trajectory":[]}`, "history[0].content: "},
		"info a list":      {"a.traj", `{"history":[{"role":"user","content":"x"}],"trajectory":[],"info":[]}`, "info: a list has the wrong type"},
		"no steps":         {"a.traj", `{"trajectory":[]}`, "no steps and no history"},
		"an event":         {"a.json", `[{"source":"agent","action":"run","args":7}]`, "[0]: args: a number has the wrong type"},
		"empty history":    {"a.json", `{"instance_id":"x","history":[]}`, "the history is empty"},
		"ATIF step":        {"a.json", `{"schema_version":"ATIF-v1.7","agent":{},"steps":[{"source":"agent","metrics":{"cost_usd":"much"}}]}`, "invalid ATIF: steps[0]: metrics.cost_usd: a string has the wrong type"},
		"ATIF content":     {"a.json", `{"schema_version":"ATIF-v1.7","agent":{},"steps":[{"source":"agent","message":7}]}`, "invalid ATIF: steps[0]: message: a number has the wrong type"},
		"ATIF source":      {"a.json", `{"schema_version":"ATIF-v1.7","agent":{},"steps":[{"source":"me"}]}`, `steps[0]: source: one of system, user, agent expected, got "me"`},
		"ATIF of tomorrow": {"a.json", `{"schema_version":"ATIF-v9.0","agent":{"name":"a","version":"1"},"steps":[]}`, "invalid ATIF"},
		"journal of tomorrow": {
			"j.jsonl", strings.Replace(header, "mini-1", "mini-9", 1), "j.jsonl:1: not a journal of format mini-1",
		},
		"a bad line": {"a.jsonl", `{"messages":[{"role":"user","content":"x"}]}` + "\n{\n", "line 2: invalid or truncated JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), tt.file)
			if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			var last error
			for f, err := range formats.OpenAll(path) {
				if (f == nil) == (err == nil) {
					t.Fatal("neither an attempt nor an error, or both")
				}
				if err != nil {
					last = err
				}
			}
			if last == nil || !strings.Contains(last.Error(), tt.want) || strings.Count(last.Error(), path) != 1 {
				t.Errorf("error %v, want %q, and the path once", last, tt.want)
			}
			if strings.ContainsAny(last.Error(), "\n\x1b") {
				t.Errorf("unfit for a terminal: %q", last)
			}
		})
	}
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
			if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
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
	if _, err := formats.Open("testdata/messages.jsonl"); err == nil || !strings.Contains(err.Error(), "several conversations") {
		t.Errorf("error %v", err)
	}
	if _, err := formats.Open(filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("error %v", err)
	}
	if _, err := formats.Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("error %v", err)
	}
	unknown := filepath.Join(t.TempDir(), "a.json")
	if err := os.WriteFile(unknown, []byte(`{}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := formats.Open(unknown); !errors.Is(err, formats.ErrUnknownFormat) {
		t.Errorf("error %v", err)
	}
}

// TestNewerATIF checks that unknown fields of a document are kept.
func TestNewerATIF(t *testing.T) {
	f, err := formats.Read("f.json", []byte(`{"schema_version":"ATIF-v1.12","agent":{"name":"a","soul":1},"steps":[`+
		`{"source":"user","message":[{"type":"text","text":"hi"},{"type":"audio"}],"timestamp":"now","reasoning_content":"hm"}]}`))
	if err != nil {
		t.Fatal(err)
	}
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
	if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	var got []string
	withImport := filepath.Join(t.TempDir(), "adopted.jsonl")
	if err := trajectories.WriteJournal(withImport, formats.WithImportRecord(open(t, path), path)); err != nil {
		t.Fatal(err)
	}
	reread := open(t, withImport)
	for r, err := range reread.Records {
		if err != nil {
			t.Fatal(err)
		}
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
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
