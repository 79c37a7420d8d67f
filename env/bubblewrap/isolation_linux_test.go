package bubblewrap_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/bubblewrap"
	"github.com/minibench/mini/env/helper/child/childtest"
	"github.com/minibench/mini/env/scratch"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// TestHidden: commands cannot access what the sandbox hides.
func TestHidden(t *testing.T) {
	t.Setenv("MINI_TEST_VARIABLE", "of the host")
	home := t.TempDir()
	t.Setenv("HOME", home)
	require.NoError(t, os.MkdirAll(home+"/.ssh", 0o700))
	require.NoError(t, os.WriteFile(home+"/.ssh/id_test", []byte("secret"), 0o600))
	host := openHost(t)
	work := filepath.Join(home, "work")
	require.NoError(t, os.Mkdir(work, 0o700))
	require.NoError(t, os.Symlink("../.ssh/id_test", work+"/link"))
	sandbox := start(t, host, bubblewrap.Config{Dir: work})
	swappiness, err := os.ReadFile("/proc/sys/vm/swappiness")
	require.NoError(t, err)
	for name, script := range map[string]string{
		"home":             "cat ~/.ssh/id_test",
		"home by a link":   "cat link",
		"hashes":           "cat /etc/shadow",
		"other homes":      "ls -d /home/* /root/.[a-z]*",
		"engine":           "ls -d /run/docker* /var/run/docker*",
		"system state":     "ls -d /var/lib",
		"devices":          "ls /dev/[svx]d[a-z] /dev/mem /dev/kmsg /dev/fuse",
		"sys":              "ls /sys/kernel",
		"kernel log":       "dd if=/proc/kmsg of=/dev/null bs=1 count=1 iflag=nonblock && test -s /proc/kmsg",
		"kernel memory":    "test -s /proc/kcore",
		"kernel settings":  "echo " + strings.TrimSpace(string(swappiness)) + " > /proc/sys/vm/swappiness",
		"core pattern":     ": >> /proc/sys/kernel/core_pattern",
		"root":             "touch /x",
		"programs":         "touch /usr/x",
		"settings":         "touch /etc/x",
		"remount":          "mount -o remount,rw /usr",
		"unmount":          "umount /etc/shadow",
		"user namespace":   "unshare -U true",
		"mount namespace":  "unshare -m true",
		"become another":   "setpriv --reuid=12345 true",
		"give away":        "touch mine; chown 12345 mine",
		"variables":        "env | grep MINI_TEST_VARIABLE",
		"host's processes": "test $(ls -d /proc/[0-9]* | wc -l) -gt 20",
		"network":          "ip link | grep -v -e ' lo:' -e loopback | grep . || (exec 3<>/dev/tcp/192.0.2.1/80)",
		"PID 1's pipes":    "printf forged > /proc/1/fd/1",
		"PID 1's memory":   "head -c1 /proc/1/mem",
		"capabilities":     "grep -E 'Cap(Prm|Eff|Bnd|Inh|Amb).*[1-9a-f]' /proc/self/status",
		"new privileges":   "grep 'NoNewPrivs.*0' /proc/self/status",
		"terminal":         ": < /dev/tty",
	} {
		t.Run(name, func(t *testing.T) {
			r, err := sandbox.Execute(t.Context(), env.Command{Script: script, Timeout: 20 * time.Second})
			if err != nil || r.ExitCode == 0 {
				t.Errorf("%s: exit code %d, error %v, output %q", script, r.ExitCode, err, r.Output)
			}
		})
	}
	if got, err := os.ReadFile(home + "/.ssh/id_test"); err != nil || string(got) != "secret" {
		t.Errorf("the secret is now %q, %v", got, err)
	}
}

// TestAvailable: commands can access what they need.
func TestAvailable(t *testing.T) {
	dir := t.TempDir()
	sandbox := start(t, openHost(t), bubblewrap.Config{Dir: dir})
	for _, script := range []string{
		"touch ~/x /tmp/x /var/tmp/x /dev/shm/x /run/x new", "git --version", "python3 -c 'import ssl, multiprocessing as m; m.Lock()'",
		"ls /proc/self/fd", "head -c1 /dev/urandom", "test $$ != 1", "getent passwd root", "ulimit -n",
		"python3 -m http.server 8765 --bind 127.0.0.1 >/dev/null 2>&1 & for i in $(seq 200); do (exec 3<>/dev/tcp/127.0.0.1/8765) 2>/dev/null && exit; sleep 0.05; done; exit 1",
	} {
		sh(t, sandbox, script)
	}
	if info, err := os.Stat(dir + "/new"); err != nil || info.Sys().(*syscall.Stat_t).Uid != uint32(os.Getuid()) { //nolint:errcheck,forcetypeassert // Linux only
		t.Errorf("the file that a command created: %v, %v", info, err)
	}
}

