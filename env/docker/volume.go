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

// fillTimeout bounds the filling of a volume: a few megabytes over whatever
// leads to the engine.
const fillTimeout = 2 * time.Minute

// volumeName is a name of the content, so that nothing in a volume is ever
// overwritten and several versions of mini live side by side.
func (b program) volumeName() string {
	return fmt.Sprintf("mini-helper-%.16s-%s", b.hash, b.arch)
}

// ensureHelper makes sure, once per engine and architecture, that the helper's
// volume holds the helper. The image is only there because a container cannot
// be created without one; any will do, and the one about to be started is
// here already, so that no image of mini's own has to be made and kept.
func (e *Engine) ensureHelper(ctx context.Context, b program, imageID string) error {
	name := b.volumeName()
	if e.isFilled(name) {
		return nil
	}
	err := e.fills.Do(ctx, name, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, fillTimeout)
		defer cancel()
		return e.fill(ctx, b, imageID)
	})
	if err != nil {
		return failure(ctx, env.StartFailed, "fill helper volume "+name, err)
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

// fill puts the helper into its volume through a container that is created and
// never started: this works with remote engines too. The final name appears
// last and at once, as a hard link, so that its existence says that the file
// is complete however many processes fill the volume at the same time.
func (e *Engine) fill(ctx context.Context, b program, imageID string) (err error) {
	name := b.volumeName()
	if _, err := e.api.VolumeCreate(ctx, volume.CreateOptions{Name: name, Labels: map[string]string{labelHelper: b.hash}}); err != nil {
		return fmt.Errorf("create volume: %w", err)
	}
	carrier := containerName("fill")
	defer func() {
		if _, left := e.remove(ctx, carrier, removeTimeout); left != nil {
			e.owe(carrier)
			err = errors.Join(err, left)
		}
	}()
	_, err = e.create(ctx, carrier, "",
		&container.Config{Image: imageID, Entrypoint: []string{helperPath}, Cmd: []string{}, Labels: e.labels(Config{})},
		&container.HostConfig{NetworkMode: "none", Mounts: []mount.Mount{helperMount(name, false)}})
	if err != nil {
		return fmt.Errorf("create container: %w", err)
	}
	if _, err := e.api.ContainerStatPath(ctx, carrier, helperPath); err == nil {
		return e.examine(ctx, carrier, b) // another process was here before
	} else if !errdefs.IsNotFound(err) {
		return fmt.Errorf("look into volume: %w", err)
	}
	program, err := b.content()
	if err != nil {
		return err
	}
	content, err := archive(program)
	if err != nil {
		return err
	}
	return e.copyHelper(ctx, carrier, content)
}

// copyTries is how often the copying of a helper begins again when others do the
// same and are in its way.
const copyTries = 10

// copyHelper puts an archive into a volume. Where another process was quicker
// with one of its names, the last name says whether that one has come to its
// end.
func (e *Engine) copyHelper(ctx context.Context, carrier string, content []byte) error {
	for try := 1; ; try++ {
		err := e.api.CopyToContainer(ctx, carrier, helperDir, bytes.NewReader(content), container.CopyToContainerOptions{})
		if err == nil {
			return nil
		}
		if try < copyTries && strings.Contains(err.Error(), "file exists") {
			if _, there := e.api.ContainerStatPath(ctx, carrier, helperPath); there == nil {
				return nil
			}
			continue
		}
		return fmt.Errorf("copy helper: %w", err)
	}
}

// errSpoilt says that a volume has another helper than its name says.
var errSpoilt = errors.New("the helper in the volume is not the one that mini put there")

// maxHelper bounds what is read of a helper, in bytes.
const maxHelper = 64 << 20

// examine holds the helper in a volume against its hash: whoever has the engine
// can write to its volumes, and sandboxes could not tell.
func (e *Engine) examine(ctx context.Context, carrier string, b program) error {
	tree, _, err := e.api.CopyFromContainer(ctx, carrier, helperPath)
	if err != nil {
		return fmt.Errorf("look into volume: %w", err)
	}
	defer tree.Close() //nolint:errcheck // only read
	r := tar.NewReader(io.LimitReader(tree, maxHelper))
	h := sha256.New()
	if _, err = r.Next(); err == nil {
		_, err = io.Copy(h, r) //nolint:gosec // G110: bounded above
	}
	if err != nil {
		return fmt.Errorf("look into volume: %w", err)
	}
	if hex.EncodeToString(h.Sum(nil)) != b.hash {
		return &env.Error{Status: env.StartFailed, Op: "use helper volume " + b.volumeName(), Hint: hintHelper, Err: errSpoilt}
	}
	return nil
}

// archive is a tar of the helper under a name of its own, of the folder with
// mini-tool, and, last, of a hard link to the helper with the name by which it is
// started: where that is, the rest is too.
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
