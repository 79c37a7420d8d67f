package child_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper"
	"github.com/minibench/mini/env/helper/child"
	"github.com/minibench/mini/env/helper/child/childtest"
	"github.com/minibench/mini/env/scratch"
)

func startWithTool(t *testing.T, p *child.Program) *child.Environment {
	t.Helper()
	sandbox, err := child.Start(t.Context(), child.Config{
		Name: "test", Program: p, Env: []string{"PATH=/usr/bin:/bin"}, Setup: helper.Setup{Dir: t.TempDir(), ToolDir: p.ToolDir()},
	})
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	p, err := child.Load(file, "")
	if err != nil {
		t.Fatal(err)
	}
	requireMissing := func(when string) {
		t.Helper()
		if _, err := os.Stat(p.ToolDir()); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", when, err)
		}
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
	if left := scratch.Abandoned(); len(left) > 0 {
		t.Errorf("a sweep would remove %q", left)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	requireMissing("after Close")
}

// TestToolDirError: if the directory cannot be created, commands with tools are not
// run, and their results say why. Other commands run.
func TestToolDirError(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	file, err := os.ReadFile(childtest.File(t))
	if err != nil {
		t.Fatal(err)
	}
	p, err := child.Load(file, "")
	if err != nil {
		t.Fatal(err)
	}
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
