package hub_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/datasets/hub"
	"github.com/minibench/mini/datasets/hub/hubtest"
)

// flip changes a byte of a file, but not the length of the file.
func flip(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	data[len(data)/2] ^= 1
	must(t, os.WriteFile(path, data, 0o600))
}

// Load detects a changed byte in the cache, and a fetch repairs it. The fetch downloads
// only the damaged file.
func TestChangedBlob(t *testing.T) {
	row := []byte(`{"instance_id":"a","problem_statement":"p"}` + "\n")
	s := server(t)
	s.Add("org/small", hubtest.Commit(1), map[string][]byte{"test.jsonl": row, "dev.jsonl": row[1:]})
	for name, want := range map[string]map[string][]byte{repo: files(), "org/small": {"test.jsonl": row}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			ref := hub.Ref{Repo: name}
			h, offline := open(t, hub.Config{Endpoint: s.URL, Dir: dir}), open(t, hub.Config{Endpoint: s.URL, Dir: dir, Offline: true})
			e := fetch(t, h, ref)
			if _, err := offline.Fetch(t.Context(), ref); err != nil {
				t.Errorf("undamaged: %v", err)
			}
			flip(t, e.Files[0].Path)

			e, err := h.Open(t.Context(), ref)
			must(t, err)
			_, err = datasets.Load(t.Context(), []datasets.Source{e.Source("")}, datasets.Selection{})
			if wanted := name + "/" + e.Files[0].Name + ": damaged in the cache; run mini datasets fetch " + name; err == nil || err.Error() != wanted {
				t.Errorf("got %v, want %s", err, wanted)
			}
			if _, err := offline.Fetch(t.Context(), ref); !errors.Is(err, hub.ErrOffline) || !strings.Contains(err.Error(), "damaged") {
				t.Errorf("offline: %v", err)
			}
			s.ResetRequests()
			e = fetch(t, h, ref)
			checkFiles(t, e, want)
			if n, all := len(s.Downloads(e.Files[0].Name)), len(s.Downloads(".parquet"))+len(s.Downloads(".jsonl")); n != 1 || all != 1 {
				t.Errorf("%d downloads of the damaged file, %d in all", n, all)
			}
		})
	}
}

// A truncated or missing file in the cache counts as damaged, not as never fetched.
func TestShortBlob(t *testing.T) {
	s := server(t)
	for name, damage := range map[string]func(string, int64) error{
		"short": func(path string, size int64) error { return os.Truncate(path, size-1) },
		"gone":  func(path string, _ int64) error { return os.Remove(path) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			ref := hub.Ref{Repo: repo}
			h, offline := open(t, hub.Config{Endpoint: s.URL, Dir: dir}), open(t, hub.Config{Endpoint: s.URL, Dir: dir, Offline: true})
			e := fetch(t, h, ref)
			must(t, damage(e.Files[0].Path, e.Files[0].Size))
			for method, call := range map[string]func() (hub.Snapshot, error){
				"open":  func() (hub.Snapshot, error) { return offline.Open(t.Context(), ref) },
				"fetch": func() (hub.Snapshot, error) { return offline.Fetch(t.Context(), ref) },
			} {
				if _, err := call(); !errors.Is(err, hub.ErrOffline) || !strings.Contains(err.Error(), "is damaged in the cache") {
					t.Errorf("%s: %v", method, err)
				}
			}
			if _, err := offline.Open(t.Context(), hub.Ref{Repo: repo, Split: "dev"}); err == nil || !strings.Contains(err.Error(), "not in the cache") {
				t.Errorf("another split: %v", err)
			}
			e, err := h.Open(t.Context(), ref)
			must(t, err)
			checkFiles(t, e, files())
		})
	}
}

// Open does not use a snapshot of another endpoint, but the hint of its error mentions it.
func TestFetchedElsewhere(t *testing.T) {
	s, other := server(t), server(t)
	dir := t.TempDir()
	fetch(t, open(t, hub.Config{Endpoint: s.URL, Dir: dir}), hub.Ref{Repo: repo})
	other.Close()
	hint := "it is in the cache, fetched from " + s.URL + ": set HF_ENDPOINT to that"
	for _, tt := range []struct {
		c    hub.Config
		ref  hub.Ref
		kind error
		hint bool
	}{
		{hub.Config{Endpoint: other.URL}, hub.Ref{Repo: repo}, hub.ErrUnreachable, true},
		{hub.Config{Endpoint: other.URL, Offline: true}, hub.Ref{Repo: repo}, hub.ErrOffline, true},
		{hub.Config{Offline: true}, hub.Ref{Repo: repo, Revision: hubtest.Commit(1)}, hub.ErrOffline, true},
		{hub.Config{Offline: true}, hub.Ref{Repo: repo, Split: "dev"}, hub.ErrOffline, false},
		{hub.Config{Offline: true}, hub.Ref{Repo: repo, Revision: "v1"}, hub.ErrOffline, false},
	} {
		tt.c.Dir = dir
		_, err := open(t, tt.c).Open(t.Context(), tt.ref)
		e, ok := errors.AsType[*hub.Error](err)
		if !ok || !errors.Is(err, tt.kind) || (e.Hint == hint) != tt.hint {
			t.Errorf("%v %v: %v, %+v", tt.c, tt.ref, err, e)
		}
	}
}

// For a snapshot of the public hub, the hint is to unset HF_ENDPOINT.
func TestFetchedFromThePublicHub(t *testing.T) {
	s := server(t)
	dir := t.TempDir()
	fetch(t, open(t, hub.Config{Endpoint: s.URL, Dir: dir}), hub.Ref{Repo: repo})
	records, err := filepath.Glob(filepath.Join(dir, "org--name", "editions", "*.json"))
	must(t, err)
	text, err := os.ReadFile(records[0])
	must(t, err)
	must(t, os.WriteFile(records[0], []byte(strings.ReplaceAll(string(text), s.URL, hub.DefaultEndpoint)), 0o600))
	_, err = open(t, hub.Config{Endpoint: s.URL, Dir: dir, Offline: true}).Open(t.Context(), hub.Ref{Repo: repo})
	if e, ok := errors.AsType[*hub.Error](err); !ok || e.Hint != "it is in the cache, fetched from https://huggingface.co: unset HF_ENDPOINT" {
		t.Errorf("%+v", err)
	}
}

// A failed fetch leaves no folder of a repository.
func TestMistakesLeaveNoFolder(t *testing.T) {
	s := server(t)
	dir := t.TempDir()
	h := open(t, hub.Config{Endpoint: s.URL, Dir: dir})
	for _, ref := range []hub.Ref{{Repo: "org/nome"}, {Repo: repo, Split: "train"}} {
		if _, err := h.Fetch(t.Context(), ref); !errors.Is(err, datasets.ErrData) {
			t.Errorf("%v: %v", ref, err)
		}
	}
	s.Corrupt(99)
	if _, err := h.Fetch(t.Context(), hub.Ref{Repo: repo}); !errors.Is(err, hub.ErrCorrupt) {
		t.Errorf("damaged: %v", err)
	}
	entries, err := os.ReadDir(dir)
	must(t, err)
	if len(entries) != 1 || entries[0].Name() != "locks" {
		t.Errorf("left behind: %v", entries)
	}
}
