package verdicts_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/internal/rootdir"
	"github.com/minibench/mini/runner/grade/tampering"
	"github.com/minibench/mini/runner/verdicts"
)

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func text(t *testing.T, r verdicts.Record) string {
	t.Helper()
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func record(runID, model, id string, class verdicts.Class) verdicts.Record {
	return verdicts.Record{Format: verdicts.Format, RunID: runID, Model: model, Instance: id, Class: class}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	if f, err := verdicts.Read(dir); err != nil || len(f.Verdicts)+len(f.Unreadable) > 0 {
		t.Fatalf("of nothing: %v, %v", f, err)
	}
	at := func(parts ...string) string { return filepath.Join(append([]string{dir, "verdicts"}, parts...)...) }
	put(t, at("two", "m", "a-10.json"), text(t, record("two", "m", "a-10", verdicts.Resolved)))
	put(t, at("two", "m", "a-9.json"), text(t, record("two", "m", "a-9", verdicts.Empty)))
	put(t, at("one", "org__m", "a-9.json"), text(t, record("one", "org/m", "a-9", verdicts.TimedOut)))
	put(t, at("one.json"), "{}")                                   // the summary
	put(t, at("one", "org__m", "a-9", "2", "test_output.txt"), "") // a file of an extra run
	put(t, at("one", "org__m", "notes.txt"), "")

	put(t, at("bad", "m", "torn.json"), `{"format":`)
	put(t, at("bad", "m", "elsewhere.json"), text(t, record("bad", "m", "../../x", verdicts.Resolved)))
	put(t, at("bad", "m", "moved.json"), text(t, record("two", "m", "moved", verdicts.Resolved)))
	put(t, at("bad", "m", "newer.json"), strings.Replace(text(t, record("bad", "m", "newer", verdicts.Resolved)), verdicts.Format, "mini-verdict-9", 1))
	put(t, at("bad", "m", "class.json"), text(t, record("bad", "m", "class", "splendid")))
	if err := os.Symlink("/dev/zero", at("bad", "m", "link.json")); err != nil {
		t.Fatal(err)
	}

	f, err := verdicts.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range f.Verdicts {
		got = append(got, v.RunID+" "+v.Model+" "+v.Instance+" "+string(v.Class))
	}
	want := []string{"one org/m a-9 timed_out", "two m a-9 empty", "two m a-10 resolved"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if len(f.Unreadable) != 6 {
		t.Errorf("%d unread, want 6:\n%s", len(f.Unreadable), strings.Join(f.Unreadable, "\n"))
	}
	for _, name := range []string{"torn", "elsewhere", "moved", "newer", "class", "link"} {
		if !strings.Contains(strings.Join(f.Unreadable, "\n"), name+".json") {
			t.Errorf("nothing is said of %s.json", name)
		}
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "verdicts", "r", "m", "a.json")
	put(t, path, text(t, record("r", "m", "a", verdicts.Unresolved)))
	root, err := rootdir.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := verdicts.Write(root, path, record("r", "m", "a", verdicts.Resolved)); err != nil {
		t.Fatal(err)
	}
	f, err := verdicts.Read(dir)
	if err != nil || len(f.Verdicts) != 1 || f.Verdicts[0].Class != verdicts.Resolved || f.Verdicts[0].Path != path {
		t.Errorf("%+v, %v", f, err)
	}
	if err := verdicts.Write(root, filepath.Join(path, "no", "folder"), verdicts.Record{}); err == nil {
		t.Error("no error where there is no folder")
	}
}

func TestFlagNames(t *testing.T) {
	r := verdicts.Record{Flags: []tampering.Finding{{Flag: "tests"}, {Flag: "tests", File: "b"}, {Flag: "log"}}}
	if diff := cmp.Diff([]string{"tests", "log"}, r.FlagNames()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
