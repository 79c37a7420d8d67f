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

	"github.com/minibench/mini/internal/lazyregexp"
)

// Where the helper is, inside a container.
const (
	helperDir  = "/.mini"
	helperName = "h"
	helperPath = helperDir + "/" + helperName
	// toolDir has mini-tool, which is the helper under another name.
	toolDir = helperDir + "/bin"
)

// Labels of what this package creates.
const (
	labelOwner    = "mini.owner"    // the process that made it: see owner
	labelUser     = "mini.uid"      // the user id of that process
	labelRun      = "mini.run"      // Config.Run
	labelInstance = "mini.instance" // Config.Instance
	labelExpires  = "mini.expires"  // RFC 3339: after this a stopped container is nobody's
	labelHelper   = "mini.helper"   // of volumes: the SHA-256 of the helper within
)

// expiry is far beyond any attempt: it matters only for containers whose owner
// cannot be asked after.
const expiry = 48 * time.Hour

// create makes a container and returns the engine's warnings. The request is
// finished even when ctx ends: an engine may go on with one that was given up,
// and the container would appear behind the back of whoever cleans up.
func (e *Engine) create(ctx context.Context, name, os string, c *container.Config, h *container.HostConfig) ([]string, error) {
	made, err := e.api.ContainerCreate(context.WithoutCancel(ctx), c, h, nil, platform(os), name)
	return made.Warnings, err
}

// containerConfig is what runs. The image's ENTRYPOINT, CMD, HEALTHCHECK and
// STOPSIGNAL are overridden. WORKDIR is not: the runtime creates a directory
// that is missing, and a foreign image would seem to have a /testbed. The image
// goes by its id: its name may mean another one by now than was found.
func containerConfig(c Config, img imageFacts, labels map[string]string) *container.Config {
	return &container.Config{
		Image:        cmp.Or(img.from, img.id),
		User:         c.User,
		Entrypoint:   []string{helperPath},
		Cmd:          []string{},
		AttachStdin:  true,
		AttachStdout: true,
		AttachStderr: true,
		OpenStdin:    true,
		StdinOnce:    true, // the end of the connection becomes the end of stdin
		Healthcheck:  &container.HealthConfig{Test: []string{"NONE"}},
		StopSignal:   "SIGKILL", // PID 1 ignores every other
		Labels:       labels,
	}
}

// hostConfig is what it may use. The mounts of its own come first.
func hostConfig(c Config, own []mount.Mount) *container.HostConfig {
	h := &container.HostConfig{
		AutoRemove:     true,
		LogConfig:      container.LogConfig{Type: "none"}, // the daemon would log every frame
		NetworkMode:    container.NetworkMode(c.Network),
		CapDrop:        c.CapDrop,
		CapAdd:         c.CapAdd,
		ShmSize:        c.ShmBytes,
		Tmpfs:          inMemory(c.Tmpfs),
		ReadonlyRootfs: c.ReadOnly,
		Runtime:        c.Runtime,
		Mounts:         append(own, binds(c.Mounts)...),
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

// inMemory is for everybody, like /tmp; and programs can be run there, which
// engines forbid unless told: builds and test runners do it.
func inMemory(tmpfs map[string]int64) map[string]string {
	if len(tmpfs) == 0 {
		return nil
	}
	options := map[string]string{}
	for target, bytes := range tmpfs {
		options[target] = fmt.Sprintf("rw,exec,nosuid,nodev,mode=1777,size=%d", bytes)
	}
	return options
}

// binds are mounts that must be there: an engine makes no folder for one.
func binds(mounts []Mount) []mount.Mount {
	var list []mount.Mount
	for _, m := range mounts {
		list = append(list, mount.Mount{Type: mount.TypeBind, Source: m.Source, Target: m.Target, ReadOnly: !m.ReadWrite})
	}
	return list
}

// helperMount leaves what an image may have at the same place out of the volume.
func helperMount(volume string, readOnly bool) mount.Mount {
	return mount.Mount{
		Type:          mount.TypeVolume,
		Source:        volume,
		Target:        helperDir,
		ReadOnly:      readOnly,
		VolumeOptions: &mount.VolumeOptions{NoCopy: true},
	}
}

// platform is nil unless one was asked for: old engines refuse the field.
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

var notInNames = lazyregexp.New(`[^a-zA-Z0-9_.-]+`)

// containerName is unique, and says to people who list containers what it is.
func containerName(instance string) string {
	name := notInNames.ReplaceAllString(instance, "-")
	if len(name) > 48 {
		name = name[:48]
	}
	if name != "" {
		name += "-"
	}
	return "mini-" + name + strings.ToLower(rand.Text()[:10])
}
