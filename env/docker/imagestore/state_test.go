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

// storeIn returns a store for an engine, with its state file in dir.
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

// createStateFile creates the state file of a store in dir and returns its path.
func createStateFile(t *testing.T, dir string) string {
	t.Helper()
	_, release := ensure(t, storeIn(t, &smallEngine{maxImages: 1}, dir, imagestore.Config{}), "first:1")
	release()
	files, err := filepath.Glob(dir + "/*.json")
	if err != nil || len(files) != 1 {
		t.Fatalf("files = %q, %v", files, err)
	}
	return files[0]
}

// TestStateFileErrors: an unusable state file is an *env.Error with a hint, so that the
// attempt may be retried.
func TestStateFileErrors(t *testing.T) {
	for name, damage := range map[string]func(file string) error{
		"cannot be read":   func(f string) error { return errors.Join(os.Remove(f), os.Mkdir(f, 0o700)) },
		"cannot be locked": func(f string) error { return errors.Join(os.Remove(f+".lock"), os.Mkdir(f+".lock", 0o700)) },
		"damaged":          func(f string) error { return os.WriteFile(f, []byte(`{"format":"mini-ima`), 0o600) },
		"another version":  func(f string) error { return os.WriteFile(f, []byte(`{"format":"mini-images-2"}`), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := createStateFile(t, dir)
			if err := damage(file); err != nil {
				t.Fatal(err)
			}
			_, _, err := storeIn(t, &smallEngine{maxImages: 1}, dir, imagestore.Config{}).Ensure(t.Context(), imagestore.Request{Ref: "a:1"})
			e, ok := errors.AsType[*env.Error](err)
			if !ok || e.Status != env.StartFailed || !strings.Contains(e.Hint, file) {
				t.Errorf("err = %v", err)
			}
		})
	}
}

// hookedEngine is a smallEngine that calls a function during the next DiskUsage.
type hookedEngine struct {
	*smallEngine
	onDiskUsage func()
}

func (e *hookedEngine) DiskUsage(ctx context.Context) (imagestore.DiskUsage, error) {
	if f := e.onDiskUsage; f != nil {
		e.onDiskUsage = nil
		f()
	}
	return e.smallEngine.DiskUsage(ctx)
}

// TestMeasureWithoutLock: while an engine measures its images, which may take minutes,
// other processes can pull images. Those images are neither removed nor deleted from
// the state file.
func TestMeasureWithoutLock(t *testing.T) {
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
			shared := &smallEngine{maxImages: 9}
			e := &hookedEngine{smallEngine: shared}
			s := storeIn(t, e, dir, imagestore.Config{Budget: 150})
			_, release := ensure(t, s, "old:1")
			release()
			other := storeIn(t, shared, dir, imagestore.Config{})
			other.SetOwner("another")
			e.onDiskUsage = func() {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				for _, ref := range []string{"old:1", "new:1"} {
					if _, _, err := other.Ensure(ctx, imagestore.Request{Ref: ref}); err != nil { // without releasing it
						t.Errorf("%s: %v", ref, err)
					}
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			_ = measure(ctx, s) // it may fail, because the other store uses all images
			for _, ref := range []string{"old:1", "new:1"} {
				if _, ok, _ := shared.Find(t.Context(), ref, ""); !ok || !strings.Contains(stateText(t, dir), `"`+ref+`": {`) {
					t.Errorf("%s is present: %t, state: %s", ref, ok, stateText(t, dir))
				}
			}
		})
	}
}
