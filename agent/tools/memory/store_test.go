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

	"github.com/minibench/mini/agent/tools/memory"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

func newStore(t *testing.T) *memory.Store {
	t.Helper()
	return memory.NewStore(filepath.Join(t.TempDir(), "state", "notes", "notes.json"))
}

func add(t *testing.T, s *memory.Store, category, text string) memory.Note {
	t.Helper()
	a, err := s.Add(t.Context(), category, text)
	require.NoError(t, err)
	return a.Note
}

// texts returns all notes as "id category text".
func texts(t *testing.T, s *memory.Store) []string {
	t.Helper()
	all, err := s.Notes()
	require.NoError(t, err)
	list := []string{}
	for _, n := range all {
		list = append(list, fmt.Sprintf("%d %s %s", n.ID, n.Category, n.Text))
	}
	return list
}

func checkEqual(t *testing.T, want, got any) {
	t.Helper()
	assert.Equal(t, want, got, "-want +got")
}

func TestStore(t *testing.T) {
	s := newStore(t)
	checkEqual(t, []string{}, texts(t, s))
	if _, err := os.Stat(filepath.Dir(s.Path())); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading made a folder: %v", err)
	}
	add(t, s, "", "  first\r\nline\n")
	add(t, s, "Build", "<b> & \x1b[31m")
	add(t, s, "build", "third")
	duplicate, err := s.Add(t.Context(), "BUILD", "third")
	if err != nil || !duplicate.Duplicate || duplicate.ID != 3 {
		t.Errorf("the same note again: %+v %v", duplicate, err)
	}
	checkEqual(t, []string{"1 general first\nline", "2 build <b> & \x1b[31m", "3 build third"}, texts(t, s))

	removed, err := s.Remove(t.Context(), 3)
	if err != nil || removed.Text != "third" {
		t.Error(removed, err)
	}
	assert.Equal(t, 4, add(t, s, "build", "fourth").ID, "the id")
	if _, err := s.Remove(t.Context(), 3); !errors.Is(err, memory.ErrInvalid) || err.Error() != "there is no note 3" {
		t.Error(err)
	}
	assert.Equal(t, 5, add(t, s, "", "after").ID, "the id")
	for path, want := range map[string]fs.FileMode{s.Path(): 0o600, s.Path() + ".lock": 0o600, filepath.Dir(s.Path()): 0o700 | fs.ModeDir} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: %v %v, not %v", path, info.Mode(), err, want)
		}
	}
}

func TestInvalidNotes(t *testing.T) {
	s := newStore(t)
	for _, tt := range []struct{ name, category, text, want string }{
		{"empty", "", " \n", "the note is empty"},
		{"too long", "", strings.Repeat("x", memory.MaxNoteBytes+1), "the note has 4097 bytes"},
		{"two words", "two words", "x", `"two words" is no category`},
		{"a path", "../x", "x", "is no category"},
		{"an escape", "\x1b[2J", "x", `"\x1b[2j" is no category`},
		{"a long one", strings.Repeat("c", 33), "x", "is no category"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := s.Add(t.Context(), tt.category, tt.text); !errors.Is(err, memory.ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, not %q", err, tt.want)
			}
		})
	}
	_, err := os.Stat(s.Path())
	assert.ErrorIs(t, err, fs.ErrNotExist, "a mistake made a file")
}

func TestBounds(t *testing.T) {
	s := newStore(t)
	writeFile(t, s.Path(), `{"version":1,"next":1,"notes":[`+encodedNotes(memory.MaxTotalBytes/memory.MaxNoteBytes, memory.MaxNoteBytes)+"]}")
	_, err := s.Add(t.Context(), "", "one more byte")
	if err == nil || errors.Is(err, memory.ErrInvalid) || !strings.Contains(err.Error(), "at most 262144 can be kept") {
		t.Error(err)
	}
	assert.Equal(t, 64, len(texts(t, s)), "notes")
	s = newStore(t)
	writeFile(t, s.Path(), fullFile())
	_, err = s.Add(t.Context(), "", "one more")
	assert.ErrorContains(t, err, "there are 500 notes")
}

// fullFile returns the content of a file with the maximum number of notes.
func fullFile() string {
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
	require.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)))
}

// fileWithNote returns the content of a file with one note.
func fileWithNote(fields string) string { return `{"version":1,"next":2,"notes":[` + fields + `]}` }

