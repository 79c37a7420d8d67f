package memory_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/agent/memory"
)

func newStore(t *testing.T) *memory.Store {
	t.Helper()
	return memory.NewStore(filepath.Join(t.TempDir(), "state", "notes", "notes.json"))
}

func add(t *testing.T, s *memory.Store, category, text string) memory.Note {
	t.Helper()
	a, err := s.Add(t.Context(), category, text)
	if err != nil {
		t.Fatal(err)
	}
	return a.Note
}

// texts are all notes as "id category text".
func texts(t *testing.T, s *memory.Store) []string {
	t.Helper()
	all, err := s.Notes()
	if err != nil {
		t.Fatal(err)
	}
	list := []string{}
	for _, n := range all {
		list = append(list, fmt.Sprintf("%d %s %s", n.ID, n.Category, n.Text))
	}
	return list
}

func same(t *testing.T, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestStore(t *testing.T) {
	s := newStore(t)
	same(t, []string{}, texts(t, s))
	if _, err := os.Stat(filepath.Dir(s.Path())); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading made a folder: %v", err)
	}
	add(t, s, "", "  first\r\nline\n")
	add(t, s, "Build", "<b> & \x1b[31m")
	add(t, s, "build", "third")
	again, err := s.Add(t.Context(), "BUILD", "third")
	if err != nil || !again.Known || again.ID != 3 {
		t.Errorf("the same note again: %+v %v", again, err)
	}
	same(t, []string{"1 general first\nline", "2 build <b> & \x1b[31m", "3 build third"}, texts(t, s))

	gone, err := s.Remove(t.Context(), 3)
	if err != nil || gone.Text != "third" {
		t.Error(gone, err)
	}
	if n := add(t, s, "build", "fourth"); n.ID != 4 {
		t.Errorf("id %d was given again", n.ID)
	}
	if _, err := s.Remove(t.Context(), 3); !errors.Is(err, memory.ErrMistake) || err.Error() != "there is no note 3" {
		t.Error(err)
	}
	if n, err := s.Clear(t.Context(), "Build"); n != 2 || err != nil {
		t.Error(n, err)
	}
	same(t, []string{"1 general first\nline"}, texts(t, s))
	if n, err := s.Clear(t.Context(), ""); n != 1 || err != nil {
		t.Error(n, err)
	}
	if n := add(t, s, "", "after"); n.ID != 5 {
		t.Errorf("id %d was given again", n.ID)
	}
	for path, want := range map[string]fs.FileMode{s.Path(): 0o600, s.Path() + ".lock": 0o600, filepath.Dir(s.Path()): 0o700 | fs.ModeDir} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: %v %v, not %v", path, info.Mode(), err, want)
		}
	}
}

func TestMistakes(t *testing.T) {
	s := newStore(t)
	for _, tt := range []struct{ name, category, text, want string }{
		{"empty", "", " \n", "the note is empty"},
		{"too long", "", strings.Repeat("x", memory.MaxNote+1), "the note has 4097 bytes"},
		{"two words", "two words", "x", `"two words" is no category`},
		{"a path", "../x", "x", "is no category"},
		{"an escape", "\x1b[2J", "x", `"\x1b[2j" is no category`},
		{"a long one", strings.Repeat("c", 33), "x", "is no category"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := s.Add(t.Context(), tt.category, tt.text); !errors.Is(err, memory.ErrMistake) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, not %q", err, tt.want)
			}
		})
	}
	if _, err := os.Stat(s.Path()); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a mistake made a file")
	}
}

func TestBounds(t *testing.T) {
	s := newStore(t)
	writeFile(t, s.Path(), `{"version":1,"next":1,"notes":[`+long(memory.MaxText/memory.MaxNote, memory.MaxNote)+"]}")
	_, err := s.Add(t.Context(), "", "one more byte")
	if err == nil || errors.Is(err, memory.ErrMistake) || !strings.Contains(err.Error(), "at most 262144 can be kept") {
		t.Error(err)
	}
	if n := len(texts(t, s)); n != 64 {
		t.Errorf("%d notes", n)
	}
	s = newStore(t)
	writeFile(t, s.Path(), full())
	if _, err := s.Add(t.Context(), "", "one more"); err == nil || !strings.Contains(err.Error(), "there are 500 notes") {
		t.Error(err)
	}
}

