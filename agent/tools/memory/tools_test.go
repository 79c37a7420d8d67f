package memory_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/agent/tools/memory"
	"github.com/minibench/mini/env"
)

// callTool calls a tool as a command does.
func callTool(t *testing.T, registry *tools.Registry, input string, args ...string) (output string, code int, details string) {
	t.Helper()
	a := registry.Handle(t.Context(), agent.ToolRequest{ToolRequest: env.ToolRequest{Args: args, Stdin: []byte(input)}})
	data, err := json.Marshal(a.Details)
	if err != nil {
		t.Fatal(err)
	}
	return string(a.Stdout) + string(a.Stderr), a.ExitCode, string(data)
}

func newRegistry(t *testing.T, list ...tools.Tool) *tools.Registry {
	t.Helper()
	r, err := tools.New(tools.Config{Tools: list})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var times = regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\dZ)?`)

func TestNoteTools(t *testing.T) {
	registry := newRegistry(t, memory.NoteTools(newStore(t))...)
	for _, tt := range []struct {
		args    string // separated by |
		input   string
		code    int
		output  string // its beginning
		details string
	}{
		{"notes", "", 0, "there are no notes\n", `{"notes":0}`},
		{"note|add|--category|Build|make helper|first", "", 0, "noted as 1 in build\n", `{"note":{"id":1,"category":"build","text":"make helper first","time":"TIME"}}`},
		{"note|add|-", "two\nlines \x1b[2J\u202e\n", 0, "noted as 2 in general\n", ""},
		{"note|add|--category=build|make helper first", "", 0, "note 1 in build says so already\n", ""},
		{"note|add|--|--dashes first", "", 0, "noted as 3 in general\n", ""},
		{"notes", "", 0, "3 notes, times in UTC\n\nbuild\n  1  TIME  make helper first\n\n" +
			"general\n  2  TIME  two\n      lines \uFFFD[2J\uFFFD\n  3  TIME  --dashes first\n", `{"notes":3}`},
		{"notes|--category|BUILD", "", 0, "1 note, times in UTC\n\nbuild\n", `{"notes":1}`},
		{"notes|--limit|1", "", 0, "1 note, times in UTC; 2 notes left out, the oldest (--limit and --category choose)\n\ngeneral\n  3", ""},
		{"note|remove|2", "", 0, "note 2 is removed\n", `{"removed":{"id":2,"category":"general","text":"two\nlines \u001b[2J` + "\u202e" + `","time":"TIME"}}`},
		{"note|remove|2", "", 2, "mini-tool: note: there is no note 2\n", "null"},
		{"note|remove|x", "", 2, `mini-tool: note: "x" is no number of a note`, "null"},
		{"note|remove", "", 2, "mini-tool: note: remove takes the number of a note", "null"},
		{"note", "", 2, "mini-tool: note: say add or remove", "null"},
		{"note|ad|x", "", 2, `mini-tool: note: there is no note "ad": say add or remove`, "null"},
		{"note|add", "", 2, "mini-tool: note: the note is missing", "null"},
		{"note|add|-", " \n", 2, "mini-tool: note: the note is missing", "null"},
		{"note|add|--category|a b|x", "", 2, `mini-tool: note: "a b" is no category`, "null"},
		{"note|add|--categry|a|x", "", 2, `mini-tool: note: there is no flag "--categry"; did you mean --category?`, "null"},
		{"note|add|-", strings.Repeat("x", 5000), 2, "mini-tool: note: the note has 5000 bytes", "null"},
		{"notes|all", "", 2, `mini-tool: notes: notes takes flags only, not "all"`, "null"},
		{"notes|--limit|0", "", 2, "mini-tool: notes: --limit is a whole number from 1 to 500", "null"},
		{"notes|--category|a/b", "", 2, `mini-tool: notes: "a/b" is no category`, "null"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			output, code, details := callTool(t, registry, tt.input, strings.Split(tt.args, "|")...)
			output, details = times.ReplaceAllString(output, "TIME"), times.ReplaceAllString(details, "TIME")
			if code != tt.code || !strings.HasPrefix(output, tt.output) {
				t.Errorf("%d %q, not %q", code, output, tt.output)
			}
			if tt.details != "" && details != tt.details {
				t.Errorf("details %s, not %s", details, tt.details)
			}
			if code == 2 && !strings.Contains(output, "mini-tool note") {
				t.Errorf("there is no usage in %q", output)
			}
		})
	}
}

// A listing has the newest notes that fit, even if the file has more.
func TestListIsBounded(t *testing.T) {
	s := newStore(t)
	writeFile(t, s.Path(), `{"version":1,"next":1,"notes":[`+encodedNotes(60, 4096)+"]}")
	output, _, _ := callTool(t, newRegistry(t, memory.NoteTools(s)...), "", "notes")
	if !strings.HasPrefix(output, "11 notes, times in UTC; 49 notes left out, the oldest") || len(output) > 50<<10 {
		t.Errorf("%d bytes: %.100s", len(output), output)
	}
}

// The model sees the error, but not the path of the file.
func TestErrorsHideHostPaths(t *testing.T) {
	s := newStore(t)
	writeFile(t, s.Path(), "no notes")
	registry := newRegistry(t, memory.NoteTools(s)...)
	output, code, details := callTool(t, registry, "", "notes")
	if code != 1 || !strings.Contains(output, "read notes: invalid JSON: invalid character") {
		t.Errorf("%d %q %s", code, output, details)
	}
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, file, "")
	registry = newRegistry(t, memory.NoteTools(memory.NewStore(filepath.Join(file, "notes.json")))...)
	for _, args := range [][]string{{"note", "add", "x"}, {"notes"}} {
		output, code, details = callTool(t, registry, "", args...)
		if code != 1 || !strings.Contains(output, "notes cannot be kept: not a directory") || strings.Contains(output, "/") || !strings.Contains(details, file) {
			t.Errorf("%d %q %s", code, output, details)
		}
	}
}

func FuzzFile(f *testing.F) {
	for _, text := range []string{"", fullFile(), fileWithNote(`{"id":1,"category":"a","text":"x\u001b[0m","time":"2026-11-22T17:00:00Z"}`), `{"version":2}`, "[]"} {
		f.Add([]byte(text))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(dir, "notes.json")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		s := memory.NewStore(path)
		before, err := s.Notes()
		if err != nil {
			return
		}
		// Notes that can be read stay unchanged when a note is added.
		if list := memory.FormatNotes(before, memory.MaxNotes); strings.ContainsAny(list, "\x1b\r\x00\u202e") || len(list) > 80<<10 {
			t.Errorf("%d bytes: %q", len(list), list)
		}
		_, err = s.Add(t.Context(), "fuzz", "added")
		if err != nil && len(before) < memory.MaxNotes {
			t.Fatal(err)
		}
		after, err := s.Notes()
		if err != nil {
			t.Fatal(err)
		}
		if len(after) < len(before) {
			t.Errorf("%d notes of %d are left", len(after), len(before))
		}
		for i, n := range before {
			if !n.Time.Equal(after[i].Time) || n.ID != after[i].ID || n.Text != after[i].Text {
				t.Errorf("note %d was %+v, and is %+v", i, n, after[i])
			}
		}
	})
}
