package atomicfile_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/atomicfile"
	"github.com/minibench/mini/internal/require"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, text := range []string{"old", "new"} {
		require.NoError(t, atomicfile.Write(path, []byte(text), 0o600))
	}
	broken := errors.New("broken")
	err := atomicfile.WriteFunc(path, 0o600, func(w io.Writer) error {
		_, _ = io.WriteString(w, "a part")
		return broken
	})
	assert.ErrorIs(t, err, broken, "WriteFunc")
	if got, err := os.ReadFile(path); err != nil || string(got) != "new" {
		t.Errorf("the file has %q, %v", got, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("permissions: %v, %v", info, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("files left in the folder: %v, %v", entries, err)
	}
}
