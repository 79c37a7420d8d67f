package harborrun

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"

	"github.com/minibench/mini/datasets/harbor"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/internal/rootdir"
)

const (
	defaultBuildTimeout = 600 * time.Second
	// maxBuildLog bounds the log of a build, in bytes; the rest is dropped.
	maxBuildLog = 32 << 20
	// labelBases is the label with the images that took the place of those of FROM.
	labelBases = "mini.bases"
	// maxDockerfile bounds a Dockerfile and a .dockerignore, in bytes.
	maxDockerfile = 1 << 20
)

// Images builds the images of tasks and those with an agent's program: one build for each image, however many attempts wait.
type Images struct {
	Engine *docker.Engine
	// Bases maps the images of FROM to others; "*" has a prefix for those that the engine
	// does not have.
	Bases map[string]string
	// Root and Dir are the run folder and the folder of the logs in it.
	Root *rootdir.Dir
	Dir  string
}

// Ensure builds an image from a folder with a Dockerfile unless the engine has it.
func (i *Images) Ensure(ctx context.Context, tag, dir string, e harbor.Environment) error {
	return i.Engine.EnsureBuilt(ctx, tag, func(ctx context.Context) error { return i.ensure(ctx, tag, dir, e) })
}

func (i *Images) ensure(ctx context.Context, tag, dir string, e harbor.Environment) error {
	failed := func(err error) error {
		return &env.Error{Status: env.ImageBuildFailed, Op: "build image " + tag + " from " + dir, Err: err}
	}
	root, err := rootdir.Open(dir)
	if err != nil {
		return failed(err)
	}
	defer root.Close() //nolint:errcheck // only read
	dockerfile, err := root.ReadFile(filepath.Join(dir, "Dockerfile"), maxDockerfile)
	if err != nil {
		return failed(err)
	}
	dockerfile, bases, err := i.replaceBases(ctx, dockerfile)
	if err != nil {
		return err
	}
	found, err := i.Engine.Inspect(ctx, tag)
	if err != nil || found != nil && found.Labels[labelBases] == bases {
		return err
	}
	ignored, err := readIgnored(root, dir)
	if err != nil {
		return failed(err)
	}
	return i.build(ctx, docker.Build{
		Tag: tag, MemoryBytes: max(e.Memory(), docker.DefaultMemoryBytes),
		Labels: map[string]string{labelBases: bases, "mini.task": "1"},
	}, seconds(e.BuildTimeout, defaultBuildTimeout), "environment.build_timeout_sec", func(w io.Writer) error {
		return writeContext(w, dir, dockerfile, ignored)
	})
}

// build builds an image from the context that write writes, and stores the log. limit is the
// name of the timeout.
func (i *Images) build(ctx context.Context, b docker.Build, timeout time.Duration, limit string, write func(io.Writer) error) error {
	failed := func(err error) error {
		return &env.Error{Status: env.ImageBuildFailed, Op: "build image " + b.Tag, Err: err}
	}
	logFile := filepath.Join(i.Dir, strings.ReplaceAll(b.Tag, "/", "_")+".log")
	if err := i.Root.MkdirAll(i.Dir); err != nil {
		return failed(err)
	}
	f, err := i.Root.OpenFile(logFile, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return failed(err)
	}
	defer f.Close() //nolint:errcheck // the log is a help, not a result
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("it takes longer than %s, %s", limit, timeout))
	defer cancel()
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() { // ends when r is closed
		defer close(done)
		w.CloseWithError(write(w))
	}()
	b.Context, b.Log = r, &limitedLog{w: f, left: maxBuildLog}
	err = i.Engine.Build(ctx, b)
	r.Close() //nolint:errcheck // never fails
	<-done
	if built, ok := errors.AsType[*env.Error](err); ok {
		built.Hint = "see " + logFile
	}
	return err
}

// writeContext writes the build context: the files of dir, without the ignored ones, and the
// Dockerfile.
func writeContext(w io.Writer, dir string, dockerfile []byte, ignored *patternmatcher.PatternMatcher) error {
	out := tar.NewWriter(w)
	if err := writeDockerfile(out, dockerfile); err != nil {
		return err
	}
	err := harbor.Walk(dir, func(h *tar.Header, content io.Reader) error {
		if h.Name == "Dockerfile" || h.Name == ".dockerignore" {
			return nil
		}
		if skip, err := ignored.MatchesOrParentMatches(h.Name); skip || err != nil {
			return err
		}
		if err := out.WriteHeader(h); err != nil {
			return err
		}
		_, err := io.Copy(out, content)
		return err
	})
	return errors.Join(err, out.Close())
}

func writeDockerfile(out *tar.Writer, dockerfile []byte) error {
	err := out.WriteHeader(&tar.Header{Name: "Dockerfile", Mode: 0o644, Size: int64(len(dockerfile))})
	if err == nil {
		_, err = out.Write(dockerfile)
	}
	return err
}

func readIgnored(root *rootdir.Dir, dir string) (*patternmatcher.PatternMatcher, error) {
	text, err := root.ReadFile(filepath.Join(dir, ".dockerignore"), maxDockerfile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	patterns, err := ignorefile.ReadAll(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf(".dockerignore: %w", err)
	}
	return patternmatcher.New(patterns)
}

// from matches an instruction FROM with its flags, its image and its name.
var from = regexp.MustCompile(`(?i)^(\s*FROM\s+(?:--\S+\s+)*)(\S+)((?:\s+AS\s+(\S+))?\s*)$`)

// replaceBases replaces the images of FROM that have another in Bases. replaced lists them.
func (i *Images) replaceBases(ctx context.Context, dockerfile []byte) (text []byte, replaced string, err error) {
	stages := map[string]bool{"scratch": true}
	var out bytes.Buffer
	lines := bufio.NewScanner(bytes.NewReader(dockerfile))
	lines.Buffer(nil, maxDockerfile+1)
	for lines.Scan() {
		line := lines.Text()
		if m := from.FindStringSubmatch(line); m != nil && len(i.Bases) > 0 {
			base := m[2]
			if !stages[strings.ToLower(base)] {
				if base, err = i.base(ctx, base); err != nil {
					return nil, "", err
				}
			}
			if base != m[2] {
				replaced += m[2] + "=" + base + " "
			}
			line = m[1] + base + m[3]
			stages[strings.ToLower(m[4])] = true
		}
		out.WriteString(line + "\n")
	}
	return out.Bytes(), strings.TrimSpace(replaced), lines.Err()
}

func (i *Images) base(ctx context.Context, name string) (string, error) {
	if other, ok := i.Bases[name]; ok {
		return other, nil
	}
	prefix, ok := i.Bases["*"]
	if !ok {
		return name, nil
	}
	found, err := i.Engine.Inspect(ctx, name)
	if err != nil || found != nil {
		return name, err
	}
	return path.Join(prefix, name), nil
}

// limitedLog writes the first bytes of a log and drops the others.
type limitedLog struct {
	w    io.Writer
	left int
}

// Write implements io.Writer.
func (l *limitedLog) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.left -= n
	if n > 0 {
		if _, err := l.w.Write(p[:n]); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// seconds returns a duration of n seconds, or the default if n is 0.
func seconds(n float64, byDefault time.Duration) time.Duration {
	if n == 0 {
		return byDefault
	}
	return time.Duration(n * float64(time.Second))
}
