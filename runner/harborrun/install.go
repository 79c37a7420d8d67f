package harborrun

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/imagestore"
	"github.com/minibench/mini/internal/lazyregexp"
)

// installTimeout bounds a script that installs an agent.
const installTimeout = 10 * time.Minute

// maxInstallError bounds the text of an error about a script, in bytes.
const maxInstallError = 300

// labelAgent is the label with the id of the image in which an agent was installed.
const labelAgent = "mini.agent.of"

// Installation adds an agent's program to images: its script runs once for each image.
type Installation struct {
	Images  *Images
	Script  string // for sh -e, as root
	Network string // of the script: "bridge" or "none"

	mu     sync.Mutex
	failed map[string]error // by tag
}

// Container returns c with the image that has the program, and builds that if the engine
// lacks it. The image is not removed until release is called.
func (n *Installation) Container(ctx context.Context, c docker.Config) (_ docker.Config, release func(), err error) {
	engine := n.Images.Engine
	store := engine.Images()
	base, releaseBase, err := store.Ensure(ctx, imagestore.Request{Ref: c.Image, Platform: c.Platform, Requester: c.Instance})
	if err != nil {
		return c, nil, err
	}
	defer releaseBase()
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", base.ID, n.Script))
	tag := "mini-agent-" + hex.EncodeToString(sum[:12])
	release, err = store.Lease(ctx, imagestore.Request{Ref: tag})
	if err != nil {
		return c, nil, err
	}
	err = engine.EnsureBuilt(ctx, tag, func(ctx context.Context) error { return n.ensure(ctx, tag, base.ID, c) })
	if err != nil {
		release()
		return c, nil, err
	}
	c.Image = tag
	return c, release, nil
}

// ensure builds the image unless the engine has it, or the script failed before.
func (n *Installation) ensure(ctx context.Context, tag, baseID string, c docker.Config) error {
	n.mu.Lock()
	err := n.failed[tag]
	n.mu.Unlock()
	if err != nil {
		return err
	}
	found, err := n.Images.Engine.Inspect(ctx, tag)
	if err != nil || found != nil {
		return err
	}
	base, err := n.Images.Engine.Inspect(ctx, baseID)
	if err != nil {
		return err
	}
	var dockerfile []byte
	if base == nil {
		err = fmt.Errorf("the engine has no image %s", c.Image)
	} else {
		dockerfile, err = installDockerfile(base, n.Script)
	}
	if err != nil {
		return &env.Error{Status: env.ImageBuildFailed, Op: "install the agent in image " + c.Image, Err: err}
	}
	err = n.Images.build(ctx, docker.Build{
		Tag: tag, Network: n.Network, MemoryBytes: max(c.MemoryBytes, docker.DefaultMemoryBytes), Labels: map[string]string{labelAgent: baseID},
	}, installTimeout, "the limit of install", func(w io.Writer) error {
		out := tar.NewWriter(w)
		return errors.Join(writeDockerfile(out, dockerfile), out.Close())
	})
	if built, ok := errors.AsType[*env.Error](err); ok && built.Status == env.ImageBuildFailed && ctx.Err() == nil {
		built.Op = "install the agent in image " + c.Image
		if text := built.Err.Error(); len(text) > maxInstallError { // the engine repeats the script
			built.Err = errors.New("..." + strings.ToValidUTF8(text[len(text)-maxInstallError:], ""))
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.failed == nil {
			n.failed = map[string]error{}
		}
		n.failed[tag] = err
	}
	if err != nil {
		return err
	}
	return n.Images.Engine.Images().AddBuilt(context.WithoutCancel(ctx), tag, c.Image)
}

// userName matches the users of images that a Dockerfile can name.
var userName = lazyregexp.New(`^[A-Za-z0-9_.:-]+$`)

// installDockerfile returns the Dockerfile that runs a script as root and keeps the user of
// the image.
func installDockerfile(base *docker.Image, script string) ([]byte, error) {
	words, err := json.Marshal([]string{"/bin/sh", "-ec", script})
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf("FROM %s\nUSER 0:0\nRUN %s\n", base.ID, words)
	if base.User == "" {
		return []byte(text), nil // root is the default, too
	}
	if !userName.MatchString(base.User) {
		return nil, fmt.Errorf("the image has the user %.60q, which a Dockerfile cannot name", base.User)
	}
	return []byte(text + "USER " + base.User + "\n"), nil
}
