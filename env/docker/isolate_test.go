package docker_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// isolation is a test case: settings, the wanted container configuration in the engine,
// and a script with its wanted output.
type isolation struct {
	config     docker.Config
	inspect    func(container.InspectResponse) string // nil if the engine does not report it
	want       string                                 // result of inspect
	script     string
	wantOutput string // of the script
}

const capabilitySets = `grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status | tr '\n\t' '  '`

// memoryLimit prints the memory limit in bytes, for cgroup v1 or v2.
const memoryLimit = `cat /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null || cat /sys/fs/cgroup/memory.max`

// TestIsolation checks the effect of each setting, in the engine and in the sandbox.
func TestIsolation(t *testing.T) {
	e, image := dockertest.Engine(t), dockertest.Image(t)
	t.Setenv("MINI_TEST_OF_THE_HOST", "secret")
	host := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(host, "a"), []byte("from the host\n"), 0o644))
	t.Run("all", func(t *testing.T) {
		for name, tt := range isolations(t, host) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				tt.config.Image = image
				tt.check(t, e)
			})
		}
	})
	if b, err := os.ReadFile(filepath.Join(host, "written")); err != nil || string(b) != "more\n" {
		t.Errorf("the host has %q, %v", b, err)
	}
}

// check starts a container with the settings and compares them with the engine's
// configuration and the output of the script.
func (i isolation) check(t *testing.T, e *docker.Engine) {
	t.Helper()
	if err := e.Check(t.Context(), i.config); err != nil {
		t.Fatalf("Check: %v", err)
	}
	sandbox := start(t, e, i.config)
	c, err := dockertest.Client(t).ContainerInspect(t.Context(), sandbox.Name())
	require.NoError(t, err)
	if i.inspect != nil {
		assert.Equal(t, i.want, i.inspect(c), "the engine's configuration differs")
	}
	if res := run(t, sandbox, i.script); !strings.Contains(string(res.Output), i.wantOutput) {
		t.Errorf("commands see %q, want %q", res.Output, i.wantOutput)
	}
	info := sandbox.Info()
	if want := i.config.Network == "bridge" || i.config.Network == "host"; info.Network != want {
		t.Errorf("Info.Network is %v", info.Network)
	}
	if want := len(i.config.Mounts) == 0 || !i.config.Mounts[0].ReadWrite; info.Disposable != want {
		t.Errorf("Info.Disposable is %v", info.Disposable)
	}
}

