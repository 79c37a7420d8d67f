package docker_test

import (
	"context"
	"strings"
	"testing"

	"github.com/containerd/errdefs"

	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
)

// takeOver makes all that is mounted read-only writable, as far as the engine
// lets it, and leaves a mark wherever others might see it.
const takeOver = `
while read -r _ _ _ _ at _; do
	case $at in /|/proc*|/sys*|/dev*) continue;; esac
	mount -o remount,rw,bind "$at" || mount -o remount,rw "$at"
	test -d "$at" && echo planted >"$at/planted"
done </proc/self/mountinfo 2>/dev/null
mount --bind /bin/true /.mini/h 2>/dev/null
rm -f /.mini/h && cp /bin/true /.mini/h
true`

// What can mount has nothing that another sandbox begins with, or that is on
// this machine, however read-only that would be.
func TestWhatCanMountSharesNothing(t *testing.T) {
	image, cli := dockertest.Image(t), dockertest.Client(t)
	dir, volume := newVersion(t) // what is spoilt here is nobody else's
	e := dockertest.EngineWith(t, docker.EngineConfig{HelperDir: dir})
	t.Cleanup(func() {
		if err := cli.VolumeRemove(context.WithoutCancel(t.Context()), volume, true); err != nil {
			t.Error(err)
		}
	})
	admin := docker.Config{
		Image: image, User: "root", CapDrop: []string{}, CapAdd: []string{"SYS_ADMIN"}, NewPrivileges: true, Force: true,
	}
	readOnly := admin
	readOnly.ReadOnly = true
	for name, c := range map[string]docker.Config{"SYS_ADMIN": admin, "read-only": readOnly} {
		t.Run(name, func(t *testing.T) {
			before := start(t, e, docker.Config{Image: image})
			box := start(t, e, c)
			if at := output(t, box, "cat /proc/self/mountinfo"); strings.Contains(at, "/mini-helper-") || strings.Contains(at, "/.mini-meeting") {
				t.Errorf("it sees what is not its own:\n%s", at)
			}
			for _, one := range []*docker.Container{before, box} {
				if got := output(t, one, "cd /.mini; ls -d [!h]*; cmp bin/mini-tool h && ls -ld bin | cut -c 1-10"); got != "bin\ndr-xr-xr-x\n" {
					t.Errorf("beside the helper is %q, want mini-tool", got)
				}
			}
			output(t, box, takeOver)
			if got := output(t, box, "echo well"); got != "well\n" {
				t.Errorf("its own helper says %q then", got)
			}
			for when, other := range map[string]func() *docker.Container{
				"before": func() *docker.Container { return before },
				"after":  func() *docker.Container { return start(t, e, docker.Config{Image: image}) },
			} {
				if got := output(t, other(), "ls -A /.mini; cmp -s /.mini/h /bin/true || echo a helper"); strings.Contains(got, "planted") || !strings.Contains(got, "a helper") {
					t.Errorf("a sandbox that was started %s has %q", when, got)
				}
			}
			made, err := cli.ContainerInspect(t.Context(), box.Name())
			if err != nil || len(made.Mounts) != 1 || made.Mounts[0].Name == "" {
				t.Fatalf("mounts %+v, %v; want one volume", made.Mounts, err)
			}
			if err := box.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := cli.VolumeInspect(t.Context(), made.Mounts[0].Name); !errdefs.IsNotFound(err) {
				t.Errorf("its volume is left: %v", err)
			}
		})
	}
}

// What the engine says holds such containers does: mounting fails there, or
// does not make root of the machine.
func TestExposure(t *testing.T) {
	e := dockertest.Engine(t)
	c := docker.Config{Image: dockertest.Image(t), User: "root", CapDrop: []string{}, CapAdd: []string{"SYS_ADMIN"}, NewPrivileges: true, Force: true}
	said, err := e.IsolationWarning(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	box := start(t, e, c)
	mounts := run(t, box, "mkdir /p && mount -t proc proc /p").ExitCode == 0
	own := output(t, box, "cat /proc/self/uid_map | tr -s ' '") == " 0 0 4294967295\n"
	if exposed := mounts && own; exposed != (said != "") {
		t.Errorf("it mounts: %v, as the machine's root: %v; said is %q", mounts, own, said)
	}
}
