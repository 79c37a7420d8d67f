package docker

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/go-units"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/minibench/mini/env/helper"
	"github.com/minibench/mini/internal/lazyregexp"
)

// Paths of the helper inside a container.
const (
	helperDir  = "/.mini"
	helperName = "h"
	helperPath = helperDir + "/" + helperName
	// toolDir contains mini-tool, a symbolic link to the helper.
	toolDir = helperDir + "/bin"
)

// Labels of the objects that this package creates.
const (
	labelOwner    = "mini.owner"    // the process that created the object: see owner
	labelUser     = "mini.uid"      // the user id of that process
	labelRun      = "mini.run"      // Config.Run
	labelInstance = "mini.instance" // Config.Instance
	labelExpires  = "mini.expires"  // RFC 3339: until then Sweep keeps it if the owner is unknown
	labelHelper   = "mini.helper"   // of volumes: the SHA-256 of the helper
)

// expiry is longer than any attempt. It matters only for containers whose owner
// cannot be checked.
const expiry = 48 * time.Hour

// create creates a container and returns the engine's warnings. It does not pass
// on the cancellation of ctx: an engine may finish a cancelled request, and the
// container would appear after the cleanup.
func (e *Engine) create(ctx context.Context, name, os string, c *container.Config, h *container.HostConfig) ([]string, error) {
	resp, err := e.api.ContainerCreate(context.WithoutCancel(ctx), c, h, nil, platform(os), name)
	return resp.Warnings, err
}

// containerConfig returns the container's configuration. It overrides the image's
// ENTRYPOINT, CMD, HEALTHCHECK and STOPSIGNAL, but not WORKDIR: the runtime would
// create a missing directory, and any image would seem to have a /testbed. The
// image is given by id, because its name may have moved to another image.
func containerConfig(c Config, img imageInfo, labels map[string]string) *container.Config {
	return &container.Config{
		Image:        cmp.Or(img.from, img.id),
		User:         c.User,
		Entrypoint:   []string{helperPath, helper.ProgramArg},
		Cmd:          []string{},
		AttachStdin:  true,
		AttachStdout: true,
		AttachStderr: true,
		OpenStdin:    true,
		StdinOnce:    true, // closing the connection closes stdin
		Healthcheck:  &container.HealthConfig{Test: []string{"NONE"}},
		StopSignal:   "SIGKILL", // PID 1 ignores the others
		Labels:       labels,
	}
}

// hostConfig returns the resources and privileges of the container, with the
// mounts of the helper before those of the configuration.
func hostConfig(c Config, helperMounts []mount.Mount) *container.HostConfig {
	h := &container.HostConfig{
		AutoRemove:     true,
		LogConfig:      container.LogConfig{Type: "none"}, // by default the daemon logs every frame
		NetworkMode:    container.NetworkMode(c.Network),
		CapDrop:        c.CapDrop,
		CapAdd:         c.CapAdd,
		ShmSize:        c.ShmBytes,
		Tmpfs:          tmpfsOptions(c.Tmpfs),
		ReadonlyRootfs: c.ReadOnly,
		Runtime:        c.Runtime,
		Mounts:         append(helperMounts, binds(c.Mounts)...),
	}
	if !c.NewPrivileges {
		h.SecurityOpt = []string{"no-new-privileges"}
	}
	if c.MemoryBytes > 0 {
		h.Memory, h.MemorySwap = c.MemoryBytes, c.MemoryBytes
	}
	if c.PIDs > 0 {
		h.PidsLimit = &c.PIDs
	}
	h.NanoCPUs = int64(c.CPUs * 1e9)
	for _, u := range c.Ulimits {
		h.Ulimits = append(h.Ulimits, &units.Ulimit{Name: u.Name, Soft: u.Soft, Hard: u.Hard})
	}
	return h
}

// tmpfsOptions returns mount options. Like /tmp, a tmpfs is writable for all users.
// Unlike the engine's default it permits executables, which builds and test
// runners need.
func tmpfsOptions(tmpfs map[string]int64) map[string]string {
	if len(tmpfs) == 0 {
		return nil
	}
	options := map[string]string{}
	for target, bytes := range tmpfs {
		options[target] = fmt.Sprintf("rw,exec,nosuid,nodev,mode=1777,size=%d", bytes)
	}
	return options
}

// binds returns bind mounts. The engine fails if a source does not exist.
func binds(mounts []Mount) []mount.Mount {
	var list []mount.Mount
	for _, m := range mounts {
		list = append(list, mount.Mount{Type: mount.TypeBind, Source: m.Source, Target: m.Target, ReadOnly: !m.ReadWrite})
	}
	return list
}

// helperMount mounts the helper volume. NoCopy keeps files of the image at the
// same path out of the volume.
func helperMount(volume string, readOnly bool) mount.Mount {
	return mount.Mount{
		Type:          mount.TypeVolume,
		Source:        volume,
		Target:        helperDir,
		ReadOnly:      readOnly,
		VolumeOptions: &mount.VolumeOptions{NoCopy: true},
	}
}

// platform parses a platform such as "linux/amd64". It returns nil for "", because old
// engines reject the field.
func platform(s string) *ocispec.Platform {
	if s == "" {
		return nil
	}
	parts := append(strings.SplitN(s, "/", 3), "", "")
	return &ocispec.Platform{OS: parts[0], Architecture: parts[1], Variant: parts[2]}
}

func (e *Engine) labels(c Config) map[string]string {
	l := map[string]string{
		labelOwner:   e.owner.String(),
		labelUser:    strconv.Itoa(os.Getuid()),
		labelExpires: time.Now().Add(expiry).UTC().Format(time.RFC3339),
	}
	if c.Run != "" {
		l[labelRun] = c.Run
	}
	if c.Instance != "" {
		l[labelInstance] = c.Instance
	}
	return l
}

var invalidNameChars = lazyregexp.New(`[^a-zA-Z0-9_.-]+`)

// containerName returns a unique name that contains the instance, with invalid
// characters replaced and cut to 48 bytes.
func containerName(instance string) string {
	name := invalidNameChars.ReplaceAllString(instance, "-")
	if len(name) > 48 {
		name = name[:48]
	}
	if name != "" {
		name += "-"
	}
	return "mini-" + name + strings.ToLower(rand.Text()[:10])
}