// isolations returns the test cases. host is a folder of the host with a file "a".
func isolations(t *testing.T, host string) map[string]isolation {
	t.Helper()
	return map[string]isolation{
		"nothing set": {
			docker.Config{},
			func(h container.InspectResponse) string {
				return fmt.Sprintln(h.HostConfig.NetworkMode, h.HostConfig.Memory, h.HostConfig.MemorySwap, *h.HostConfig.PidsLimit, h.HostConfig.ShmSize, h.HostConfig.ReadonlyRootfs, h.HostConfig.Privileged, h.HostConfig.SecurityOpt, h.HostConfig.CapDrop, h.HostConfig.Tmpfs)
			},
			fmt.Sprintln("none", docker.DefaultMemoryBytes, docker.DefaultMemoryBytes, docker.DefaultPIDs, docker.DefaultShmBytes, false, false, "[no-new-privileges]", "[ALL]", "map[]"),
			capabilitySets,
			// CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, SETFCAP
			"CapEff: 00000000800000fb CapBnd: 00000000800000fb NoNewPrivs: 1",
		},
		"memory": {
			docker.Config{MemoryBytes: 64 << 20}, // so small that less of it is for /dev/shm
			func(h container.InspectResponse) string {
				return fmt.Sprint(h.HostConfig.Memory, h.HostConfig.MemorySwap, h.HostConfig.ShmSize)
			}, "67108864 67108864 16777216",
			memoryLimit + `; echo $(df -k --output=size /dev/shm | tail -1)`, "67108864\n16384\n",
		},
		"shm_size": {
			docker.Config{ShmBytes: 8 << 20},
			func(h container.InspectResponse) string { return fmt.Sprint(h.HostConfig.ShmSize) }, "8388608",
			`df -k --output=size /dev/shm | tail -1; head -c 9M /dev/zero >/dev/shm/a || rm /dev/shm/a`, " 8192\nhead: error writing 'standard output': No space left on device\n",
		},
		"cpus": {
			docker.Config{CPUs: 0.5},
			func(h container.InspectResponse) string { return fmt.Sprint(h.HostConfig.NanoCPUs) }, "500000000",
			`cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us 2>/dev/null || cat /sys/fs/cgroup/cpu.max`, "50000",
		},
		"pids_limit": {
			docker.Config{PIDs: 40},
			func(h container.InspectResponse) string { return fmt.Sprint(*h.HostConfig.PidsLimit) }, "40",
			`cat /sys/fs/cgroup/pids/pids.max 2>/dev/null || cat /sys/fs/cgroup/pids.max`, "40\n",
		},
		"tmpfs": {
			docker.Config{ReadOnly: true, Tmpfs: map[string]int64{"/scratch": 4 << 20, "/tmp": 1 << 20}},
			func(h container.InspectResponse) string { return fmt.Sprint(h.HostConfig.Tmpfs) },
			"map[/scratch:rw,exec,nosuid,nodev,mode=1777,size=4194304 /tmp:rw,exec,nosuid,nodev,mode=1777,size=1048576]",
			`cd /scratch && df -k --output=fstype,size . | tail -1 && stat -c %a . && printf '#!/bin/sh\necho ran' >x && chmod +x x && ./x; echo $(df -k --output=size /tmp | tail -1)`,
			"tmpfs      4096\n1777\nran\n1024\n",
		},
		"read_only": {
			docker.Config{ReadOnly: true},
			func(h container.InspectResponse) string {
				return fmt.Sprint(h.HostConfig.ReadonlyRootfs, h.HostConfig.Tmpfs)
			},
			"true map[/tmp:rw,exec,nosuid,nodev,mode=1777,size=268435456]",
			`touch /a /usr/a; touch /tmp/a && mktemp -d >/dev/null && echo made`, "touch: cannot touch '/a': Read-only file system\ntouch: cannot touch '/usr/a': Read-only file system\nmade\n",
		},
		"ulimits": {
			docker.Config{Ulimits: []docker.Ulimit{{"nofile", 512, 1024}, {"core", 0, 0}}},
			func(h container.InspectResponse) string {
				return fmt.Sprint(*h.HostConfig.Ulimits[0], *h.HostConfig.Ulimits[1])
			}, "{nofile 1024 512} {core 0 0}",
			`ulimit -Sn; ulimit -Hn; ulimit -c; python3 -c 'import os
for i in range(600): os.dup(0)' 2>&1 | tail -1`, "512\n1024\n0\nOSError: [Errno 24] Too many open files\n",
		},
		"user by number": {
			docker.Config{User: "1234:5678"},
			func(h container.InspectResponse) string { return h.Config.User }, "1234:5678",
			`id -u; id -g; ` + capabilitySets, "1234\n5678\nCapEff: 0000000000000000",
		},
		"user by name": {
			docker.Config{User: "nobody"},
			func(h container.InspectResponse) string { return h.Config.User }, "nobody",
			`id -un; touch /a 2>&1`, "nobody\ntouch: cannot touch '/a': Permission denied\n",
		},
		"capabilities": {
			docker.Config{CapAdd: []string{"NET_RAW"}, CapDrop: []string{"ALL"}},
			func(h container.InspectResponse) string { return fmt.Sprint(h.HostConfig.CapAdd, h.HostConfig.CapDrop) }, "[CAP_NET_RAW] [ALL]",
			capabilitySets, "CapEff: 0000000000002000 CapBnd: 0000000000002000",
		},
		"no capabilities": {
			docker.Config{CapAdd: []string{}},
			func(h container.InspectResponse) string { return fmt.Sprint(h.HostConfig.CapAdd, h.HostConfig.CapDrop) }, "[] [ALL]",
			capabilitySets, "CapEff: 0000000000000000 CapBnd: 0000000000000000",
		},
		"new privileges": {
			docker.Config{NewPrivileges: true},
			func(h container.InspectResponse) string { return fmt.Sprint(h.HostConfig.SecurityOpt) }, "[]",
			capabilitySets, "NoNewPrivs: 0",
		},
		"network none": {
			docker.Config{Network: "none"},
			func(h container.InspectResponse) string { return string(h.HostConfig.NetworkMode) }, "none",
			`tail -n +2 /proc/net/route | wc -l; ls /sys/class/net; getent hosts example.org || echo unknown
			(exec 3<>/dev/tcp/192.0.2.1/80) 2>&1 | grep -o 'Network is unreachable' | head -1`,
			"0\nlo\nunknown\nNetwork is unreachable\n",
		},
		"network bridge": {
			docker.Config{Network: "bridge"},
			func(h container.InspectResponse) string { return string(h.HostConfig.NetworkMode) }, "bridge",
			`tail -n +2 /proc/net/route | wc -l`, "2\n",
		},
		"network host": {
			docker.Config{Network: "host"},
			func(h container.InspectResponse) string { return string(h.HostConfig.NetworkMode) }, "host",
			`readlink /proc/self/ns/net`, hostNetwork(t),
		},
		"a mount": {
			docker.Config{Mounts: []docker.Mount{{Source: host, Target: "/host"}}},
			mounted, "bind " + host + " /host true",
			`cat /host/a; touch /host/b`, "from the host\ntouch: cannot touch '/host/b': Read-only file system\n",
		},
		"a writable mount": {
			docker.Config{Mounts: []docker.Mount{{Source: host, Target: "/host", ReadWrite: true}}},
			mounted, "bind " + host + " /host false",
			`echo more >/host/written && ls /host`, "a\nwritten\n",
		},
		"variables": {
			docker.Config{Env: map[string]string{"GIVEN": "a b\nc"}},
			nil, "",
			`printf %s "$GIVEN"; env | grep -c MINI_TEST_OF_THE_HOST`, "a b\nc0\n",
		},
	}
}

