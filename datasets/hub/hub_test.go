package hub_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/datasets/hub"
	"github.com/minibench/mini/datasets/hub/hubtest"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/corpustest"
	"github.com/minibench/mini/internal/require"
)

func TestFetch(t *testing.T) {
	s := server(t)
	dir := t.TempDir()
	var last hub.Progress
	h := open(t, hub.Config{Endpoint: s.URL + "/", Dir: dir, Progress: func(p hub.Progress) { last = p }})
	e := fetch(t, h, hub.Ref{Repo: repo})
	checkFiles(t, e, files())

	want := hub.Snapshot{
		Repo: repo, Revision: "main", Commit: hubtest.Commit(1), Split: "test", Splits: []string{"dev", "test"},
		Bytes: 500_001, Fetched: e.Fetched, Files: e.Files,
	}
	assert.Equal(t, want, e, "snapshot")
	src := e.Source("rows")
	wantSource := []any{"rows", hubtest.Commit(1), "test", []string{e.Files[0].Path, e.Files[1].Path}, []string{shard0, shard1}}
	assert.Equal(t, wantSource, []any{src.Name, src.Revision, src.Split, src.Files, src.Names}, "source")
	wantLast := hub.Progress{Stage: hub.Downloading, Repo: repo, Bytes: 500_001, Total: 500_001}
	assert.Equal(t, wantLast, last, "last progress")
	assert.Equal(t, 0, len(s.Downloads("dev-00000-of-00001.parquet")), "downloads of another split")
	assert.Equal(t, "", strings.Join(leftovers(t, dir), " "), "left behind")
}

func TestAnotherSplitAndCommit(t *testing.T) {
	s := server(t)
	dir := t.TempDir()
	h := open(t, hub.Config{Endpoint: s.URL, Dir: dir})
	fetch(t, h, hub.Ref{Repo: repo})
	e, err := h.Open(t.Context(), hub.Ref{Repo: repo, Split: "dev"})
	if err != nil || e.Split != "dev" || len(e.Files) != 1 {
		t.Fatalf("%+v, %v", e, err)
	}
	checkFiles(t, e, files())

	newer := files()
	newer[shard1] = content("new", 1000)
	s.Add(repo, hubtest.Commit(2), newer)
	s.SetRevision(repo, "refs/convert/parquet", hubtest.Commit(1))
	s.ResetRequests()
	e = fetch(t, h, hub.Ref{Repo: repo})
	checkFiles(t, e, newer)
	if n := len(s.Downloads(".parquet")); n != 1 || e.Commit != hubtest.Commit(2) {
		t.Errorf("%d downloads for one new file, commit %s", n, e.Commit)
	}
	s.ResetRequests()
	e = fetch(t, h, hub.Ref{Repo: repo, Revision: "refs/convert/parquet"})
	checkFiles(t, e, files())
	if log := s.Requests(); len(log) != 1 || !strings.HasSuffix(log[0].Path, "/revision/refs%2Fconvert%2Fparquet") {
		t.Errorf("a cached commit needed the requests %v", log)
	}
	s.Close()
	for revision, commit := range map[string]string{"main": hubtest.Commit(2), hubtest.Commit(1): hubtest.Commit(1)} {
		if e, err = h.Open(t.Context(), hub.Ref{Repo: repo, Revision: revision}); err != nil || e.Commit != commit {
			t.Errorf("%s: %s, %v", revision, e.Commit, err)
		}
	}
	cached, err := h.Cached()
	var got []string
	for _, c := range cached {
		got = append(got, c.Split+" "+c.Revision+" "+c.Commit[39:])
	}
	if diff := cmp.Diff([]string{"dev refs/convert/parquet 1", "test refs/convert/parquet 1", "test main 2"}, got); diff != "" || err != nil {
		t.Errorf("cached: %v (-want +got):\n%s", err, diff)
	}
}

func TestSmallFilesPagesAndRenames(t *testing.T) {
	s := hubtest.New(t)
	rows := map[string][]byte{"new #1/test ä%.jsonl": []byte("{}\n"), "train.jsonl": nil, "new #1/test ä%.json": []byte("[]")}
	s.Add("new/place", hubtest.Commit(7), rows)
	s.Rename("old/place", "new/place")
	s.PageSize(1)
	dir := t.TempDir()
	h := open(t, hub.Config{Endpoint: s.URL, Dir: dir})
	e := fetch(t, h, hub.Ref{Repo: "old/place"})
	checkFiles(t, e, rows)
	if len(e.Files) != 1 || e.Files[0].Blob != hubtest.GitSHA1([]byte("{}\n")) {
		t.Errorf("files: %+v; want no file with the same rows in another format", e.Files)
	}
	e = fetch(t, h, hub.Ref{Repo: "old/place", Split: "train"})
	checkFiles(t, e, rows) // including an empty file
	if n := len(s.Requests()); n < 6 {
		t.Errorf("%d requests are too few for a listing with pages", n)
	}
}

