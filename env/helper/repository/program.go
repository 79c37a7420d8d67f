// Package repository is the program that works on a git repository inside a sandbox: it
// takes the state of the files at the start, diffs against it, checks patches, and scrubs
// a repository. The helper starts it as a child process when a command names it as its
// interpreter (see env.RepositoryProgram); the command's script is the request. It needs
// git and nothing else of the sandbox, not even a shell.
//
// Git does what only git can do. The walking of folders, sizes, limits and the reading
// of git's output are in Go.
//
// Besides packages of mini, the package imports the standard library only, because it is
// part of the helper.
package repository

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// Marker is the first line of the output, a submission marker, so that the sandbox does
// not truncate a patch.
const Marker = "MINI_REPOSITORY"

// Errors that have a kind of their own.
var (
	errNoSpace  = errors.New("no room")
	errNoPlace  = fmt.Errorf("%w for a temporary folder", errNoSpace) // on any disk
	errTooLarge = errors.New("the change is too large for a patch")
	errTime     = errors.New("git did not end within")
)

// refusal is an error that another try cannot change.
type refusal string

func (r refusal) Error() string { return string(r) }

const errUnreadable = refusal("git cannot read the repository")

// Main reads a request from standard input, does the work and writes the response to
// standard output. It returns the exit code.
func Main() int {
	runtime.GOMAXPROCS(2) // it mostly waits for git
	for fd := KeepFD; fd <= KeepFD+keptFiles(); fd++ {
		syscall.CloseOnExec(fd)
	}
	data, err := io.ReadAll(os.Stdin)
	var req Request
	if err == nil {
		req, err = Decode[Request](data)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "read request:", err)
		return 1
	}
	res, err := serve(req)
	if m, ok := errors.AsType[missing](err); ok {
		res, err = Response{Missing: string(m)}, nil
	}
	if err != nil {
		res = Response{Failure: kindOf(err), Error: err.Error()}
	}
	out, err := Encode(res)
	if err == nil {
		_, err = os.Stdout.Write(append([]byte(Marker+"\n"), out...))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "write response:", err)
		return 1
	}
	return 0
}

func kindOf(err error) Failure {
	_, refused := errors.AsType[refusal](err)
	switch {
	case errors.Is(err, errNoSpace), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return FailedSpace
	case errors.Is(err, errTooLarge):
		return FailedSize
	case errors.Is(err, errTime):
		return FailedTime
	case refused, errors.Is(err, errCommitGone):
		return FailedRefused
	}
	return FailedOther
}

func serve(req Request) (Response, error) {
	ctx, cancel := withLimit(context.Background(), req.Time)
	defer cancel()
	switch req.Op {
	case Open:
		return open(ctx, req)
	case Scrub, Prepare:
		return scrub(ctx, req)
	case Clean:
		places := tempPlaces("", false)
		if req.Repository != nil {
			places = tempPlaces(string(req.Repository.CommonDir), true)
		}
		removeTemp(places, req.Tag)
		return Response{}, nil
	case Diff, Hash, Check:
		if req.Repository != nil && req.Start != nil {
			break
		}
		fallthrough
	default:
		return Response{}, errMessage
	}
	syscall.Umask(0o077)
	ctx, stop := Watch(ctx, string(req.Repository.Top))
	defer stop()
	if req.Op == Check {
		var res Response
		err := withRoom(func(room int64) error {
			return inShadow(ctx, req, room, func(ctx context.Context, s *shadow) (err error) {
				res, err = s.check(ctx, req.Patch)
				return err
			})
		})
		return res, err
	}
	return tryLimits(ctx, req, req.MaxPatch, func(ctx context.Context, s *shadow, most sizes) (Response, error) {
		f, err := s.takeFiles(ctx, most)
		if err != nil {
			return Response{}, err
		}
		res := Response{Tree: f.tree, Exact: true, OmittedCount: len(f.omitted), Omitted: f.omitted[:min(len(f.omitted), MaxOmitted)]}
		if req.Op == Hash || f.tree == s.base {
			return res, nil
		}
		if res.Patch, err = s.patch(ctx, s.base, f.tree, req.MaxPatch); err != nil || len(res.Patch) == 0 {
			return res, err
		}
		err = s.verify(ctx, res.Patch, f)
		if r, ok := errors.AsType[rejection](err); ok {
			res.Exact, res.Problem, err = false, string(r), nil
		}
		return res, err
	})
}

// MaxOmitted bounds Response.Omitted.
const MaxOmitted = 20

