package skills_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/agent/tools/skills"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/env/local"
)

// newBundle returns a bundle of a skill with files and one without.
func newBundle(t *testing.T) (bundle *skills.Bundle, dir string) {
	t.Helper()
	dir = t.TempDir()
	writeFile(t, dir+"/with-files/SKILL.md", "---\nname: with-files\ndescription: has files\nversion: 3\nallowed-tools: Bash Read\n---\n# Do\n\nbash scripts/hello.sh\n")
	writeFile(t, dir+"/with-files/scripts/hello.sh", "#!/bin/sh\necho hello from \"$(dirname \"$0\")\"\n")
	writeFile(t, dir+"/with-files/references/deep/note.md", "a note\n")
	writeFile(t, dir+"/with-files/assets/blob", "\x00\xff")
	writeFile(t, dir+"/without/SKILL.md", skillText("without"))
	use, err := skills.Load(skills.DirSource(dir)).Select([]string{skills.All})
	if err != nil {
		t.Fatal(err)
	}
	if bundle, err = skills.NewBundle(use); err != nil {
		t.Fatal(err)
	}
	return bundle, dir
}

func call(t *testing.T, tool tools.Tool, args ...string) tools.Result {
	t.Helper()
	res, err := tool.Call(t.Context(), tools.Call{Args: args})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestTool(t *testing.T) {
	bundle, _ := newBundle(t)
	tool := bundle.Tool(skills.Options{})
	if res := call(t, tool); res.Output != "with-files: has files\nwithout: about without\n\nmini-tool skill NAME prints the text of one.\n" {
		t.Errorf("%q", res.Output)
	}
	if res := call(t, tool, "without"); res.Output != "skill without\n\ntext of without\n" {
		t.Errorf("%q", res.Output)
	}
	for want, args := range map[string][]string{
		`there is no skill "with-file"; did you mean with-files?`: {"with-file"},
		`there is no skill "\x1b[2J"; mini-tool skill lists them`: {"\x1b[2J"},
		`there is no skill "../without"; did you mean without?`:   {"../without"},
		"it takes one name, not 2 arguments":                      {"without", "x"},
	} {
		_, err := tool.Call(t.Context(), tools.Call{Args: args})
		if _, usage := errors.AsType[*tools.UsageError](err); !usage || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if a := bundle.Capabilities(); len(a) != 2 || a[0].Name != "with-files" || a[0].Usage != "skill with-files" || a[0].Description != "has files" {
		t.Errorf("%+v", a)
	}
	none, err := skills.NewBundle(nil)
	if err != nil {
		t.Fatal(err)
	}
	if res := call(t, none.Tool(skills.Options{})); res.Output != "there are no skills\n" {
		t.Errorf("%q", res.Output)
	}
}

// sandboxes returns functions that start the sandboxes to test.
func sandboxes(t *testing.T, dir string) map[string]func(t *testing.T) env.Environment {
	t.Helper()
	return map[string]func(t *testing.T) env.Environment{
		"local": func(t *testing.T) env.Environment {
			sandbox, err := local.New(t.Context(), local.Config{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			return sandbox
		},
		"docker":      func(t *testing.T) env.Environment { return container(t, "/tmp") },
		"docker in /": func(t *testing.T) env.Environment { return container(t, "/") },
	}
}

func container(t *testing.T, dir string) env.Environment {
	t.Helper()
	return newContainer(t, docker.Config{Dir: dir})
}

// TestFilesInTheSandbox checks that the files are at the printed path, are
// read-only copies, and are not part of the patch.
func TestFilesInTheSandbox(t *testing.T) {
	work := t.TempDir()
	for name, open := range sandboxes(t, work) {
		t.Run(name, func(t *testing.T) {
			sandbox := open(t)
			t.Cleanup(func() {
				if err := sandbox.Close(context.WithoutCancel(t.Context())); err != nil {
					t.Error(err)
				}
			})
			bundle, origin := newBundle(t)
			o := skills.Options{}
			if name == "local" {
				o.Dir = func() (string, error) { return work + "/files of skills", nil } // callers should avoid the repository
			}
			tool := bundle.Tool(o)
			if err := tool.Prepare(t.Context(), sandbox); err != nil {
				t.Fatal(err)
			}
			res := call(t, tool, "with-files")
			at := skills.DefaultDir
			if name == "local" {
				at = work + "/files of skills"
			}
			want := "skill with-files 3\nIts files are in " + at + "/with-files (read-only); paths in the text are relative to that folder:\n" +
				"  assets/blob (2 bytes)\n  references/deep/note.md (7 bytes)\n  scripts/hello.sh (44 bytes, executable)\n" +
				"It is meant to be followed with these tools alone: Bash, Read\n\n# Do\n\nbash scripts/hello.sh\n"
			if res.Output != want {
				t.Errorf("got\n%s\nwant\n%s", res.Output, want)
			}
			for script, want := range map[string]string{
				"cd '" + at + "/with-files' && stat -c '%a %n' scripts scripts/hello.sh references/deep/note.md && scripts/hello.sh":            "555 scripts\n555 scripts/hello.sh\n444 references/deep/note.md\nhello from scripts\n",
				"od -An -tx1 '" + at + "/with-files/assets/blob'":                                                                               " 00 ff\n",
				"git init -q . && git status --porcelain | grep -i skill; git add -A 2>/dev/null; git ls-files | grep -c hello.sh; rm -rf .git": "0\n",
			} {
				if name == "docker in /" && strings.HasPrefix(script, "git") { // git would add all files of the image
					script = "git init -q . && git status --porcelain -uall tmp; rm -rf .git"
					want = ""
				}
				got, err := sandbox.Execute(t.Context(), env.Command{Script: script})
				if err != nil || string(got.Output) != want {
					t.Errorf("%s: %q, %v", script, got.Output, err)
				}
			}
			if got, err := sandbox.Execute(t.Context(), env.Command{
				Script: "cd '" + at + "/with-files' && chmod -R u+w . && echo spoilt | tee scripts/hello.sh SKILL.md >/dev/null",
			}); err != nil || got.ExitCode != 0 {
				t.Errorf("%s, %v", got.Output, err)
			}
			if own, err := os.ReadFile(filepath.Join(origin, "with-files/scripts/hello.sh")); err != nil || strings.Contains(string(own), "spoilt") {
				t.Errorf("the user's own file: %q, %v", own, err)
			}
			if err := tool.Prepare(t.Context(), sandbox); err != nil { // as for a child
				t.Error(err)
			}
			if other := bundle.Tool(o); other.Prepare(t.Context(), sandbox) != nil || call(t, other, "with-files").Output != want {
				t.Error("once more, over what is there")
			}
		})
	}
}

// TestFilesAreReadOnly checks that users other than root cannot write the files.
func TestFilesAreReadOnly(t *testing.T) {
	sandbox := newContainer(t, docker.Config{User: "1000:1000", Dir: "/tmp"})
	t.Cleanup(func() { _ = sandbox.Close(context.WithoutCancel(t.Context())) }) // the test is over
	bundle, _ := newBundle(t)
	if err := bundle.Tool(skills.Options{}).Prepare(t.Context(), sandbox); err != nil {
		t.Fatal(err)
	}
	got, err := sandbox.Execute(t.Context(), env.Command{Script: "cd /tmp/mini-skills/with-files; for f in scripts/hello.sh scripts/new new; do echo x 2>&1 > $f || echo refused; done; scripts/hello.sh"})
	if err != nil || strings.Count(string(got.Output), "refused") != 3 || !strings.HasSuffix(string(got.Output), "hello from scripts\n") {
		t.Errorf("%s, %v", got.Output, err)
	}
}

// failingSandbox is a sandbox that cannot receive files.
type failingSandbox struct {
	env.Environment
	err error
}

func (b failingSandbox) Put(context.Context, string, io.Reader) error { return b.err }
func (b failingSandbox) Get(context.Context, string, io.Writer) error { return b.err }

func TestNoFiles(t *testing.T) {
	bundle, _ := newBundle(t)
	for want, sandbox := range map[string]env.Environment{
		"Its files are not here: this sandbox does not take files\n": struct{ env.Environment }{},
		"Its files are not here: disk is \"full\"\n":                 failingSandbox{err: errors.New("disk is\n\"full\"")},
	} {
		tool := bundle.Tool(skills.Options{})
		if err := tool.Prepare(t.Context(), sandbox); err != nil {
			t.Fatal(err)
		}
		if res := call(t, tool, "with-files"); !strings.Contains(res.Output, want) || !strings.Contains(res.Output, "# Do") {
			t.Errorf("%s", res.Output)
		}
	}
	lost := &env.Error{Status: env.ContainerDied, Op: "put", Err: errors.New("gone")}
	if err := bundle.Tool(skills.Options{}).Prepare(t.Context(), failingSandbox{err: lost}); !errors.Is(err, lost) {
		t.Errorf("a lost sandbox: %v", err)
	}
	called := false
	o := skills.Options{Dir: func() (string, error) { called = true; return "", nil }}
	none, err := skills.NewBundle(bundle.Skills()[1:])
	if err != nil {
		t.Fatal(err)
	}
	if err := none.Tool(o).Prepare(t.Context(), failingSandbox{err: lost}); err != nil || called {
		t.Errorf("without files: %v, a folder was made: %t", err, called)
	}
}

// newContainer starts a container of the base image.
func newContainer(t *testing.T, c docker.Config) env.Environment {
	t.Helper()
	c.Image = dockertest.Image(t)
	sandbox, err := dockertest.Engine(t).Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return sandbox
}