// A damaged file in the cache is downloaded again, and no other.
func TestDamagedCache(t *testing.T) {
	for name, damage := range map[string]func(path, blob string) error{
		"short":   func(_, blob string) error { return os.Truncate(blob, 10) },
		"gone":    func(_, blob string) error { return os.Remove(blob) },
		"changed": func(_, blob string) error { return os.WriteFile(blob, []byte("{}"), 0o600) },
		"no link": func(path, _ string) error { return os.Remove(path) },
		"of something else": func(_, blob string) error {
			return errors.Join(os.Remove(blob), os.WriteFile(blob+".incomplete", content("x", 400_000), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := server(t)
			s.Add("org/small", hubtest.Commit(1), map[string][]byte{"test.jsonl": []byte(`{"instance_id":"a"}`)})
			for repo, want := range map[string]map[string][]byte{repo: files(), "org/small": {"test.jsonl": []byte(`{"instance_id":"a"}`)}} {
				dir := t.TempDir()
				h, offline := open(t, hub.Config{Endpoint: s.URL, Dir: dir}), open(t, hub.Config{Endpoint: s.URL, Dir: dir, Offline: true})
				e := fetch(t, h, hub.Ref{Repo: repo})
				if _, err := offline.Fetch(t.Context(), hub.Ref{Repo: repo}); err != nil {
					t.Errorf("undamaged: %v", err)
				}
				blob, err := filepath.EvalSymlinks(e.Files[0].Path)
				require.NoError(t, err)
				require.NoError(t, damage(e.Files[0].Path, blob))
				_, err = offline.Open(t.Context(), hub.Ref{Repo: repo})
				assert.ErrorContains(t, err, "in the cache, and the network is not to be used", "offline")
				s.ResetRequests()
				e, err = h.Open(t.Context(), hub.Ref{Repo: repo})
				require.NoError(t, err)
				checkFiles(t, e, want)
				if n := len(s.Downloads(".parquet")) + len(s.Downloads(".jsonl")); n > 1 {
					t.Errorf("%d downloads", n)
				}
				assert.Equal(t, "", strings.Join(leftovers(t, dir), " "), "left behind")
			}
		})
	}
}

// The cache of huggingface_hub is the same: files of either are used by the other.
func TestCacheOfOtherTools(t *testing.T) {
	dir := t.TempDir()
	row := []byte(`{"instance_id":"a__b-1","problem_statement":"p"}`)
	base := filepath.Join(dir, "datasets--org--name")
	for _, folder := range []string{"blobs", "refs", "snapshots/" + hubtest.Commit(1) + "/data"} {
		require.NoError(t, os.MkdirAll(filepath.Join(base, folder), 0o755))
	}
	blob := hubtest.GitSHA1(row)
	require.NoError(t, os.WriteFile(filepath.Join(base, "blobs", blob), row, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(base, "refs", "main"), []byte(hubtest.Commit(1)), 0o600))
	link := filepath.Join(base, "snapshots", hubtest.Commit(1), "data", "test.jsonl")
	require.NoError(t, os.Symlink("../../../blobs/"+blob, link))
	h := open(t, hub.Config{Dir: dir, Offline: true})
	e, err := h.Open(t.Context(), hub.Ref{Repo: repo})
	require.NoError(t, err)
	checkFiles(t, e, map[string][]byte{"data/test.jsonl": row})
	if list, err := h.Cached(); err != nil || len(list) != 0 {
		t.Errorf("listed: %v, %v", list, err)
	}

	s := hubtest.New(t)
	s.Add(repo, hubtest.Commit(1), map[string][]byte{"data/test.jsonl": row})
	fetch(t, open(t, hub.Config{Endpoint: s.URL, Dir: t.TempDir()}), hub.Ref{Repo: repo})
	fetch(t, open(t, hub.Config{Endpoint: s.URL, Dir: dir}), hub.Ref{Repo: repo})
	assert.Equal(t, 1, len(s.Downloads(".jsonl")), "downloads, none of the file in the cache")
	if target, err := os.Readlink(link); err != nil || target != "../../../blobs/"+blob {
		t.Errorf("link to %s, %v", target, err)
	}
}

// A failed fetch leaves no folder of a repository that does not exist.
func TestMistakesLeaveNoFolder(t *testing.T) {
	s := server(t)
	dir := t.TempDir()
	_, err := open(t, hub.Config{Endpoint: s.URL, Dir: dir}).Fetch(t.Context(), hub.Ref{Repo: "org/nome"})
	assert.ErrorIs(t, err, datasets.ErrData)
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// The rows of a snapshot can be loaded.
func TestRows(t *testing.T) {
	testRows(t, map[string][]byte{"data/test.jsonl": []byte(`{"instance_id":"a__b-1","problem_statement":"p"}` + "\n")}, map[string]int{"test": 1})
}

// TestOfficialRows is like TestRows for real rows, in the files of the hub.
func TestOfficialRows(t *testing.T) {
	rows, want := map[string][]byte{}, map[string]int{"dev": 23, "test": 300}
	for split := range want {
		data, err := os.ReadFile(corpustest.RealData(t, "swebench/lite-"+split+".parquet"))
		require.NoError(t, err)
		rows["data/"+split+"-00000-of-00001.parquet"] = data
	}
	testRows(t, rows, want)
}

func testRows(t *testing.T, rows map[string][]byte, want map[string]int) {
	t.Helper()
	s := hubtest.New(t)
	s.Add(repo, hubtest.Commit(1), rows)
	h := open(t, hub.Config{Endpoint: s.URL})
	for split, n := range want {
		e := fetch(t, h, hub.Ref{Repo: repo, Split: split})
		set, err := datasets.Load(t.Context(), []datasets.Source{e.Source("rows")}, datasets.AllRows)
		if err != nil || len(set.Instances) != n {
			t.Errorf("%s: %d rows, %v; want %d", split, len(set.Instances), err, n)
		}
	}
}

func TestPing(t *testing.T) {
	s := server(t)
	s.SetToken("hf_right")
	for token, works := range map[string]bool{"": true, "hf_right": true, "hf_wrong": false} {
		assert.Equal(t, works, (open(t, hub.Config{Endpoint: s.URL, Token: token}).Ping(t.Context()) == nil), "token %q", token)
	}
	s.Close()
	err := open(t, hub.Config{Endpoint: s.URL}).Ping(t.Context())
	if !errors.Is(err, datasets.ErrData) || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("nobody there: %v", err)
	}
}