// open finds the repository, and takes the state of its files or checks that the state of
// the request can be restored.
func open(ctx context.Context, req Request) (Response, error) {
	f, err := find(ctx, req)
	if err != nil {
		return Response{}, err
	}
	if err := f.readSettings(ctx, req.Contained); err != nil {
		return Response{}, err
	}
	syscall.Umask(0o077)
	ctx, stop := Watch(ctx, f.top)
	defer stop()
	req.Repository = &f.Repository
	res := Response{Repository: &f.Repository}
	if req.Start != nil {
		err := withRoom(func(room int64) error {
			return inShadow(ctx, req, room, func(ctx context.Context, s *shadow) error {
				if s.do(ctx, nil, "cat-file", "-e", s.base) != nil && context.Cause(ctx) == nil {
					return errCommitGone
				}
				return s.keep()
			})
		})
		return res, err
	}
	state := State{Base: f.head}
	if f.head == "" {
		if state.Base, err = f.emptyTree(ctx); err != nil {
			return Response{}, err
		}
		f.headTree = state.Base
	}
	req.Start, req.baseTree = &state, f.headTree
	return tryLimits(ctx, req, MaxStatePatch, func(ctx context.Context, s *shadow, most sizes) (Response, error) {
		taken, err := s.takeState(ctx, most)
		if err != nil {
			return Response{}, err
		}
		taken.Base = state.Base
		return Response{Repository: &f.Repository, State: &taken}, s.keep()
	})
}

// limitSteps are tried in order until the patch is small enough: new files (environments,
// build products, dumps) are left out before changed ones, and large files before small
// ones. They are multiples of the maximum size of a patch.
var limitSteps = []struct{ newFile, changedFile float64 }{{1, 20}, {0.25, 1}, {1. / 64, 0.25}, {0, 1. / 64}}

// tryLimits calls take with each of limitSteps until it succeeds or fails for another
// reason than size or time. The error prefers size to time.
func tryLimits(ctx context.Context, req Request, maxPatch int, take func(context.Context, *shadow, sizes) (Response, error)) (res Response, finalErr error) {
	for _, step := range limitSteps {
		most := sizes{int64(float64(maxPatch) * step.newFile), int64(float64(maxPatch) * step.changedFile)}
		err := withRoom(func(room int64) error {
			tryCtx, cancel := withLimit(ctx, tryTime(ctx, req.Op))
			defer cancel()
			return inShadow(tryCtx, req, room, func(ctx context.Context, s *shadow) (err error) {
				res, err = take(ctx, s, most)
				return err
			})
		})
		if err == nil || ctx.Err() != nil || !errors.Is(err, errTooLarge) && !errors.Is(err, errTime) || req.Op == Hash {
			return res, err
		}
		if finalErr == nil || errors.Is(err, errTooLarge) {
			finalErr = err
		}
	}
	return res, finalErr
}

// maxTryTime bounds one try.
const maxTryTime = 100 * time.Second

// tryTime returns the time of one try: at most half of what is left, so that there is
// time for another one, unless there is only one.
func tryTime(ctx context.Context, op Op) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return maxTryTime
	}
	left := time.Until(deadline)
	if op != Hash {
		left /= 2
	}
	return max(min(maxTryTime, left), time.Millisecond)
}

// withRoom calls do with the free space to require, in KiB, and again with more if the
// first was not enough.
func withRoom(do func(room int64) error) error {
	err := do(32 << 10)
	if full := errors.Is(err, errNoSpace) || errors.Is(err, syscall.ENOSPC); full && !errors.Is(err, errNoPlace) {
		err = do(2 << 20)
	}
	return err
}

// inShadow calls do with the shadow of the repository, and removes it.
func inShadow(ctx context.Context, req Request, room int64, do func(context.Context, *shadow) error) error {
	req.room = room
	s, err := newShadow(ctx, req)
	if err != nil {
		return err
	}
	return errors.Join(do(ctx, s), s.close())
}

// withLimit limits the time of ctx. Its cause is then errTime.
func withLimit(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w %v", errTime, limit.Round(time.Second)))
}

// Watch cancels the context if a file of the working tree that git reads is a pipe, for
// which git would wait. It looks for one when the work takes unusually long. The caller
// must call the returned function.
func Watch(ctx context.Context, top string) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(watchDelay, func() {
		_ = filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
			if ctx.Err() != nil {
				return fs.SkipAll
			}
			if err != nil || entry.Name() != ".gitignore" && entry.Name() != ".gitattributes" {
				return nil //nolint:nilerr // what cannot be read is skipped
			}
			if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
				cancel(refusal(fmt.Sprintf("%s is a pipe or another special file, which git does not stop reading; remove it", path)))
				return fs.SkipAll
			}
			return nil
		})
	})
	return ctx, func() {
		timer.Stop()
		cancel(nil)
	}
}

const watchDelay = 3 * time.Second
