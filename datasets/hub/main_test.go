package hub_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/minibench/mini/datasets/hub"
	"github.com/minibench/mini/datasets/hub/hubtest"
)

var update = flag.Bool("update", false, "rewrite golden files")

// TestMain lets the tests of torn downloads start this program as a mini that
// is going to be killed.
func TestMain(m *testing.M) {
	if what := os.Getenv("HUB_TEST_CHILD"); what != "" {
		os.Exit(child(what))
	}
	goleak.VerifyTestMain(m)
}

const repo = "org/name"

// content is the same bytes for the same name, and like no others.
func content(name string, n int) []byte {
	r := rand.NewChaCha8([32]byte([]byte(fmt.Sprintf("%-32.32s", name))))
	data := make([]byte, n)
	_, _ = r.Read(data)
	return data
}

const (
	shard0 = "data/test-00000-of-00002.parquet"
	shard1 = "data/test-00001-of-00002.parquet"
	devOne = "data/dev-00000-of-00001.parquet"
)

// files is a repository with two splits, and what else lies in repositories.
func files() map[string][]byte {
	return map[string][]byte{
		shard0: content("shard0", 300_000), shard1: content("shard1", 200_001), devOne: content("dev", 50_000),
		"README.md":          []byte("---\nconfigs:\n- config_name: default\n  data_files:\n  - split: test\n    path: data/test-*\n  - split: dev\n    path: data/dev-*\n---\n# Rows\n"),
		"dataset_infos.json": []byte("{}"), ".gitattributes": []byte("*.parquet lfs"),
	}
}

func server(t *testing.T) *hubtest.Server {
	t.Helper()
	s := hubtest.New(t)
	s.Add(repo, hubtest.Commit(1), files())
	return s
}

// open makes a Hub with short pauses.
func open(t *testing.T, c hub.Config) *hub.Hub {
	t.Helper()
	if c.Dir == "" {
		c.Dir = t.TempDir()
	}
	h, err := hub.New(c)
	if err != nil {
		t.Fatal(err)
	}
	h.Hasten()
	t.Cleanup(h.Close)
	return h
}

func fetch(t *testing.T, h *hub.Hub, ref hub.Ref) hub.Snapshot {
	t.Helper()
	e, err := h.Fetch(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// same compares an edition's files with what the server has.
func same(t *testing.T, e hub.Snapshot, want map[string][]byte) {
	t.Helper()
	if err := compare(e, want); err != nil {
		t.Error(err)
	}
}

func compare(e hub.Snapshot, want map[string][]byte) error {
	for _, f := range e.Files {
		got, err := os.ReadFile(f.Path)
		if err != nil {
			return err
		}
		if !bytes.Equal(got, want[f.Name]) || int64(len(got)) != f.Size {
			return fmt.Errorf("%s: %d bytes, which are not the right %d", f.Name, len(got), len(want[f.Name]))
		}
	}
	if len(e.Files) == 0 {
		return errors.New("no files")
	}
	return nil
}

// leftovers are the files of a cache that no edition needs.
func leftovers(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && (strings.HasSuffix(path, ".partial") || strings.HasPrefix(d.Name(), ".")) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
