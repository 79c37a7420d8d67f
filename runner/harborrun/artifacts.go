package harborrun

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/minibench/mini/datasets/harbor"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/files"
)

// Bounds of each artifact.
const (
	maxArtifact      = 1 << 30 // bytes
	maxArtifactFiles = 100_000
)

// copiedArtifact is an artifact that was copied to this machine.
type copiedArtifact struct {
	source string // in the container
	path   string // on this machine
}

// copyArtifacts copies /logs/artifacts and the declared artifacts of a step to a folder. Links
// and special files are left out, since they would lead elsewhere at their next place.
// Artifacts that cannot be copied are warnings.
func (a *attempt) copyArtifacts(ctx context.Context, e env.Environment, s harbor.Step, dir string) (copied []copiedArtifact, warnings []string, err error) {
	from, ok := env.AsFiles(e)
	if !ok {
		return nil, nil, errors.New("the sandbox gives no files")
	}
	all := append([]harbor.Artifact{{Source: artifactsDir}}, a.task.Artifacts...)
	for _, artifact := range append(all, s.Artifacts...) {
		source := path.Clean(artifact.Source)
		target := strings.TrimPrefix(path.Dir(source), "/")
		if artifact.Destination != "" {
			target = path.Clean(artifact.Destination)
		}
		into := filepath.Join(dir, filepath.FromSlash(target))
		err := copyTree(ctx, from, source, a.Folder.Root.MkdirAll, into, artifact.Exclude)
		_, isEnv := errors.AsType[*env.Error](err)
		switch {
		case isEnv || ctx.Err() != nil:
			return copied, warnings, err
		case errors.Is(err, fs.ErrNotExist):
			if source != artifactsDir {
				warnings = append(warnings, "there is no artifact "+source)
			}
		case err != nil:
			warnings = append(warnings, fmt.Sprintf("the artifact %s was not copied: %v", source, err))
		default:
			copied = append(copied, copiedArtifact{source, filepath.Join(into, path.Base(source))})
		}
	}
	return copied, warnings, nil
}

// copyTree copies a file or folder of a container below the folder into.
func copyTree(ctx context.Context, from env.Files, source string, mkdir func(string) error, into string, exclude []string) error {
	if err := mkdir(into); err != nil {
		return err
	}
	return pipe(
		func(w io.Writer) error {
			return pipe(
				func(w io.Writer) error { return from.Get(ctx, source, &boundedWriter{w: w, left: maxArtifact}) },
				func(r io.Reader) error { return withoutLinks(r, w, exclude) },
			)
		},
		func(r io.Reader) error {
			return files.Unpack(r, into, files.Limits{Entries: maxArtifactFiles, Bytes: maxArtifact})
		},
	)
}

// withoutLinks copies the folders and regular files of a tar stream, without the excluded ones.
func withoutLinks(r io.Reader, w io.Writer, exclude []string) error {
	in, out := tar.NewReader(r), tar.NewWriter(w)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return out.Close()
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir || isExcluded(h.Name, exclude) {
			continue
		}
		if err := out.WriteHeader(h); err != nil {
			return err
		}
		if _, err := io.Copy(out, in); err != nil { //nolint:gosec // Get is bounded by maxArtifact
			return err
		}
	}
}

// isExcluded reports whether a pattern matches a part of the name.
func isExcluded(name string, patterns []string) bool {
	for part := range strings.SplitSeq(strings.Trim(name, "/"), "/") {
		for _, p := range patterns {
			if ok, _ := path.Match(strings.Trim(p, "/"), part); ok {
				return true
			}
		}
	}
	return false
}

// putArtifacts copies artifacts into another container, to the paths that they had.
func putArtifacts(ctx context.Context, e env.Environment, copied []copiedArtifact) error {
	for _, c := range copied {
		if err := putFolder(ctx, e, path.Dir(c.source), c.path); err != nil {
			return fmt.Errorf("copy artifact %s: %w", c.source, err)
		}
	}
	return nil
}