// full is a file with as many notes as there can be.
func full() string {
	var b strings.Builder
	b.WriteString(`{"version":1,"next":501,"notes":[`)
	for i := range memory.MaxNotes {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":%d,"category":"a","text":"n%d","time":"2026-11-22T17:00:00Z"}`, i+1, i)
	}
	return b.String() + "]}"
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// note is the text of a file with one note.
func note(fields string) string { return `{"version":1,"next":2,"notes":[` + fields + `]}` }

// What cannot be read stays, byte for byte, whether it is found by a reader or by
// a writer.
func TestDamagedFilesStay(t *testing.T) {
	const ok = `{"id":1,"category":"a","text":"x","time":"2026-11-22T17:00:00Z"}`
	tests := map[string]struct{ text, why string }{
		"empty":           {"", "not the JSON of notes: unexpected end"},
		"half":            {full()[:2000], "not the JSON of notes"},
		"zeros":           {strings.Repeat("\x00", 4096), "not the JSON of notes"},
		"another's":       {`{"name":"package","version":"1.0.0"}`, "not the JSON of notes"},
		"a list":          {`[]`, "not the JSON of notes"},
		"no version":      {`{"next":1,"notes":[]}`, "it has no version"},
		"unknown fields":  {`{"version":1,"next":1,"notes":[],"evil":1}`, "unknown field"},
		"behind the end":  {note(ok) + "{}", "after top-level value"},
		"the same id":     {note(ok + "," + ok), "two notes have the id 1"},
		"no id":           {note(strings.Replace(ok, `"id":1`, `"id":0`, 1)), "0 is no id"},
		"huge id":         {note(strings.Replace(ok, `"id":1`, `"id":99999999999`, 1)), "is no id"},
		"next too large":  {strings.Replace(note(ok), `"next":2`, `"next":99999999999`, 1), "is no id"},
		"no category":     {note(strings.Replace(ok, `"a"`, `"\u001b[2J"`, 1)), "note 1 has no category"},
		"long text":       {note(strings.Replace(ok, `"x"`, `"`+strings.Repeat("x", 5000)+`"`, 1)), "no text of at most"},
		"too many":        {strings.Replace(full(), `[{`, `[{"id":900,"category":"a","text":"x","time":"2026-11-22T17:00:00Z"},{`, 1), "more than 500 notes"},
		"huge":            {full() + strings.Repeat(" ", 3<<20), "larger than 2 MB"},
		"deeply nested":   {strings.Repeat("[", 1<<20), "not the JSON of notes"},
		"wrong time":      {note(strings.Replace(ok, "2026-11-22T17:00:00Z", "yesterday", 1)), "not the JSON of notes"},
		"all is too much": {`{"version":1,"next":1,"notes":[` + long(70, 4000) + "]}", "more than 256 KB"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			writeFile(t, s.Path(), tt.text)
			if _, err := s.Notes(); err == nil || !strings.Contains(err.Error(), tt.why) {
				t.Errorf("a reader gets %v, not %q", err, tt.why)
			}
			if _, err := s.Add(t.Context(), "", "new"); err == nil || !strings.Contains(err.Error(), tt.why) {
				t.Errorf("a writer gets %v, not %q", err, tt.why)
			}
			if kept, err := os.ReadFile(s.Path()); err != nil || string(kept) != tt.text {
				t.Errorf("it is not what it was: %v", err)
			}
		})
	}
}

// long are n notes of so many bytes each, as they stand in a file.
func long(n, size int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`{"id":%d,"category":"a","text":%q,"time":"2026-11-22T17:00:00Z"}`, i+1, strings.Repeat("x", size)))
	}
	return strings.Join(all, ",")
}

// What is no file is neither followed nor waited for.
func TestWhatIsNoFileIsRefused(t *testing.T) {
	for name, make := range map[string]func(path string) error{
		"folder":        func(path string) error { return os.MkdirAll(filepath.Join(path, "sub"), 0o700) },
		"pipe":          func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"link":          func(path string) error { return os.Symlink(filepath.Join(filepath.Dir(path), "secret"), path) },
		"dangling link": func(path string) error { return os.Symlink("nowhere", path) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			secret := filepath.Join(filepath.Dir(s.Path()), "secret")
			writeFile(t, secret, note(`{"id":1,"category":"a","text":"secret","time":"2026-11-22T17:00:00Z"}`))
			if err := make(s.Path()); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(secret)
			if _, err := s.Add(t.Context(), "", "new"); err == nil || !strings.Contains(err.Error(), "it is no regular file") {
				t.Fatal(err)
			}
			if after, _ := os.ReadFile(secret); string(after) != string(before) {
				t.Error("what the link led to was changed")
			}
		})
	}
}

func TestNewerFilesStay(t *testing.T) {
	s := newStore(t)
	const text = `{"version":2,"notes":{"of":"another form"}}`
	writeFile(t, s.Path(), text)
	if _, err := s.Notes(); !errors.Is(err, memory.ErrNewer) {
		t.Error(err)
	}
	if _, err := s.Add(t.Context(), "", "x"); !errors.Is(err, memory.ErrNewer) {
		t.Error(err)
	}
	if got, _ := os.ReadFile(s.Path()); string(got) != text {
		t.Errorf("it is %q now", got)
	}
}

