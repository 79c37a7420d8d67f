package docker_test

import (
	"context"
	"strings"
	"testing"

	"github.com/containerd/errdefs"

	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
)

// remountScript remounts all read-only mounts as writable, if the engine permits that,
// and creates a file "planted" in each and replaces the helper.
const remountScript = `
while read -r _ _ _ _ at _; do
	case $at in /|/proc*|/sys*|/dev*) continue;; esac
	mount -o remount,rw,bind "$at" || mount -o remount,rw "$at"
	test -d "$at" && echo planted >"$at/planted"
done </proc/self/mountinfo 2>/dev/null
mount --bind /bin/true /.mini/h 2>/dev/null
rm -f /.mini/h && cp /bin/true /.mini/h
true`

// TestMountingSandboxSharesNothing: a sandbox whose commands can mount shares no volume
// with other sandboxes and no directory with this machine, not even read-only.
func TestMountingSandboxSharesNothing(t *testing.T) {
	image, cli := dockertest.Image(t), dockertest.Client(t)
	dir, volume := newHelperVersion(t) // a volume that no other test uses
	e := dockertest.EngineWith(t, docker.EngineConfig{HelperDir: dir})
	t.Cleanup(func() {
		if err := cli.VolumeRemove(context.WithoutCancel(t.Context()), volume, true); err != nil {
			t.Error(err)
		}
	})
	admin := docker.Config{
		Image: image, User: "root", CapDrop: []string{}, CapAdd: []string{"SYS_ADMIN"}, NewPrivileges: true, AllowUnsafe: true,
	}
	readOnly := admin
	readOnly.ReadOnly = true
	for name, c := range map[string]docker.Config{"SYS_ADMIN": admin, "read-only": readOnly} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := start(t, e, docker.Config{Image: image})
			sandbox := start(t, e, c)
			if mounts := output(t, sandbox, "cat /proc/self/mountinfo"); strings.Contains(mounts, "/mini-helper-") || strings.Contains(mounts, "/.mini-meeting") {
				t.Errorf("the sandbox has shared mounts:\n%s", mounts)
			}
			for _, one := range []*docker.Container{before, sandbox} {
				if got := output(t, one, "cd /.mini; ls -d [!h]*; cmp bin/mini-tool h && ls -ld bin | cut -c 1-10"); got != "bin\ndr-xr-xr-x\n" {
					t.Errorf("the helper's directory has %q, want mini-tool", got)
				}
			}
			output(t, sandbox, remountScript)
			if got := output(t, sandbox, "echo well"); got != "well\n" {
				t.Errorf("after the script, a command prints %q", got)
			}
			for when, other := range map[string]func() *docker.Container{
				"before": func() *docker.Container { return before },
				"after":  func() *docker.Container { return start(t, e, docker.Config{Image: image}) },
			} {
				if got := output(t, other(), "ls -A /.mini; cmp -s /.mini/h /bin/true || echo a helper"); strings.Contains(got, "planted") || !strings.Contains(got, "a helper") {
					t.Errorf("a sandbox that was started %s has %q", when, got)
				}
			}
			made, err := cli.ContainerInspect(t.Context(), sandbox.Name())
			if err != nil || len(made.Mounts) != 1 || made.Mounts[0].Name == "" {
				t.Fatalf("mounts %+v, %v; want one volume", made.Mounts, err)
			}
			if err := sandbox.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := cli.VolumeInspect(t.Context(), made.Mounts[0].Name); !errdefs.IsNotFound(err) {
				t.Errorf("its volume is left: %v", err)
			}
		})
	}
}

// TestConfinedEngine: an engine is not confined exactly if a container with SYS_ADMIN can
// mount as root of the machine.
func TestConfinedEngine(t *testing.T) {
	e := dockertest.Engine(t)
	c := docker.Config{Image: dockertest.Image(t), User: "root", CapDrop: []string{}, CapAdd: []string{"SYS_ADMIN"}, NewPrivileges: true, AllowUnsafe: true}
	engine, err := e.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sandbox := start(t, e, c)
	mounts := run(t, sandbox, "mkdir /p && mount -t proc proc /p").ExitCode == 0
	isHostRoot := output(t, sandbox, "cat /proc/self/uid_map | tr -s ' '") == " 0 0 4294967295\n"
	if exposed := mounts && isHostRoot; exposed == engine.Confined {
		t.Errorf("can mount: %v, as root of the machine: %v; confined: %v", mounts, isHostRoot, engine.Confined)
	}
}
