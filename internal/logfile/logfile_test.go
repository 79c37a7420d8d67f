package logfile_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/logfile"
	"github.com/minibench/mini/internal/require"
)

func compressed(t testing.TB, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

func write(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path
}

// claim sets the size that a gzip file declares.
func claim(data []byte, size uint32) []byte {
	binary.LittleEndian.PutUint32(data[len(data)-4:], size)
	return data
}

func TestRead(t *testing.T) {
	long := strings.Repeat("a line of a log\n", 1000)
	for name, tt := range map[string]struct {
		file, want string
		data       []byte
	}{
		"plain":             {"log", long, []byte(long)},
		"empty":             {"log", "", nil},
		"packed":            {"log.gz", long, compressed(t, []byte(long))},
		"packed, empty":     {"log.gz", "", compressed(t, nil)},
		"packed, in parts":  {"log.gz", long + "end", append(compressed(t, []byte(long)), compressed(t, []byte("end"))...)},
		"a part, then none": {"log.gz", long, append(compressed(t, []byte(long)), compressed(t, nil)...)},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := logfile.Read(write(t, tt.file, tt.data), 1<<20)
			if err != nil || string(got) != tt.want {
				t.Errorf("%d bytes, error %v; want %d bytes", len(got), err, len(tt.want))
			}
		})
	}
}

func TestBadFiles(t *testing.T) {
	text := []byte(strings.Repeat("0123456789abcde\n", 1<<12)) // 64 KiB
	damaged := compressed(t, text)
	damaged[len(damaged)-6] ^= 1 // of the checksum
	for name, tt := range map[string]struct {
		file string
		data []byte
		want string
	}{
		"too long":         {"log", append(text, text...), "too long: more than 0 MiB"},
		"packed, too long": {"log.gz", compressed(t, append(text, text...)), "too long"},
		"small claim":      {"log.gz", claim(compressed(t, append(text, text...)), 10), "too long"},
		"false claim":      {"log.gz", claim(compressed(t, text), 10), "invalid checksum"},
		"damaged":          {"log.gz", damaged, "invalid checksum"},
		"cut off":          {"log.gz", compressed(t, text)[:100], "truncated"},
		"not packed":       {"log.gz", text, "not a gzip file"},
		"short":            {"log.gz", []byte("short"), "truncated"},
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, tt.file, tt.data)
			_, err := logfile.Read(path, 1<<16)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("error %v, want %q and the path", err, tt.want)
			}
			assert.Equal(t, strings.Contains(tt.want, "too long"), errors.Is(err, logfile.ErrTooLong), "ErrTooLong: in %v", err)
		})
	}
}

func TestNoFile(t *testing.T) {
	dir := t.TempDir()
	_, err := logfile.Read(dir, 1)
	assert.ErrorContains(t, err, "not a regular file", "a folder")
	_, err = logfile.Read(filepath.Join(dir, "none"), 1)
	assert.ErrorIs(t, err, fs.ErrNotExist, "nothing")
	loop := filepath.Join(dir, "loop")
	if err := os.Symlink(loop, loop); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	_, err = logfile.Read(loop, 1)
	assert.Error(t, err, "a link to itself")
}

// Read rejects a file that decompresses to a thousand times its size before it allocates
// memory for it.
func TestBomb(t *testing.T) {
	bomb := compressed(t, make([]byte, 64<<20))
	path := write(t, "log.gz", claim(bomb, 100))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := logfile.Read(path, 32<<20)
	runtime.ReadMemStats(&after)
	assert.ErrorIs(t, err, logfile.ErrTooLong)
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
		t.Errorf("%d bytes were allocated for it", took)
	}
}
