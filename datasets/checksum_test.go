package datasets_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/minibench/mini/datasets"
)

// Load reports a file that changed after its download as damaged, even if its rows
// can still be read.
func TestDamaged(t *testing.T) {
	two := line("a") + line("b")
	for name, tt := range map[string]struct {
		data []byte
		flip func([]byte)
	}{
		"a letter of a row":      {[]byte(two), func(b []byte) { b[len(b)-4] = 'q' }},
		"a quote":                {[]byte(two), func(b []byte) { b[1] = 'q' }},
		"an id, now there twice": {[]byte(two), func(b []byte) { b[bytes.IndexByte(b, 'b')] = 'a' }},
		"behind the rows":        {[]byte("[" + line("a") + "]\n\n"), func(b []byte) { b[len(b)-1] = ' ' }},
		"gzip":                   {[]byte(zipped(t, two)), func(b []byte) { b[len(b)/2] ^= 1 }},
		"the start of parquet":   {table(t, plainRows(2)), func(b []byte) { b[0] = 'X' }},
		"the end of parquet":     {table(t, plainRows(2)), func(b []byte) { b[len(b)-1] = 'X' }},
		"within parquet":         {table(t, plainRows(2)), func(b []byte) { b[len(b)/3] ^= 0x10 }},
	} {
		t.Run(name, func(t *testing.T) {
			sum := sha256.Sum256(tt.data)
			path := filepath.Join(t.TempDir(), "0a1b")
			src := datasets.Source{
				Name: "set", Files: []string{path}, Names: []string{"data/test"},
				SHA256: []string{hex.EncodeToString(sum[:])}, FetchCommand: "mini mend set",
			}
			load := func(data []byte) error {
				if err := os.WriteFile(path, data, 0o600); err != nil {
					t.Fatal(err)
				}
				_, err := datasets.Load(t.Context(), []datasets.Source{src}, datasets.Selection{})
				return err
			}
			if err := load(tt.data); err != nil {
				t.Errorf("undamaged: %v", err)
			}
			damaged := bytes.Clone(tt.data)
			tt.flip(damaged)
			err := load(damaged)
			if want := "set/data/test: damaged in the cache; run mini mend set"; !errors.Is(err, datasets.ErrData) || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

// IDs and Rows do not verify checksums; they report damage only if a row is invalid.
func TestDamagedRows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0a1b")
	if err := os.WriteFile(path, []byte(line("a")+"{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for sum, want := range map[string]string{
		"":   path + ": row 2: not JSON (byte 1): unexpected end of JSON input",
		"00": path + ": damaged in the cache",
	} {
		src := datasets.Source{Name: "set", Files: []string{path}, SHA256: []string{sum}}
		if _, err := datasets.IDs(t.Context(), src); err == nil || err.Error() != want {
			t.Errorf("ids: got %v, want %s", err, want)
		}
		for _, err := range datasets.Rows(t.Context(), src, func(id string) bool { return id != "a" }) {
			if err == nil || err.Error() != want {
				t.Errorf("rows: got %v, want %s", err, want)
			}
		}
	}
}