// Readers and writers leave an invalid file unchanged.
func TestDamagedFilesAreNotModified(t *testing.T) {
	const ok = `{"id":1,"category":"a","text":"x","time":"2026-11-22T17:00:00Z"}`
	tests := map[string]struct{ text, wantErr string }{
		"empty":      {"", "invalid JSON: unexpected end"},
		"half":       {fullFile()[:2000], "invalid JSON"},
		"another's":  {`{"name":"package","version":"1.0.0"}`, "invalid JSON"},
		"newer":      {`{"version":2,"notes":{"of":"another form"}}`, memory.ErrNewerVersion.Error()},
		"no version": {`{"next":1,"notes":[]}`, "the version is missing"},
		"huge":       {fullFile() + strings.Repeat(" ", 3<<20), "larger than 2 MB"},
		"wrong time": {fileWithNote(strings.Replace(ok, "2026-11-22T17:00:00Z", "yesterday", 1)), "invalid JSON"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			writeFile(t, s.Path(), tt.text)
			_, err := s.Notes()
			assert.ErrorContains(t, err, tt.wantErr, "a reader gets")
			_, err = s.Add(t.Context(), "", "new")
			assert.ErrorContains(t, err, tt.wantErr, "a writer gets")
			if content, err := os.ReadFile(s.Path()); err != nil || string(content) != tt.text {
				t.Errorf("it is not what it was: %v", err)
			}
		})
	}
}

// encodedNotes returns n notes with texts of the given size, as in a file.
func encodedNotes(n, size int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`{"id":%d,"category":"a","text":%q,"time":"2026-11-22T17:00:00Z"}`, i+1, strings.Repeat("x", size)))
	}
	return strings.Join(all, ",")
}

// Links, directories and pipes are rejected without blocking.
func TestIrregularFilesAreRejected(t *testing.T) {
	for name, create := range map[string]func(path string) error{
		"folder":        func(path string) error { return os.MkdirAll(filepath.Join(path, "sub"), 0o700) },
		"pipe":          func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"link":          func(path string) error { return os.Symlink(filepath.Join(filepath.Dir(path), "secret"), path) },
		"dangling link": func(path string) error { return os.Symlink("nowhere", path) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			secret := filepath.Join(filepath.Dir(s.Path()), "secret")
			writeFile(t, secret, fileWithNote(`{"id":1,"category":"a","text":"secret","time":"2026-11-22T17:00:00Z"}`))
			require.NoError(t, create(s.Path()))
			before, _ := os.ReadFile(secret)
			if _, err := s.Add(t.Context(), "", "new"); err == nil || !strings.Contains(err.Error(), "not a regular file") {
				t.Fatal(err)
			}
			if after, _ := os.ReadFile(secret); string(after) != string(before) {
				t.Error("what the link led to was changed")
			}
		})
	}
}

// newWriter returns a process that adds notes.
func newWriter(t *testing.T, s *memory.Store, name string, n int, more ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), writerFile+"="+s.Path(), writerName+"="+name, writerCount+"="+strconv.Itoa(n))
	cmd.Env = append(cmd.Env, more...)
	return cmd
}

// Several processes and goroutines write concurrently: every note is stored under
// its own ID, and a concurrent reader always sees a complete file.
func TestConcurrentWriters(t *testing.T) {
	const processes, threads, each = 6, 4, 4
	s := newStore(t)
	var writers sync.WaitGroup
	for p := range processes {
		writers.Go(func() {
			if out, err := newWriter(t, s, fmt.Sprint("process", p), each).CombinedOutput(); err != nil {
				t.Errorf("%v %s", err, out)
			}
		})
	}
	for p := range threads {
		writers.Go(func() {
			for i := range each {
				_, err := s.Add(t.Context(), "made", fmt.Sprintf("thread%d %d", p, i))
				assert.NoError(t, err)
			}
		})
	}
	done := make(chan struct{})
	go func() { writers.Wait(); close(done) }()
	for seen := 0; ; {
		all, err := s.Notes()
		if err != nil || len(all) < seen {
			t.Fatal(len(all), seen, err)
		}
		seen = len(all)
		select {
		case <-done:
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
		assert.Equal(t, i+1, n.ID, "the id")
	}
}

// A process that is killed while it writes loses no confirmed note and does not
// block others.
func TestKilledWriters(t *testing.T) {
	s := newStore(t)
	confirmed := 0
	for round := range 5 {
		cmd := newWriter(t, s, fmt.Sprint("round", round), 1000)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		require.NoError(t, err)
		lines := bufio.NewScanner(out)
		for i := 0; i < 3+round && lines.Scan(); i++ {
			confirmed++
		}
		_ = cmd.Process.Kill() // at any point of a write
		for lines.Scan() {
			confirmed++
		}
		assert.Error(t, cmd.Wait(), "it was over before")
		if n := len(texts(t, s)); n < confirmed {
			t.Fatalf("%d notes are there, and %d were said to be kept", n, confirmed)
		}
	}
}

// The wait for a lock that another process holds is bounded.
func TestBusyFile(t *testing.T) {
	s := newStore(t)
	add(t, s, "", "one")
	lock := flock.New(s.Path() + ".lock")
	require.NoError(t, lock.Lock())
	defer lock.Close()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		_, err := s.Add(t.Context(), "", "x")
		if took := time.Since(start); err == nil || took < 10*time.Second || took > 11*time.Second || !strings.Contains(err.Error(), "retry later") {
			t.Errorf("%v after %v", err, took)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("enough"))
		_, err = s.Add(ctx, "", "x")
		assert.ErrorContains(t, err, "enough")
	})
	checkEqual(t, []string{"1 general one"}, texts(t, s)) // readers do not wait
}
