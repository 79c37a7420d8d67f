package docker

import (
	"bytes"
	"context"
	"fmt"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
)

// Commands with SYS_ADMIN (see canMount) can remount a read-only mount as writable.
// Through the shared volume they could change the helper of other sandboxes, and
// through the directory of a host socket write files on this machine. Such a
// container therefore gets its own copy of the helper and no host socket.

// privateHelperMount mounts an anonymous volume, which the engine removes with the
// container. The container's own file system is unsuitable: it may be read-only,
// and it is part of a kept image. The volume is writable, because
// copyPrivateHelper copies to it.
func privateHelperMount() mount.Mount { return helperMount("", false) }

// copyPrivateHelper copies the helper into a container with a privateHelperMount
// that has not started yet.
func (e *Engine) copyPrivateHelper(ctx context.Context, name string, b helperBinary) error {
	content, err := b.content()
	if err != nil {
		return err
	}
	tree, err := archive(content)
	if err != nil {
		return err
	}
	if err := e.api.CopyToContainer(ctx, name, helperDir, bytes.NewReader(tree), container.CopyToContainerOptions{}); err != nil {
		return fmt.Errorf("copy helper: %w", err)
	}
	return nil
}
