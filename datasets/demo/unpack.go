package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Unpack creates the repository of an instance in dir, which must be empty or missing. The
// repository is the same as in the instance's image: it has the set-up commit on top of the
// base commit, an older tag, and a branch with the fix. Unpack needs bash and git, and takes
// a fraction of a second.
//
// If it fails, dir may contain an incomplete repository.
func Unpack(ctx context.Context, id, dir string) (err error) {
	if err := checkInstance(id); err != nil {
		return err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("unpack %s: %w", id, err)
	}
	tmp, err := os.MkdirTemp("", "mini-demo-")
	if err != nil {
		return fmt.Errorf("unpack %s: %w", id, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	if err := os.CopyFS(tmp, recipes); err != nil {
		return fmt.Errorf("unpack %s: %w", id, err)
	}
	return build(ctx, id, tmp, dir)
}

// checkInstance returns an error if id is not the name of an instance.
func checkInstance(id string) error {
	if _, err := fs.Stat(recipes, path.Join("instances", id, "instance.json")); err != nil || strings.Contains(id, "/") {
		return fmt.Errorf("the demo set has no instance %q", id)
	}
	return nil
}

// build runs build.sh, which is in the directory recipe.
func build(ctx context.Context, id, recipe, dir string) error {
	cmd := exec.CommandContext(ctx, "bash", "build.sh", filepath.Join("instances", id), dir) //nolint:gosec // our own script; id was checked
	cmd.Dir = recipe
	// Do not run the user's startup file.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "BASH_ENV=") })
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("unpack %s: %w", id, context.Cause(ctx))
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("unpack %s: install bash and git: %w", id, err)
	}
	return fmt.Errorf("unpack %s: %w: %s", id, err, bytes.TrimSpace(out))
}
