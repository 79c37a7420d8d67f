package undo

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/minibench/mini/env/helper/repository"
)

// maxList bounds the list of files, in bytes.
const maxList = 8 << 20

// ListFiles returns the files below dir that git knows or does not ignore, relative to dir and
// sorted. A very long list is incomplete. git runs no programs of the repository, and without the
// hidden variables. The error wraps ErrNoRepository or ErrGitNotFound if that is the reason.
func ListFiles(ctx context.Context, dir string, hidden ...string) ([]string, error) {
	git, err := findGit()
	if err != nil {
		return nil, err
	}
	r, err := findRepository(ctx, git, dir, hidden)
	if err != nil {
		return nil, err
	}
	ctx, stop := repository.Watch(ctx, r.top)
	defer stop()
	out, err := runGit(ctx, git, gitCall{dir: dir, env: gitEnv(r.hiddenEnv), maxBytes: maxList},
		"-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if errors.Is(err, errTruncated) {
		out, err = out[:strings.LastIndexByte(string(out), 0)+1], nil
	}
	if err != nil {
		return nil, err
	}
	files := splitNul(out)
	slices.Sort(files)
	return slices.Compact(files), nil
}
