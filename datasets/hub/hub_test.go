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
	"github.com/minibench/mini/internal/corpustest"
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
		Bytes: 500_001, Endpoint: s.URL, Fetched: e.Fetched, Files: e.Files,
	}
	if diff := cmp.Diff(want, e); diff != "" {
		t.Errorf("snapshot (-want +got):\n%s", diff)
	}
	src := e.Source("rows")
	wantSource := []any{"rows", hubtest.Commit(1), "test", []string{e.Files[0].Path, e.Files[1].Path}, []string{shard0, shard1}}
	if diff := cmp.Diff(wantSource, []any{src.Name, src.Revision, src.Split, src.Files, src.Names}); diff != "" {
		t.Errorf("source (-want +got):\n%s", diff)
	}
	wantLast := hub.Progress{Stage: hub.Downloading, Repo: repo, File: shard1, Bytes: 500_001, Total: 500_001}
	if diff := cmp.Diff(wantLast, last); diff != "" {
		t.Errorf("last progress (-want +got):\n%s", diff)
	}
	if n := len(s.Downloads("dev-00000-of-00001.parquet")); n != 0 {
		t.Errorf("another split was downloaded %d times", n)
	}
	if found := leftovers(t, dir); len(found) > 0 {
		t.Errorf("left behind: %v", found)
	}
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
	if diff := cmp.Diff([]string{"dev main 1", "test refs/convert/parquet 1", "test main 2", "test main 1"}, got); diff != "" || err != nil {
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
	if len(e.Files) != 1 || e.Files[0].SHA256 == "" || filepath.Base(e.Files[0].Path) != hubtest.GitSHA1([]byte("{}\n")) {
		t.Errorf("files: %+v; want no file with the same rows in another format", e.Files)
	}
	e = fetch(t, h, hub.Ref{Repo: "old/place", Split: "train"})
	checkFiles(t, e, rows) // including an empty file
	if n := len(s.Requests()); n < 6 {
		t.Errorf("%d requests are too few for a listing with pages", n)
	}
	again := fetch(t, open(t, hub.Config{Endpoint: s.URL, Dir: dir}), hub.Ref{Repo: "new/place"})
	if again.Files[0].SHA256 != e.Files[0].SHA256 && again.Repo != "new/place" {
		t.Errorf("%+v", again)
	}
}

// Open never uses a damaged snapshot, and fetches it again.
func TestDamagedCache(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, e hub.Snapshot, dir string){
		"blob cut":  func(t *testing.T, e hub.Snapshot, _ string) { t.Helper(); must(t, os.Truncate(e.Files[0].Path, 10)) },
		"blob gone": func(t *testing.T, e hub.Snapshot, _ string) { t.Helper(); must(t, os.Remove(e.Files[1].Path)) },
		"record cut": func(t *testing.T, _ hub.Snapshot, dir string) {
			t.Helper()
			found, err := filepath.Glob(filepath.Join(dir, "org--name", "editions", "*.json"))
			must(t, err)
			must(t, os.Truncate(found[0], 30))
		},
		"record leads outside": func(t *testing.T, e hub.Snapshot, dir string) {
			t.Helper()
			found, err := filepath.Glob(filepath.Join(dir, "org--name", "editions", "*.json"))
			must(t, err)
			text, err := os.ReadFile(found[0])
			must(t, err)
			text = []byte(strings.ReplaceAll(string(text), `"blob": "`+filepath.Base(e.Files[0].Path), `"blob": "../../secret`))
			must(t, os.Link(e.Files[0].Path, filepath.Join(dir, "secret")))
			must(t, os.WriteFile(found[0], text, 0o600))
		},
		"a partial that is too long": func(t *testing.T, e hub.Snapshot, _ string) {
			t.Helper()
			must(t, os.Remove(e.Files[0].Path))
			must(t, os.WriteFile(e.Files[0].Path+".partial", content("x", 400_000), 0o600))
		},
		"a partial of something else": func(t *testing.T, e hub.Snapshot, _ string) {
			t.Helper()
			must(t, os.Remove(e.Files[0].Path))
			must(t, os.WriteFile(e.Files[0].Path+".partial", content("x", 1000), 0o600))
		},
		"a partial that is whole": func(t *testing.T, e hub.Snapshot, _ string) {
			t.Helper()
			must(t, os.Rename(e.Files[0].Path, e.Files[0].Path+".partial"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := server(t)
			dir := t.TempDir()
			h := open(t, hub.Config{Endpoint: s.URL, Dir: dir})
			damage(t, fetch(t, h, hub.Ref{Repo: repo}), dir)
			if list, err := h.Cached(); err != nil || len(list) != 0 {
				t.Errorf("listed as complete: %+v, %v", list, err)
			}
			if _, err := open(t, hub.Config{Endpoint: s.URL, Dir: dir, Offline: true}).Open(t.Context(), hub.Ref{Repo: repo}); !errors.Is(err, hub.ErrOffline) {
				t.Errorf("opened: %v", err)
			}
			e, err := h.Open(t.Context(), hub.Ref{Repo: repo})
			must(t, err)
			checkFiles(t, e, files())
			if found := leftovers(t, dir); len(found) > 0 {
				t.Errorf("left behind: %v", found)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
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
		if err != nil {
			t.Fatal(err)
		}
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
		set, err := datasets.Load(t.Context(), []datasets.Source{e.Source("rows")}, datasets.Selection{})
		if err != nil || len(set.Instances) != n {
			t.Errorf("%s: %d rows, %v; want %d", split, len(set.Instances), err, n)
		}
	}
}

func TestPing(t *testing.T) {
	s := server(t)
	s.SetToken("hf_right")
	for token, want := range map[string]error{"": nil, "hf_right": nil, "hf_wrong": hub.ErrToken} {
		if err := open(t, hub.Config{Endpoint: s.URL, Token: token}).Ping(t.Context()); !errors.Is(err, want) {
			t.Errorf("token %q: %v, want %v", token, err, want)
		}
	}
	s.Close()
	err := open(t, hub.Config{Endpoint: s.URL}).Ping(t.Context())
	if !errors.Is(err, hub.ErrUnreachable) || !errors.Is(err, datasets.ErrData) {
		t.Errorf("nobody there: %v", err)
	}
}
