//go:build full

package main_test

import (
	"archive/zip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/minibench/mini/env/docker/dockertest"
)

// installVersion is the version under which TestInstall publishes this source.
const installVersion = "v0.0.1"

// TestInstall: go install and go build give a mini that runs containers, without the helper
// that make build embeds, with CGO_ENABLED=0 and unset, in an empty GOPATH.
func TestInstall(t *testing.T) {
	dockertest.Engine(t)
	source := t.TempDir()
	copySource(t, source)
	proxy := publish(t, source)
	gopath := t.TempDir()
	environ := map[string]string{
		"GOPATH": gopath, "GOFLAGS": "-modcacherw -trimpath", "GOSUMDB": "off", "GOTOOLCHAIN": "local",
		"GOPROXY": "file://" + proxy + ",file://" + goEnv(t, "GOMODCACHE") + "/cache/download",
		"GOCACHE": goEnv(t, "GOCACHE"), "HOME": t.TempDir(), "PATH": os.Getenv("PATH"), "DOCKER_HOST": os.Getenv("DOCKER_HOST"),
	}
	run := func(changes map[string]string, dir, name string, args ...string) (string, error) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		all := maps.Clone(environ)
		maps.Copy(all, changes)
		for _, key := range slices.Sorted(maps.Keys(all)) {
			cmd.Env = append(cmd.Env, key+"="+all[key])
		}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	t.Run("embedded", func(t *testing.T) {
		dir := t.TempDir()
		mod, err := os.ReadFile(source + "/go.mod") // the same versions as mini's, since others are not on this machine
		if err != nil {
			t.Fatal(err)
		}
		own := strings.Replace(string(mod), "module github.com/minibench/mini\n", "module example.com/embedding\n", 1) +
			"\nrequire github.com/minibench/mini " + installVersion + "\n"
		if err := errors.Join(os.WriteFile(dir+"/main.go", []byte(embedding), 0o600), os.WriteFile(dir+"/go.mod", []byte(own), 0o600)); err != nil {
			t.Fatal(err)
		}
		if out, err := run(map[string]string{"CGO_ENABLED": "0"}, dir, "go", "build", "-mod=mod", "-o", "embedding"); err != nil {
			t.Fatal(err, out)
		}
		defer removeVolume(t, dir+"/embedding")
		if out, err := run(nil, dir, dir+"/embedding"); err != nil || !strings.HasPrefix(out, "works in /") {
			t.Errorf("%v, %s", err, out)
		}
	})
	const building = "mini: building the sandbox helper"
	for _, tt := range []struct {
		name, cgo string
		command   []string
		mini      string
		version   string
	}{
		{"static", "0", []string{"install", "github.com/minibench/mini/cmd/mini@" + installVersion}, gopath + "/bin/mini", installVersion},
		{"dynamic", "", []string{"install", "github.com/minibench/mini/cmd/mini@" + installVersion}, gopath + "/bin/mini", installVersion},
		{"checkout", "", []string{"build", "./cmd/mini"}, source + "/mini", "dev"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			changes := map[string]string{}
			if tt.name == "checkout" { // -trimpath, with which Go caches more, hides where the source is
				changes["GOFLAGS"], changes["GOMODCACHE"] = "", goEnv(t, "GOMODCACHE")
			}
			if tt.cgo != "" {
				changes["CGO_ENABLED"] = tt.cgo
			}
			if out, err := run(changes, source, "go", tt.command...); err != nil {
				t.Fatal(err, out)
			}
			defer removeVolume(t, tt.mini)
			if out, err := run(nil, source, tt.mini, "--version"); err != nil || !strings.Contains(out, " "+tt.version+" ") {
				t.Errorf("version %s, %v", out, err)
			}
			cgo, _ := run(nil, source, "go", "env", "CGO_ENABLED")
			dynamic := tt.cgo == "" && strings.TrimSpace(cgo) == "1"
			bench := []string{"bench", "--subset", "demo", "-i", "minidemo__ledger-17", "-o"}
			if dynamic {
				out, err := run(map[string]string{"PATH": "/usr/bin/none"}, source, tt.mini, append(bench, filepath.Join(t.TempDir(), "run"))...)
				if err == nil || !strings.Contains(out, "CGO_ENABLED=0") || strings.Count(out, "\n") > 1 {
					t.Errorf("without a toolchain: %v, %s", err, out)
				}
			}
			for again := range 2 {
				changes := map[string]string{}
				if again == 1 { // what was built needs no toolchain
					changes["PATH"] = "/usr/bin/none"
				}
				out, err := run(changes, source, tt.mini, append(bench, filepath.Join(t.TempDir(), "run"))...)
				if err != nil || !strings.Contains(out, "1 submitted") {
					t.Errorf("%v, %s", err, out)
				}
				if want := dynamic && again == 0; strings.Contains(out, building) != want {
					t.Errorf("it builds the helper: %v; want %v: %s", !want, want, out)
				}
			}
		})
	}
}

// embedding is a program that embeds mini.
const embedding = `package main

import (
	"context"
	"fmt"
	"os"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/helper/binaries"
)

func main() {
	binaries.Init(os.Stderr)
	ctx := context.Background()
	engine, err := docker.Open(ctx, docker.EngineConfig{})
	if err == nil {
		var sandbox *docker.Container
		if sandbox, err = engine.Start(ctx, docker.Config{Image: "mini-demo-ledger"}); err == nil {
			var result env.Result
			result, err = sandbox.Execute(ctx, env.Command{Script: "echo works in $(pwd)"})
			fmt.Printf("%s%v\n", result.Output, sandbox.Close(ctx))
		}
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
`

// removeVolume removes the engine's copy of an executable that is its own helper, if it is one.
func removeVolume(t *testing.T, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	name := fmt.Sprintf("mini-helper-%x-%s", sum[:8], runtime.GOARCH)
	_ = dockertest.Client(t).VolumeRemove(t.Context(), name, false) // most have none
}

// goEnv returns a variable of the Go toolchain.
func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// copySource copies the files of the project to dir, without what is built.
func copySource(t *testing.T, dir string) {
	t.Helper()
	root := filepath.Join("..", "..")
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	list, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		data, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // removed since the last commit
		}
		to := filepath.Join(dir, name)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(to), 0o755)
		}
		if err == nil {
			err = os.WriteFile(to, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// publish makes a folder that serves a source folder as a module proxy does.
func publish(t *testing.T, source string) string {
	t.Helper()
	proxy := t.TempDir()
	dir := filepath.Join(proxy, "github.com", "minibench", "mini", "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(dir, installVersion+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	z := zip.NewWriter(file)
	err = filepath.WalkDir(source, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(source, path)
		if err != nil {
			return err
		}
		w, err := z.Create("github.com/minibench/mini@" + installVersion + "/" + filepath.ToSlash(name))
		if err != nil {
			return err
		}
		r, err := os.Open(path)
		if err != nil {
			return err
		}
		defer r.Close()
		_, err = io.Copy(w, r)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{
		installVersion + ".mod": string(mod), installVersion + ".info": `{"Version":"` + installVersion + `","Time":"2026-01-02T03:04:05Z"}`,
		"list": installVersion + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return proxy
}