func mounted(h container.InspectResponse) string {
	m := h.HostConfig.Mounts[len(h.HostConfig.Mounts)-1] // after the mounts of mini itself
	return fmt.Sprint(m.Type, " ", m.Source, " ", m.Target, " ", m.ReadOnly)
}

// hostNetwork returns the name of the network namespace of the engine's machine; only
// its prefix if that is another machine.
func hostNetwork(t *testing.T) string {
	t.Helper()
	if !strings.HasPrefix(dockertest.Client(t).DaemonHost(), "unix://") {
		return "net:["
	}
	name, err := os.Readlink("/proc/self/ns/net")
	require.NoError(t, err)
	return name
}

// TestNetworkModes: Info.Network does not depend on how the configuration names a
// network.
func TestNetworkModes(t *testing.T) {
	e, image, cli := dockertest.Engine(t), dockertest.Image(t), dockertest.Client(t)
	created, err := cli.NetworkCreate(t.Context(), "mini-test-"+strings.ToLower(t.Name()), network.CreateOptions{Internal: true})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cli.NetworkRemove(context.WithoutCancel(t.Context()), created.ID)) })
	none, err := cli.NetworkInspect(t.Context(), "none", network.InspectOptions{})
	require.NoError(t, err)
	isolated := start(t, e, docker.Config{Image: image})
	connected := start(t, e, docker.Config{Image: image, Network: "bridge"})
	for mode, want := range map[string]bool{
		created.ID:                      true, // it may have other containers
		none.ID:                         false,
		"container:" + isolated.Name():  false,
		"container:" + connected.Name(): true,
	} {
		c := docker.Config{Image: image, Network: mode}
		require.NoError(t, e.Check(t.Context(), c))
		sandbox := start(t, e, c)
		assert.Equal(t, want, sandbox.Info().Network, "%s: Info.Network", mode)
		assert.Equal(t, want, output(t, sandbox, "ls /sys/class/net") != "lo\n", "%s: has a network interface", mode)
		if err := sandbox.Close(t.Context()); err != nil { // before the network
			t.Error(err)
		}
	}
}

