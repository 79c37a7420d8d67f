package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/volume"

	"github.com/minibench/mini/env"
)

// fillTimeout limits the time to fill a volume, which takes a few megabytes over the
// connection to the engine.
const fillTimeout = 2 * time.Minute

// volumeName returns the name of the helper volume. The name depends on the helper's
// content, so that versions of mini can run side by side and never overwrite each other's
// volumes.
func (b helperBinary) volumeName() string {
	return fmt.Sprintf("mini-helper-%.16s-%s", b.hash, b.arch)
}

// ensureHelper fills the helper volume, once per engine and architecture. Filling it
// requires a container, and a container requires an image: ensureHelper uses imageID,
// which the engine already has.
func (e *Engine) ensureHelper(ctx context.Context, b helperBinary, imageID string) error {
	name := b.volumeName()
	if e.isFilled(name) {
		return nil
	}
	err := e.fills.Do(ctx, name, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, fillTimeout)
		defer cancel()
		return e.fillVolume(ctx, b, imageID)
	})
	if err != nil {
		return engineError(ctx, env.StartFailed, "fill helper volume "+name, err)
	}
	e.setFilled(name, true)
	return nil
}

func (e *Engine) isFilled(volume string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.filled[volume]
}

func (e *Engine) setFilled(volume string, filled bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.filled[volume] = filled
}

// fillVolume copies the helper to its volume through a container that is created
// but never started, which also works with a remote engine. The final name is a
// hard link and appears last. If the link exists, the file is complete, even if several
// processes fill the volume at the same time.
func (e *Engine) fillVolume(ctx context.Context, b helperBinary, imageID string) (err error) {
	name := b.volumeName()
	if _, err := e.api.VolumeCreate(ctx, volume.CreateOptions{Name: name, Labels: map[string]string{labelHelper: b.hash}}); err != nil {
		return fmt.Errorf("create volume: %w", err)
	}
	fillName := containerName("fill")
	defer func() {
		_, rmErr := e.remove(ctx, fillName, removeTimeout)
		err = errors.Join(err, rmErr)
	}()
	_, err = e.create(ctx, fillName, "",
		&container.Config{Image: imageID, Entrypoint: []string{helperPath}, Cmd: []string{}, Labels: e.labels(Config{})},
		&container.HostConfig{NetworkMode: "none", Mounts: []mount.Mount{helperMount(name, false)}})
	if err != nil {
		return fmt.Errorf("create container: %w", err)
	}
	if _, err := e.api.ContainerStatPath(ctx, fillName, helperPath); err == nil {
		return e.verifyVolume(ctx, fillName, b) // another process filled it
	} else if !errdefs.IsNotFound(err) {
		return fmt.Errorf("inspect volume: %w", err)
	}
	binary, err := b.content()
	if err != nil {
		return err
	}
	content, err := archive(binary)
	if err != nil {
		return err
	}
	return e.copyHelper(ctx, fillName, content)
}

// maxCopyAttempts limits the attempts of a copy that conflicts with those of other
// processes.
const maxCopyAttempts = 10

// copyHelper extracts an archive into a volume. If another process has created one of
// the names, copyHelper retries until helperPath exists, which that process creates
// last, with at most maxCopyAttempts attempts.
func (e *Engine) copyHelper(ctx context.Context, fillName string, content []byte) error {
	for attempt := 1; ; attempt++ {
		err := e.api.CopyToContainer(ctx, fillName, helperDir, bytes.NewReader(content), container.CopyToContainerOptions{})
		if err == nil {
			return nil
		}
		if attempt < maxCopyAttempts && strings.Contains(err.Error(), "file exists") {
			if _, statErr := e.api.ContainerStatPath(ctx, fillName, helperPath); statErr == nil {
				return nil
			}
			continue
		}
		return fmt.Errorf("copy helper: %w", err)
	}
}

// errWrongHelper reports a helper that does not match the hash in the volume's name.
var errWrongHelper = errors.New("the helper in the volume is not the one that mini put there")

// maxHelper limits how much of a helper is read, in bytes.
const maxHelper = 256 << 20

// verifyVolume checks the hash of the helper in a volume. Every user of the engine
// can write to its volumes.
func (e *Engine) verifyVolume(ctx context.Context, fillName string, b helperBinary) error {
	tree, _, err := e.api.CopyFromContainer(ctx, fillName, helperPath)
	if err != nil {
		return fmt.Errorf("inspect volume: %w", err)
	}
	defer tree.Close() //nolint:errcheck // only read
	r := tar.NewReader(io.LimitReader(tree, maxHelper))
	h := sha256.New()
	if _, err = r.Next(); err == nil {
		_, err = io.Copy(h, r) //nolint:gosec // G110: bounded above
	}
	if err != nil {
		return fmt.Errorf("inspect volume: %w", err)
	}
	if hex.EncodeToString(h.Sum(nil)) != b.hash {
		return &env.Error{Status: env.StartFailed, Op: "use helper volume " + b.volumeName(), Hint: hintHelper, Err: errWrongHelper}
	}
	return nil
}

// archive returns a tar file with the helper under a unique name, the directory of
// mini-tool and, last, a hard link from helperName to the helper. If the link
// exists, so do the other files.
func archive(content []byte) ([]byte, error) {
	var buf bytes.Buffer
	temporary := helperName + "-" + strings.ToLower(rand.Text())
	bin := path.Base(toolDir)
	w := tar.NewWriter(&buf)
	err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: temporary, Mode: 0o555, Size: int64(len(content))})
	if err == nil {
		_, err = w.Write(content)
	}
	for _, h := range []tar.Header{
		{Typeflag: tar.TypeDir, Name: bin + "/", Mode: 0o555},
		{Typeflag: tar.TypeSymlink, Name: bin + "/" + env.ToolProgram, Linkname: "../" + helperName, Mode: 0o777},
		{Typeflag: tar.TypeLink, Name: helperName, Linkname: temporary, Mode: 0o555},
	} {
		if err == nil {
			err = w.WriteHeader(&h)
		}
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, fmt.Errorf("make archive of helper: %w", err)
	}
	return buf.Bytes(), nil
}
