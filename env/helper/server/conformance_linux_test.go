package server_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/envtest"
	"github.com/minibench/mini/env/helper"
)

// sandbox makes a helper an environment, through the real client.
type sandbox struct {
	*helper.Client
}

var (
	_ env.Environment = sandbox{}
	_ env.Files       = sandbox{}
)

func (s sandbox) Info() env.Info { return s.Hello().Info() }

func (s sandbox) Close(context.Context) error { return s.Client.Close() }

// stream joins the two pipes of a helper.
type stream struct{ *box }

func (s stream) Read(p []byte) (int, error)  { return s.out.Read(p) }
func (s stream) Write(p []byte) (int, error) { return s.in.Write(p) }
func (s stream) Close() error                { return s.in.Close() } // the helper ends, and with it its output

func dial(t *testing.T, b *box) env.Environment {
	t.Helper()
	c, err := helper.Dial(t.Context(), stream{b}, helper.ClientConfig{Setup: helper.Setup{Dir: t.TempDir(), ToolDir: toolDir(t)}})
	if err != nil {
		t.Fatal(err)
	}
	return sandbox{c}
}

// toolDir is a folder with mini-tool.
func toolDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Symlink(binary, filepath.Join(dir, env.ToolProgram)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestConformanceAsPID1 has the capabilities of a container, for the shield.
func TestConformanceAsPID1(t *testing.T) {
	namespace(t)
	envtest.Run(t, func(t *testing.T) env.Environment {
		t.Helper()
		return dial(t, launch(t, append(append(slices.Clone(unshare), capabilities...), binary)...))
	}, envtest.Lacks(envtest.ProcessLimit, "a pid namespace alone has none; TestBombs makes one"))
}

var (
	unshare      = []string{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc"}
	capabilities = []string{"setpriv", "--bounding-set=-all,+chown,+dac_override,+fowner,+fsetid,+setuid,+setgid,+setfcap,+kill", "--inh-caps=-all"}
)

// pid1 starts a helper as the first process of a pid namespace of its own.
func pid1(t *testing.T) *box {
	t.Helper()
	b := launch(t, append(slices.Clone(unshare), binary)...)
	b.setup(helper.Setup{Dir: t.TempDir()})
	return b
}

// namespace skips the test where pid namespaces cannot be made.
func namespace(t *testing.T) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "unshare", "--pid", "--fork", "--mount-proc", "true").CombinedOutput(); err != nil {
		t.Skipf("no pid namespace can be made here: %v: %s", err, out)
	}
}

// TestBombs lets a bomb go off inside a pid namespace with bounded processes.
func TestBombs(t *testing.T) {
	namespace(t)
	group := pidsGroup(t, 256)
	for name, bomb := range map[string]string{
		"plain":    `f() { f | f & }; f; sleep 300`,
		"sessions": `cat >$F <<'X'` + "\n" + `while :; do env -i setsid bash "$0" & done` + "\nX\n" + `bash $F; sleep 300`,
	} {
		for _, server := range []bool{false, true} {
			t.Run(name+map[bool]string{true: " beside a server", false: ""}[server], func(t *testing.T) {
				s := pid1In(t, group)
				script := filepath.Join(t.TempDir(), "bomb")
				if server {
					s.run("while :; do sleep 0.05; done >/dev/null 2>&1 & echo $! >" + script + ".pid")
				}
				e, _ := s.end(s.begin(helper.Run{TimeoutMillis: 1000, Env: map[string]string{"F": script}}, bomb))
				if !e.TimedOut || e.Survivors != 0 || e.Collateral || e.Killed < 2 {
					t.Errorf("exit is %+v", e)
				}
				t.Logf("killed %d in %v", e.Killed, e.Duration-time.Second)
				want := "1"
				if server {
					want = "2"
				}
				// The helper's children: this command's shell, and the server.
				e, out := s.run(`n=0; for p in /proc/[0-9]*; do s=$(<$p/stat) || continue; s=${s##*) }; set -- $s; [ $2 = 1 ] && n=$((n+1)); done 2>/dev/null; echo $n`)
				if strings.TrimSpace(out) != want {
					t.Errorf("helper has %s children after the bomb, want %s (%+v)", strings.TrimSpace(out), want, e)
				}
				if server {
					if _, out := s.run("kill -0 $(cat " + script + ".pid) && echo alive"); out != "alive\n" {
						t.Error("the server died")
					}
				}
			})
		}
	}
}

// TestForgeryIsRefused: with a sandbox's capabilities nobody opens the helper's
// pipes or reads its memory.
func TestForgeryIsRefused(t *testing.T) {
	namespace(t)
	for name, drop := range map[string][]string{
		"root":         capabilities,
		"another user": {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.Chmod(filepath.Dir(binary), 0o755); err != nil { // the other user must reach the binary
				t.Fatal(err)
			}
			b := launch(t, append(append(slices.Clone(unshare), drop...), binary)...)
			b.setup(helper.Setup{Dir: "/"})
			for _, try := range []string{"printf forged > /proc/1/fd/1", "cat /proc/1/environ", "head -c1 /proc/1/mem", "readlink /proc/1/fd/1", "cat /proc/1/maps"} {
				if e, out := b.run(try); e.ExitCode == 0 {
					t.Errorf("%s: worked: %q", try, out)
				}
			}
		})
	}
}

// pidsGroup makes a control group with at most n processes.
func pidsGroup(t *testing.T, n int) string {
	t.Helper()
	group := "/sys/fs/cgroup/pids/mini-helper-test"
	if err := os.Mkdir(group, 0o750); err != nil {
		t.Skipf("no control group for processes can be made here: %v", err)
	}
	t.Cleanup(func() {
		deadline := time.Now().Add(10 * time.Second)
		for os.Remove(group) != nil && time.Now().Before(deadline) {
			continue
		}
	})
	limit, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(group+"/pids.max", limit, 0o600); err != nil {
		t.Skipf("processes cannot be limited here: %v", err)
	}
	return group
}

func pid1In(t *testing.T, group string) *box {
	t.Helper()
	b := launch(t, "bash", "-c", "echo $$ >"+group+"/cgroup.procs && exec unshare --pid --fork --kill-child --mount-proc "+binary)
	b.setup(helper.Setup{Dir: t.TempDir()})
	return b
}
