package child_test

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper"
	"github.com/minibench/mini/env/helper/child"
	"github.com/minibench/mini/env/helper/child/childtest"
	"github.com/minibench/mini/env/scratch"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, p *child.Program) *child.Environment {
	t.Helper()
	sandbox, err := child.Start(t.Context(), child.Config{
		Name: "test", Program: p, Env: []string{"PATH=/usr/bin:/bin"}, Setup: helper.Setup{Dir: t.TempDir()},
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := sandbox.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return sandbox
}

// TestLostHelper: if a command kills the helper, the sandbox is lost, the error says
// why, and all processes of the sandbox are killed. Another sandbox is not affected.
func TestLostHelper(t *testing.T) {
	p := childtest.Program(t)
	for name, script := range map[string]string{
		"in mid-command":   `exec -a $W sleep 300`,
		"with an orphan":   `(env -i W=$W setsid bash -c '(exec -a $W sleep 300) & exit' </dev/null >/dev/null 2>&1 &); sleep 300`,
		"with a server":    `setsid bash -c 'exec -a $W sleep 300' & sleep 300`,
		"forking all over": `while :; do (setsid bash -c 'exec -a $W sleep 300' &); sleep 0.01; done`,
	} {
		t.Run(name, func(t *testing.T) {
			marker, otherMarker := "mini-lost-"+rand.Text(), "mini-beside-"+rand.Text()
			other := start(t, p)
			if _, err := other.Execute(t.Context(), env.Command{
				Script: `setsid bash -c 'exec -a $W sleep 300' >/dev/null 2>&1 & until grep -qsF -- "$W" /proc/$!/cmdline; do sleep 0.01; done`, Env: map[string]string{"W": otherMarker},
			}); err != nil {
				t.Fatal(err)
			}
			sandbox := start(t, p)
			_, err := sandbox.Execute(t.Context(), env.Command{
				Script: `(sleep 0.3; kill -9 $PPID) & ` + script, Env: map[string]string{"W": marker}, Timeout: time.Minute,
			})
			e, ok := errors.AsType[*env.Error](err)
			if !ok || e.Status != env.ContainerDied || !strings.Contains(err.Error(), "signal 9") || e.Hint == "" {
				t.Errorf("error is %v", err)
			}
			childtest.RequireExit(t, marker, time.Minute)
			if _, nextErr := sandbox.Execute(t.Context(), env.Command{Script: "true"}); !errors.Is(nextErr, e) {
				t.Errorf("afterwards: %v, want the same error", nextErr)
			}
			assert.Equal(t, 1, len(childtest.Running(t, otherMarker)), "processes of the other sandbox are running")
			if r, err := other.Execute(t.Context(), env.Command{Script: "echo well"}); err != nil || string(r.Output) != "well\n" {
				t.Errorf("the other sandbox: %q, %v", r.Output, err)
			}
		})
	}
}

// TestStoppedHelper: Close works if a command has stopped the helper with SIGSTOP.
func TestStoppedHelper(t *testing.T) {
	sandbox := start(t, childtest.Program(t))
	marker := "mini-stopped-" + rand.Text()
	if _, err := sandbox.Execute(t.Context(), env.Command{
		Script: `setsid bash -c 'exec -a $W sleep 300' >/dev/null 2>&1 &`, Env: map[string]string{"W": marker},
	}); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, syscall.Kill(sandbox.PID(), syscall.SIGSTOP))
	assert.NoError(t, sandbox.Close(t.Context()))
	childtest.RequireExit(t, marker, time.Minute)
}

// TestNoHelper: if the process does not become a helper, the error says why, and no
// process is left.
func TestNoHelper(t *testing.T) {
	p := childtest.Program(t)
	marker := "mini-none-" + rand.Text()
	for name, c := range map[string]struct {
		wrapper []string
		wantErr string
	}{
		"no such program":  {[]string{"/no/such/program"}, "no such file"},
		"fails at once":    {[]string{"sh", "-c", "echo because >&2; exit 3"}, "because"},
		"status":           {[]string{"sh", "-c", "exit 3"}, "status 3"},
		"says other words": {[]string{"sh", "-c", "echo hello there, general; cat >/dev/null"}, "frame"},
		"killed":           {[]string{"sh", "-c", "setsid -f bash -c 'exec -a " + marker + " sleep 300'; kill -9 $$"}, "signal 9"},
	} {
		t.Run(name, func(t *testing.T) {
			sandbox, err := child.Start(t.Context(), child.Config{Name: "test", Program: p, Wrapper: c.wrapper})
			if err == nil {
				t.Fatal(errors.Join(errors.New("it started"), sandbox.Close(t.Context())))
			}
			var failed *child.StartError
			if !errors.As(err, &failed) || !strings.Contains(err.Error(), c.wantErr) {
				t.Errorf("error is %v, want one that says %q", err, c.wantErr)
			}
		})
	}
	childtest.RequireExit(t, marker, time.Minute)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("gave up")
	time.AfterFunc(50*time.Millisecond, func() { cancel(cause) })
	_, err := child.Start(ctx, child.Config{Name: "test", Program: p, Wrapper: []string{"sh", "-c", "cat >/dev/null"}})
	assert.ErrorIs(t, err, cause, "after a cancel")
}

// TestWrongHash: Start fails if the helper has another hash.
func TestWrongHash(t *testing.T) {
	_, err := child.Start(t.Context(), child.Config{Name: "test", Program: childtest.ProgramWithWrongHash(t)})
	assert.ErrorIs(t, err, helper.ErrMismatch)
}

// TestDescriptors: commands do not inherit the helper's file and pipes.
func TestDescriptors(t *testing.T) {
	sandbox := start(t, childtest.Program(t))
	r, err := sandbox.Execute(t.Context(), env.Command{Script: `ls /proc/self/fd | wc -l`})
	require.NoError(t, err)
	// ls has the standard three descriptors, and the directory that it reads.
	assert.Equal(t, "4\n", string(r.Output), "commands have more open files than three")
}

func startWithTool(t *testing.T, p *child.Program) *child.Environment {
	t.Helper()
	sandbox, err := child.Start(t.Context(), child.Config{
		Name: "test", Program: p, Env: []string{"PATH=/usr/bin:/bin"}, Setup: helper.Setup{Dir: t.TempDir(), ToolDir: p.ToolDir()},
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := sandbox.Close(t.Context()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return sandbox
}

// TestToolDir: the directory is created for the first command that may call tools,
// shared by all sandboxes, and removed by Program.Close.
func TestToolDir(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	file, err := os.ReadFile(childtest.File(t))
	require.NoError(t, err)
	p, err := child.Load(file, "")
	require.NoError(t, err)
	requireMissing := func(when string) {
		t.Helper()
		_, err := os.Stat(p.ToolDir())
		assert.ErrorIs(t, err, fs.ErrNotExist, "%s", when)
	}
	var sandboxes []*child.Environment
	for range 4 {
		sandboxes = append(sandboxes, startWithTool(t, p))
	}
	if r, err := sandboxes[0].Execute(t.Context(), env.Command{Script: "echo $PATH; mini-tool"}); err != nil || r.ExitCode != 127 || !strings.HasPrefix(string(r.Output), "/usr/bin:/bin\n") {
		t.Errorf("%+v, %v", r, err)
	}
	requireMissing("without tools")

	var wg sync.WaitGroup
	for _, sandbox := range sandboxes {
		wg.Go(func() {
			r, err := sandbox.Execute(t.Context(), env.Command{Script: "mini-tool write f x; command -v mini-tool; echo $PATH", Tools: &env.Tools{InSandbox: []string{"write"}}})
			if err != nil || !strings.HasPrefix(string(r.Output), "created f") || !strings.Contains(string(r.Output), "/usr/bin:/bin:"+p.ToolDir()+"\n") {
				t.Errorf("%s, %v", r.Output, err)
			}
		})
	}
	wg.Wait()
	for name, mode := range map[string]fs.FileMode{p.ToolDir(): fs.ModeDir | 0o500, filepath.Join(p.ToolDir(), env.ToolProgram): 0o500} {
		if info, err := os.Stat(name); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v; want mode %v", name, info, err, mode)
		}
	}
	assert.Equal(t, "", strings.Join(scratch.Abandoned(), " "), "a sweep would remove")
	assert.NoError(t, p.Close())
	requireMissing("after Close")
}

// TestToolDirError: if the directory cannot be created, commands with tools are not
// run, and their results say why. Other commands run.
func TestToolDirError(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	file, err := os.ReadFile(childtest.File(t))
	require.NoError(t, err)
	p, err := child.Load(file, "")
	require.NoError(t, err)
	defer p.Close()
	t.Setenv("TMPDIR", os.Getenv("HOME"))
	sandbox := startWithTool(t, p)
	r, err := sandbox.Execute(t.Context(), env.Command{Script: "true", Tools: &env.Tools{}})
	if err != nil || !strings.Contains(r.Failure, "cannot be made ready") || r.ExitCode != -1 {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := sandbox.Execute(t.Context(), env.Command{Script: "true"}); err != nil || r.ExitCode != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}
