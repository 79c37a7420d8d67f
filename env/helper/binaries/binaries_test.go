package binaries_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minibench/mini/env/helper/binaries"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

func TestLoadFromDir(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, binaries.Name("amd64")), []byte("abc"), 0o600))

	b, hash, err := binaries.Load(dir, "amd64")
	require.NoError(t, err)
	const sumOfABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	if string(b) != "abc" || hash != sumOfABC {
		t.Errorf("Load = %q, %s; want abc, %s", b, hash, sumOfABC)
	}

	if got, err := binaries.Hash(dir, "amd64"); err != nil || got != sumOfABC {
		t.Errorf("without a checksum file: %q, %v", got, err)
	}
	recorded := strings.Repeat("7", 64)
	require.NoError(t, os.WriteFile(filepath.Join(dir, binaries.Name("amd64")+".sha256"), []byte(recorded+"  mini-helper\n"), 0o600))
	if got, err := binaries.Hash(dir, "amd64"); err != nil || got != recorded {
		t.Errorf("with a checksum file: %q, %v", got, err)
	}

	_, _, err = binaries.Load(dir, "arm64")
	assert.ErrorIs(t, err, binaries.ErrNotBuilt, "missing binary")
	if _, _, err := binaries.Load(dir, "../amd64"); err == nil || errors.Is(err, binaries.ErrNotBuilt) {
		t.Errorf("unknown architecture: err = %v, want one that names it", err)
	}
}

// TestLoadEmbedded must pass with and without binaries, because a fresh clone has none.
func TestLoadEmbedded(t *testing.T) {
	for _, arch := range []string{"amd64", "arm64"} {
		b, hash, err := binaries.Load("", arch)
		switch {
		case err == nil && (string(b[:4]) != "\x7fELF" || len(hash) != 64):
			t.Errorf("Load(%s) = %q..., %q; want an ELF file and its hash", arch, b[:4], hash)
		case err != nil && !errors.Is(err, binaries.ErrNotBuilt):
			t.Errorf("Load(%s): %v, want ErrNotBuilt", arch, err)
		}
	}
}
