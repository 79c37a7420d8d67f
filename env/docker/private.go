package docker

import (
	"bytes"
	"context"
	"fmt"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
)

// Containers whose commands can mount (see canMount) share nothing with others,
// nor with this machine: that a mount is read-only does not hold them. Through
// the shared volume they would change the program that every other sandbox
// begins with, and through the folder of a shortcut leave files on this
// machine. They get a helper of their own, and no shortcut.

// privateMount is a volume without a name, which goes with its container. A
// copy among the container's own files would not do: those may be read-only,
// and are part of the image that a sandbox is kept as. It can be written, for
// else nothing could be copied to it.
func privateMount() mount.Mount { return helperMount("", false) }

// bring puts the helper into a container that was made with privateMount and
// does not run yet.
func (e *Engine) bring(ctx context.Context, name string, b program) error {
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
