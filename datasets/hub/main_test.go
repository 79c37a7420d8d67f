package hub_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/minibench/mini/datasets/hub"
	"github.com/minibench/mini/datasets/hub/hubtest"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const repo = "org/name"

// content returns n bytes that depend on the name only.
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

// files returns the files of a repository with two splits, including some without rows.
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

// open returns a Hub with short delays between tries.
func open(t *testing.T, c hub.Config) *hub.Hub {
	t.Helper()
	if c.Dir == "" {
		c.Dir = t.TempDir()
	}
	h, err := hub.New(c)
	require.NoError(t, err)
	h.Hasten()
	t.Cleanup(h.Close)
	return h
}

func fetch(t *testing.T, h *hub.Hub, ref hub.Ref) hub.Snapshot {
	t.Helper()
	e, err := h.Fetch(t.Context(), ref)
	require.NoError(t, err)
	return e
}

// checkFiles checks that a snapshot has the files that the server has.
func checkFiles(t *testing.T, e hub.Snapshot, want map[string][]byte) {
	t.Helper()
	assert.NoError(t, compare(e, want))
}

func compare(e hub.Snapshot, want map[string][]byte) error {
	for _, f := range e.Files {
		got, err := os.ReadFile(f.Path)
		if err != nil {
			return err
		}
		if !bytes.Equal(got, want[f.Name]) || int64(len(got)) != f.Size {
			return fmt.Errorf("%s: %d wrong bytes, want %d", f.Name, len(got), len(want[f.Name]))
		}
	}
	if len(e.Files) == 0 {
		return errors.New("no files")
	}
	return nil
}

// leftovers returns the incomplete and temporary files in a cache.
func leftovers(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && (strings.HasSuffix(path, ".incomplete") || strings.HasPrefix(d.Name(), ".") && d.Name() != ".locks" && d.Name() != ".mini-files.json") {
			found = append(found, path)
		}
		return err
	}))
	return found
}
