package imagestore_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker/imagestore"
)

// storeIn is a store over an engine, with the memory in dir.
func storeIn(t *testing.T, e imagestore.Engine, dir string, cfg imagestore.Config) *imagestore.Store {
	t.Helper()
	cfg.Dir = dir
	s, err := imagestore.New(e, imagestore.EngineInfo{
		ID: "small", Owner: "me", OwnerAlive: func(string) (alive, known bool) { return true, true },
	}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ledgerFile is where a store in dir remembers.
func ledgerFile(t *testing.T, dir string) string {
	t.Helper()
	_, release := ensure(t, storeIn(t, &small{room: 1}, dir, imagestore.Config{}), "first:1")
	release()
	files, err := filepath.Glob(dir + "/*.json")
	if err != nil || len(files) != 1 {
		t.Fatalf("files = %q, %v", files, err)
	}
	return files[0]
}

// What this machine cannot read or lock is no mistake of mini's or the attempt.
func TestTroubleWithTheMemoryIsTheSandboxes(t *testing.T) {
	for name, damage := range map[string]func(file string) error{
		"cannot be read":   func(f string) error { return errors.Join(os.Remove(f), os.Mkdir(f, 0o700)) },
		"cannot be locked": func(f string) error { return errors.Join(os.Remove(f+".lock"), os.Mkdir(f+".lock", 0o700)) },
		"damaged":          func(f string) error { return os.WriteFile(f, []byte(`{"format":"mini-ima`), 0o600) },
		"another version":  func(f string) error { return os.WriteFile(f, []byte(`{"format":"mini-images-2"}`), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := ledgerFile(t, dir)
			if err := damage(file); err != nil {
				t.Fatal(err)
			}
			_, _, err := storeIn(t, &small{room: 1}, dir, imagestore.Config{}).Ensure(t.Context(), imagestore.Request{Ref: "a:1"})
			e, ok := errors.AsType[*env.Error](err)
			if !ok || e.Status != env.StartFailed || !strings.Contains(e.Hint, file) {
				t.Errorf("err = %v", err)
			}
		})
	}
}

// interrupting is an engine in which something happens in mid-request.
type interrupting struct {
	*small
	stock func()
}

func (e *interrupting) DiskUsage(ctx context.Context) (imagestore.DiskUsage, error) {
	if f := e.stock; f != nil {
		e.stock = nil
		f()
	}
	return e.small.DiskUsage(ctx)
}

// While an engine measures, which may take minutes, others go on; and what they
// bring and need meanwhile is neither forgotten nor removed.
func TestMeasuringLocksNobodyOut(t *testing.T) {
	for name, measure := range map[string]func(ctx context.Context, s *imagestore.Store) error{
		"prune": func(ctx context.Context, s *imagestore.Store) error { _, err := s.Prune(ctx, nil, false); return err },
		"room": func(ctx context.Context, s *imagestore.Store) error {
			_, release, err := s.Ensure(ctx, imagestore.Request{Ref: "big:1"})
			if err == nil {
				release()
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			shared := &small{room: 9}
			e := &interrupting{small: shared}
			s := storeIn(t, e, dir, imagestore.Config{Budget: 150})
			_, release := ensure(t, s, "old:1")
			release()
			other := storeIn(t, shared, dir, imagestore.Config{})
			other.Rename("another")
			e.stock = func() {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				for _, ref := range []string{"old:1", "new:1"} {
					if _, _, err := other.Ensure(ctx, imagestore.Request{Ref: ref}); err != nil { // and keeps it
						t.Errorf("%s: %v", ref, err)
					}
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			_ = measure(ctx, s) // it may find no room: the other needs it all
			for _, ref := range []string{"old:1", "new:1"} {
				if _, here, _ := shared.Find(t.Context(), ref, ""); !here || !strings.Contains(memory(t, dir), `"`+ref+`": {`) {
					t.Errorf("%s is here: %t, remembered: %s", ref, here, memory(t, dir))
				}
			}
		})
	}
}