func TestCheck(t *testing.T) {
	e, cli := dockertest.Engine(t), dockertest.Client(t)
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink("/run", link))
	var lc net.ListenConfig
	socket, err := lc.Listen(t.Context(), "unix", filepath.Join(dir, "s"))
	require.NoError(t, err)
	defer socket.Close()
	created, err := cli.ContainerCreate(t.Context(), &container.Config{Image: dockertest.Image(t), Cmd: []string{"true"}}, nil, nil, nil, "")
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, cli.ContainerRemove(context.WithoutCancel(t.Context()), created.ID, container.RemoveOptions{}))
	})
	for name, tt := range map[string]struct {
		config docker.Config
		want   []string // in the errors, in order
	}{
		"well":              {docker.Config{Mounts: []docker.Mount{{Source: dir, Target: "/a"}}}, nil},
		"found by Validate": {docker.Config{CPUs: -1}, []string{"cpus: -1"}},
		"network":           {docker.Config{Network: "mini-no-such"}, []string{`network: the engine has no network "mini-no-such"; use "none" or "host"`}},
		"container":         {docker.Config{Network: "container:mini-no-such"}, []string{`network: the engine has no container "mini-no-such"`}},
		"stopped container": {docker.Config{Network: "container:" + created.ID}, []string{"is not running; start it first"}},
		"runtime":           {docker.Config{Runtime: "mini-no-such"}, []string{`runtime: the engine has no runtime "mini-no-such"; it has `}},
		"cpus":              {docker.Config{CPUs: 4096}, []string{"cpus: 4096 exceeds the"}},
		"mounts": {docker.Config{Mounts: []docker.Mount{{Source: dir + "/none", Target: "/a"}, {Source: link, Target: "/b"}}}, []string{
			"mounts: " + fmt.Sprintf("%.80q", dir+"/none") + " does not exist", "gives commands access to the engine's socket",
		}},
		"a socket of another service": {docker.Config{Mounts: []docker.Mount{{Source: filepath.Join(dir, "s"), Target: "/a"}}}, []string{"is a socket"}},
		"by force":                    {docker.Config{Mounts: []docker.Mount{{Source: link, Target: "/b"}}, AllowUnsafe: true}, nil},
		"several":                     {docker.Config{Network: "mini-no-such", CPUs: 4096}, []string{"network: ", "cpus: "}},
	} {
		t.Run(name, func(t *testing.T) {
			tt.config.Image = "mini-never-looked-at"
			err := e.Check(t.Context(), tt.config)
			found := env.ConfigErrors(err)
			require.Equal(t, len(tt.want), len(found), "err = %v, want errors", err)
			for i, want := range tt.want {
				if !strings.Contains(found[i].Error(), want) {
					t.Errorf("error %d is %q, want %q", i, found[i], want)
				}
			}
		})
	}
}

func TestCheckWithoutEngine(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})) // answers a ping
	e, err := docker.Open(t.Context(), docker.EngineConfig{Host: "tcp://" + s.Listener.Addr().String()})
	require.NoError(t, err)
	s.Close()
	if err := e.Check(t.Context(), docker.Config{Image: "a"}); status(err) != env.DaemonUnavailable || env.ConfigErrors(err) != nil {
		t.Errorf("err = %v, want DaemonUnavailable", err)
	}
	assert.NoError(t, e.Close())
}

// A running container enters and leaves networks, however often.
func TestChangeNetwork(t *testing.T) {
	e, image := dockertest.Engine(t), dockertest.Image(t)
	for _, first := range []string{"none", "bridge"} {
		t.Run("from "+first, func(t *testing.T) {
			sandbox := start(t, e, docker.Config{Image: image, Network: first})
			for _, network := range []string{"bridge", "none", "none", "default", "bridge", "none"} {
				if err := sandbox.ChangeNetwork(t.Context(), network); err != nil {
					t.Fatalf("%s: %v", network, err)
				}
				hasInterface := output(t, sandbox, "ls /sys/class/net") != "lo\n"
				hasRoute := strings.Count(output(t, sandbox, "cat /proc/net/route"), "\n") > 1
				if want := network != "none"; hasInterface != want || hasRoute != want {
					t.Errorf("%s: has an interface: %v, has a route: %v", network, hasInterface, hasRoute)
				}
			}
		})
	}
	sandbox := start(t, e, docker.Config{Image: image})
	for _, network := range []string{"host", "container:" + sandbox.Name(), "no-such-network"} {
		assert.Error(t, sandbox.ChangeNetwork(t.Context(), network), "%s", network)
		assert.Equal(t, "lo\n", output(t, sandbox, "ls /sys/class/net"), "%s", network)
	}
}

// KillProgram needs nothing of the image.
func TestKillProgramWithoutShell(t *testing.T) {
	e, image := dockertest.Engine(t), dockertest.Image(t)
	sandbox := start(t, e, docker.Config{Image: image})
	output(t, sandbox, "sleep 300 & setsid nohup sleep 300 > /dev/null 2>&1 & mkdir /moved && /bin/mv /usr/bin/* /moved/")
	res, err := sandbox.Execute(t.Context(), env.Command{Interpreter: []string{env.KillProgram}})
	if err != nil || res.Failure != "" || res.Killed != 2 || res.Survivors != 0 {
		t.Errorf("%v, %+v", err, res)
	}
}