func TestConfig(t *testing.T) {
	host := openHost(t)
	t.Run("info", func(t *testing.T) {
		dir := t.TempDir()
		i := start(t, host, bubblewrap.Config{Dir: dir, Warnings: []string{"empty"}}).Info()
		if i.Dir != dir || i.Network || i.Disposable || !slices.Equal(i.Warnings, []string{bubblewrap.NoLimitsWarning, "empty"}) {
			t.Errorf("info is %+v", i)
		}
	})
	t.Run("disposable, elsewhere", func(t *testing.T) {
		dir, err := scratch.New("bubblewrap-test")
		require.NoError(t, err)
		sandbox := start(t, host, bubblewrap.Config{Dir: dir, MountPath: "/testbed", Disposable: true})
		if got := sh(t, sandbox, "pwd; touch x; mkdir d; touch d/e; chmod 0 d"); got != "/testbed\n" || !sandbox.Info().Disposable || sandbox.Info().Dir != "/testbed" {
			t.Errorf("commands start in %q, info is %+v", got, sandbox.Info())
		}
		assert.NoError(t, sandbox.Close(t.Context()))
		if _, err := os.Lstat(dir); !os.IsNotExist(err) {
			t.Errorf("the folder: %v", err)
		}
	})
	t.Run("variables", func(t *testing.T) {
		sandbox := start(t, host, bubblewrap.Config{Env: map[string]string{"A": "b c", "LD_PRELOAD": "/no/such.so"}})
		if got := sh(t, sandbox, `echo "$A $PWD $TMPDIR" 2>/dev/null`); !strings.HasSuffix(got, "b c /tmp /tmp\n") {
			t.Errorf("output %q", got)
		}
	})
	t.Run("host's network", func(t *testing.T) {
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer listener.Close()
		_, port, err := net.SplitHostPort(listener.Addr().String())
		require.NoError(t, err)
		reach := "(exec 3<>/dev/tcp/127.0.0.1/" + port + ") 2>/dev/null && echo yes || echo no"
		for network, want := range map[string]string{bubblewrap.NetworkHost: "yes\n", bubblewrap.NetworkNone: "no\n"} {
			sandbox := start(t, host, bubblewrap.Config{Network: network})
			if got := sh(t, sandbox, reach); got != want || sandbox.Info().Network != (want == "yes\n") {
				t.Errorf("%s: reachable %q, info says %v", network, got, sandbox.Info().Network)
			}
		}
	})
	t.Run("mounts and memory", func(t *testing.T) {
		ro, rw := t.TempDir(), t.TempDir()
		require.NoError(t, os.WriteFile(ro+"/f", []byte("there"), 0o600))
		sandbox := start(t, host, bubblewrap.Config{
			Mounts: []bubblewrap.Mount{{Source: ro, Target: "/data/ro"}, {Source: rw, Target: "/data/rw", ReadWrite: true}},
			Tmpfs:  map[string]int64{"/tmp": 1 << 20, "/small": 2 << 20}, ShmBytes: 3 << 20,
		})
		if got := sh(t, sandbox, "cat /data/ro/f; touch /data/ro/x 2>/dev/null || echo; touch /data/rw/x; df -k --output=size /tmp /small /dev/shm | tail -n +2 | xargs"); got != "there\n1024 2048 3072\n" {
			t.Errorf("output %q", got)
		}
		r, err := sandbox.Execute(t.Context(), env.Command{Script: "head -c 5000000 /dev/zero >/tmp/full"})
		if err != nil || r.ExitCode == 0 || !strings.Contains(string(r.Output), "No space left") {
			t.Errorf("a full /tmp: exit code %d, output %q, error %v", r.ExitCode, r.Output, err)
		}
		if sandbox.Info().Disposable {
			t.Error("a sandbox with a writable mount of a host folder is disposable")
		}
	})
	home, err := os.UserHomeDir()
	require.NoError(t, err)
	for name, c := range map[string]bubblewrap.Config{
		"bridge":           {Network: "bridge"},
		"a strange one":    {Network: "none --share-net"},
		"home":             {Dir: home},
		"everything":       {Dir: "/"},
		"above home":       {Dir: filepath.Dir(home)},
		"settings":         {Dir: "/etc"},
		"kernel":           {Dir: "/proc/self"},
		"no folder":        {Dir: "/no/such/place"},
		"a file":           {Dir: "/etc/passwd"},
		"over /proc":       {Mounts: []bubblewrap.Mount{{Source: "/tmp", Target: "/proc/sys"}}},
		"over the root":    {Mounts: []bubblewrap.Mount{{Source: "/tmp", Target: "/"}}},
		"a relative mount": {Mounts: []bubblewrap.Mount{{Source: "tmp", Target: "/x"}}},
		"a crooked mount":  {Mounts: []bubblewrap.Mount{{Source: "/tmp", Target: "/x/../usr"}}},
		"missing source":   {Mounts: []bubblewrap.Mount{{Source: "/no/such/place", Target: "/x"}}},
		"negative size":    {Tmpfs: map[string]int64{"/x": -1}},
		"negative timeout": {Timeout: -1},
		"bad variable":     {Env: map[string]string{"A=B": "c"}},
		"odd inside":       {Dir: t.TempDir(), MountPath: "testbed"},
	} {
		t.Run(name, func(t *testing.T) {
			if sandbox, err := host.Start(t.Context(), c); err == nil {
				t.Error(errors.Join(errors.New("it started"), sandbox.Close(t.Context())))
			} else if strings.Contains(err.Error(), "\n") && name != "a crooked mount" {
				t.Errorf("more than a line: %q", err)
			}
		})
	}
}

