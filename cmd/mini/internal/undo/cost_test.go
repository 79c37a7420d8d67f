package undo_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/minibench/mini/cmd/mini/internal/undo"
)

// BenchmarkLarge is of a repository of 50,000 files, of which a few changed.
func BenchmarkLarge(b *testing.B) {
	dir := b.TempDir()
	sh(b, dir, `git init -q .; git config gc.auto 0; for d in $(seq 500); do mkdir -p p/$d; for f in $(seq 100); do echo $d $f > p/$d/$f; done; done; git add .; git commit -qm x; git gc -q; sleep 1; git status; echo x >> p/1/1`)
	store := filepath.Join(b.TempDir(), "store")
	b.Run("Take", func(b *testing.B) {
		for b.Loop() {
			if err := os.RemoveAll(store); err != nil {
				b.Fatal(err)
			}
			if _, err := undo.Take(b.Context(), dir, store); err != nil {
				b.Fatal(err)
			}
		}
	})
	s, err := undo.Open(store)
	if err != nil {
		b.Fatal(err)
	}
	sh(b, dir, "echo y >> p/2/2; rm -r p/3; echo n > p/new")
	b.Run("Diff", func(b *testing.B) {
		for b.Loop() {
			if d, err := s.Diff(b.Context()); err != nil || len(d.Files) != 102 {
				b.Fatal(err, len(d.Files))
			}
		}
	})
	b.Run("Restore", func(b *testing.B) {
		for b.Loop() {
			sh(b, dir, "echo y >> p/2/2; rm -rf p/3; echo n > p/new")
			if _, err := s.Restore(b.Context(), ""); err != nil {
				b.Fatal(err)
			}
		}
	})
}