// writer is another process that adds notes.
func writer(t *testing.T, s *memory.Store, name string, n int, more ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), writerFile+"="+s.Path(), writerName+"="+name, writerCount+"="+strconv.Itoa(n))
	cmd.Env = append(cmd.Env, more...)
	return cmd
}

// Processes, and parallel calls in one, write at the same time: every note is
// there, each under an id of its own, beside a reader who always sees a whole file.
func TestConcurrentWriters(t *testing.T) {
	const processes, threads, each = 6, 4, 8
	s := newStore(t)
	var writers sync.WaitGroup
	for p := range processes {
		writers.Go(func() {
			if out, err := writer(t, s, fmt.Sprint("process", p), each).CombinedOutput(); err != nil {
				t.Errorf("%v %s", err, out)
			}
		})
	}
	for p := range threads {
		writers.Go(func() {
			for i := range each {
				if _, err := s.Add(t.Context(), "made", fmt.Sprintf("thread%d %d", p, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	over := make(chan struct{})
	go func() { writers.Wait(); close(over) }()
	for seen := 0; ; {
		all, err := s.Notes()
		if err != nil || len(all) < seen {
			t.Fatal(len(all), seen, err)
		}
		seen = len(all)
		select {
		case <-over:
		default:
			continue
		}
		break
	}
	all, err := s.Notes()
	if err != nil || len(all) != (processes+threads)*each {
		t.Fatalf("%d notes of %d are there: %v", len(all), (processes+threads)*each, err)
	}
	for i, n := range all {
		if n.ID != i+1 {
			t.Errorf("note %d has the id %d", i+1, n.ID)
		}
	}
}

// A process that is killed while it writes takes no note with it that it was told
// is kept, and leaves nothing that disturbs others.
func TestKilledWriters(t *testing.T) {
	s := newStore(t)
	kept := 0
	for round := range 5 {
		cmd := writer(t, s, fmt.Sprint("round", round), 1000)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for i := 0; i < 3+round && lines.Scan(); i++ {
			kept++
		}
		_ = cmd.Process.Kill() // in whatever it does
		for lines.Scan() {
			kept++
		}
		if err := cmd.Wait(); err == nil {
			t.Error("it was over before")
		}
		if n := len(texts(t, s)); n < kept {
			t.Fatalf("%d notes are there, and %d were said to be kept", n, kept)
		}
	}
	dir := filepath.Dir(s.Path())
	writeFile(t, filepath.Join(dir, ".notes.json123456"), "half a fi") // died before it could rename
	writeFile(t, filepath.Join(dir, ".notes.json.mine"), "another's")
	add(t, s, "", "the last one")
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	same(t, []string{".notes.json.mine", "notes.json", "notes.json.lock"}, names)
}

// A disk that is full costs the new note, and no other.
func TestFullDisk(t *testing.T) {
	s := newStore(t)
	add(t, s, "", strings.Repeat("x", 2000))
	out, err := writer(t, s, "much", 1, writerLimit+"=1024").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "write notes, which stay as they were") || !strings.Contains(string(out), "file too large") {
		t.Errorf("%v %s", err, out)
	}
	if n := len(texts(t, s)); n != 1 {
		t.Errorf("%d notes", n)
	}
}

func TestFolderThatCannotBeMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, file, "")
	s := memory.NewStore(filepath.Join(file, "notes.json"))
	if _, err := s.Add(t.Context(), "", "x"); !errors.Is(err, syscall.ENOTDIR) {
		t.Error(err)
	}
}

// Others may have the file for a while, and not for ever.
func TestBusyFile(t *testing.T) {
	s := newStore(t)
	add(t, s, "", "one")
	lock := flock.New(s.Path() + ".lock")
	if err := lock.Lock(); err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		_, err := s.Add(t.Context(), "", "x")
		if took := time.Since(start); err == nil || took < 10*time.Second || took > 11*time.Second || !strings.Contains(err.Error(), "try again later") {
			t.Errorf("%v after %v", err, took)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("enough"))
		if _, err := s.Add(ctx, "", "x"); err == nil || !strings.Contains(err.Error(), "enough") {
			t.Error(err)
		}
	})
	same(t, []string{"1 general one"}, texts(t, s)) // readers do not wait
}

// Times are those of the clock, to the second, in UTC.
func TestTimes(t *testing.T) {
	path := newStore(t).Path()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(90*time.Minute + 123*time.Millisecond)
		if n := add(t, memory.NewStore(path), "", "x"); !n.Time.Equal(time.Date(2000, 1, 1, 1, 30, 0, 0, time.UTC)) {
			t.Error(n.Time)
		}
	})
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), `"time": "2000-01-01T01:30:00Z"`) {
		t.Errorf("%s %v", text, err)
	}
}