// TestKilled: a sandbox that is killed from outside is lost, the error says why, and
// nothing is left.
func TestKilled(t *testing.T) {
	host := openHost(t)
	marker := "mini-death-" + rand.Text()
	sandbox := start(t, host, bubblewrap.Config{})
	sh(t, sandbox, "setsid bash -c 'exec -a "+marker+" sleep 300' >/dev/null 2>&1 &")
	go func() { // ends with the command, at the latest
		assert.NoError(t, syscall.Kill(sandbox.PID(), syscall.SIGKILL))
	}()
	_, err := sandbox.Execute(t.Context(), env.Command{Script: "sleep 3000", Timeout: time.Hour})
	e, ok := errors.AsType[*env.Error](err)
	if !ok || e.Status != env.ContainerDied || !strings.Contains(err.Error(), "signal 9") {
		t.Errorf("error is %v", err)
	}
	childtest.RequireExit(t, marker, time.Minute)
}

// TestClose: a closed sandbox leaves no processes and no files.
func TestClose(t *testing.T) {
	host := openHost(t)
	t.Setenv("TMPDIR", t.TempDir())
	marker := "mini-close-" + rand.Text()
	for range 2 {
		sandbox := start(t, host, bubblewrap.Config{})
		sh(t, sandbox, "for i in 1 2 3; do (setsid bash -c 'exec -a "+marker+" sleep 300' >/dev/null 2>&1 &); done")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		assert.NoError(t, sandbox.Close(ctx))
		childtest.RequireExit(t, marker, time.Minute)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestMissing: without bwrap, or with another program of that name, the error has a
// hint.
func TestMissing(t *testing.T) {
	p := childtest.Program(t)
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	for name, script := range map[string]string{
		"none": "", "old": "#!/bin/sh\necho bubblewrap 0.4.1\n", "broken": "#!/bin/sh\nexit 1\n", "another": "#!/bin/sh\necho hello\n",
	} {
		t.Run(name, func(t *testing.T) {
			if script != "" {
				require.NoError(t, os.WriteFile(dir+"/bwrap", []byte(script), 0o700))
			}
			_, err := bubblewrap.Open(t.Context(), p)
			e, ok := errors.AsType[*env.Error](err)
			if !ok || e.Status != env.StartFailed || !strings.Contains(e.Hint, "apt-get install bubblewrap") {
				t.Errorf("error is %v", err)
			}
			assert.NoError(t, os.RemoveAll(dir+"/bwrap"))
		})
	}
}
