package server

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/process"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// toolSetup is a directory with a fake mini-tool, and a home directory whose start-up
// files reset PATH.
type toolSetup struct{ tools, home string }

func newToolSetup(t *testing.T) toolSetup {
	t.Helper()
	dir := t.TempDir()
	p := toolSetup{tools: filepath.Join(dir, `the "tools" $HOME \`), home: filepath.Join(dir, "home")}
	for name, text := range map[string]string{
		filepath.Join(p.tools, env.ToolProgram):   "#!/bin/sh\necho tool $*\n",
		filepath.Join(p.home, ".bash_profile"):    "PATH=/usr/bin:/bin\n",
		filepath.Join(p.home, ".profile"):         "PATH=/usr/bin:/bin\n",
		filepath.Join(p.home, "environment"):      "export PATH=/usr/bin:/bin\n",
		filepath.Join(p.home, "unset"):            "unset PATH\n",
		filepath.Join(p.home, "fixed"):            "PATH=/usr/bin:/bin\nreadonly PATH\n",
		filepath.Join(p.home, "script-with-tool"): "#!/bin/bash\nmini-tool from a script\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o755))
	}
	return p
}

// run runs a script as the server runs commands that may call tools.
func (p toolSetup) run(t *testing.T, shell []string, script string, environ ...string) (env.Result, string) {
	t.Helper()
	runner, err := process.NewRunner()
	require.NoError(t, err)
	defer runner.Close(t.Context())
	c := process.Command{Shell: shell, Dir: p.home, Timeout: 20 * time.Second, Script: script, Env: append([]string{"HOME=" + p.home}, environ...)}
	c.Script, c.Env = withTool(p.tools, c.Shell, c.Script, c.Env)
	var out bytes.Buffer
	res, err := runner.Run(t.Context(), c, &out)
	if err != nil || res.Failure != "" {
		t.Fatalf("%v, %s", err, res.Failure)
	}
	return res, out.String()
}

func TestMiniToolOnPath(t *testing.T) {
	p := newToolSetup(t)
	const path = "PATH=/usr/local/bin:/usr/bin:/bin"
	long := "mini-tool a\n#" + strings.Repeat(" ", 200<<10)
	for _, tt := range []struct {
		name   string
		shell  []string
		script string
		env    []string
		want   string
	}{
		{"bash", nil, "mini-tool a", []string{path}, "tool a\n"},
		{"sh", []string{"sh", "-c"}, "mini-tool a", []string{path}, "tool a\n"},
		{"dash as a login shell", []string{"dash", "-lc"}, "mini-tool a; echo $PATH", []string{path}, "tool a\n/usr/bin:/bin:" + p.tools + "\n"},
		{"bash as a login shell", []string{"bash", "-lc"}, "mini-tool a; echo $PATH", []string{path}, "tool a\n/usr/bin:/bin:" + p.tools + "\n"},
		{"likewise", []string{"bash", "--login", "-c"}, "mini-tool a", []string{path}, "tool a\n"},
		{"BASH_ENV", nil, "mini-tool a", []string{path, "BASH_ENV=" + p.home + "/environment"}, "tool a\n"},
		{"BASH_ENV that changes nothing", nil, "echo $PATH", []string{path, "BASH_ENV=/dev/null"}, "/usr/local/bin:/usr/bin:/bin:" + p.tools + "\n"},
		{"BASH_ENV that takes PATH away", nil, "mini-tool a", []string{path, "BASH_ENV=" + p.home + "/unset"}, "tool a\n"},
		{"the same, where that is an error", []string{"bash", "-euc"}, "mini-tool a", []string{path, "BASH_ENV=" + p.home + "/unset"}, "tool a\n"},
		{"a PATH that cannot be changed", nil, "echo alive", []string{path, "BASH_ENV=" + p.home + "/fixed"}, "alive\n"},
		{"the same, in a shell that ends", []string{"bash", "-ec"}, "echo alive", []string{path, "BASH_ENV=" + p.home + "/fixed"}, "alive\n"},
		{"no PATH", nil, "mini-tool a; env | grep -c ^PATH=", nil, "tool a\n1\n"},
		{"no PATH, and none from the profile", []string{"dash", "-lc"}, "xargs mini-tool <<E\na\nE", nil, "tool a\n"},
		{"behind env", []string{"env", "X=y", "bash", "-lc"}, "mini-tool $X", []string{path}, "tool y\n"},
		{"xargs", []string{"bash", "-lc"}, "printf 'a b' | xargs -n1 mini-tool", []string{path}, "tool a\ntool b\n"},
		{"a script of the command's", nil, "./script-with-tool", []string{path, "BASH_ENV="}, "tool from a script\n"},
		{"a login shell of the command's", nil, "bash -lc 'mini-tool a; echo $PATH'", []string{path}, "tool a\n/usr/bin:/bin\n"},
		{"a shell of the command's", []string{"bash", "-lc"}, "sh -c 'mini-tool a'; bash -c 'mini-tool b c'", []string{path}, "tool a\ntool b c\n"},
		{"a long script", []string{"bash", "-lc"}, long, []string{path}, "tool a\n"},
		{"a long script for sh", []string{"dash", "-lc"}, long, []string{path}, "tool a\n"},
		{"python", []string{"python3", "-c"}, "import os, sys; sys.stdout.flush(); os.system('mini-tool a')", []string{path}, "tool a\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if len(tt.shell) > 0 {
				if _, err := exec.LookPath(tt.shell[0]); err != nil {
					t.Skip("there is no", tt.shell[0])
				}
			}
			if res, got := p.run(t, tt.shell, tt.script, tt.env...); got != tt.want || res.ExitCode != 0 {
				t.Errorf("exit code %d, output %q, want %q", res.ExitCode, got, tt.want)
			}
		})
	}
}

// TestScriptUnchanged: a script behaves as it does without tools, except that bash may
// show the prefix in error messages.
func TestScriptUnchanged(t *testing.T) {
	p := newToolSetup(t)
	for _, shell := range [][]string{{"bash", "-lc"}, {"bash", "-euc"}, {"dash", "-lc"}} {
		if _, err := exec.LookPath(shell[0]); err != nil {
			continue
		}
		for _, script := range []string{
			"", "\n", "# nothing", "# first\nnosuch", "echo $LINENO; nosuch\nnosuch2\necho $LINENO", " -x", "; echo", "&& echo", ")", "echo foo(", "true\necho bar(",
			"! true", "exit 3", "kill -9 $$", "false\necho on", "cat <<E\n$LINENO\nE", "f() {\n echo $LINENO\n}\nf", "echo \"$0\" $#", "\\\necho a", "if true\nthen echo $?; fi", "#!/bin/sh\necho a",
			"echo $?", "echo \"unfinished", "set -e; (exit 4)", "return 2", "set -- a; echo $1", "echo 'a\nb'", "#" + strings.Repeat("x", 120<<10) + "\nnosuch",
		} {
			environ := []string{"HOME=" + p.home, "PATH=/usr/bin:/bin", "BASH_ENV=" + p.home + "/environment"}
			after, got := p.run(t, shell, script, environ[1:]...)
			plain := toolSetup{home: p.home}
			before, want := plain.run(t, shell, script, environ[1:]...)
			got = strings.ReplaceAll(got, scriptPrefix, "")
			if got != want || after.ExitCode != before.ExitCode || after.Signal != before.Signal {
				t.Errorf("%q %.40q: exit code %d, signal %d, %.200q; was %d, %d, %.200q",
					shell, script, after.ExitCode, after.Signal, got, before.ExitCode, before.Signal, want)
			}
		}
	}
}

func TestPrefixOnlyIfNeeded(t *testing.T) {
	environ := []string{"PATH=/bin"}
	for _, tt := range []struct {
		shell   []string
		environ []string
		prefix  bool
	}{
		{nil, environ, false},
		{[]string{"bash", "-c"}, environ, false},
		{[]string{"/bin/bash", "-c"}, append(environ, "BASH_ENV=/x"), true},
		{[]string{"bash", "-c"}, append(environ, "BASH_ENV=/x", "BASH_ENV="), false},
		{[]string{"bash", "-lc"}, environ, true},
		{[]string{"bash", "-eo", "pipefail", "-lc"}, environ, true},
		{[]string{"sh", "-c"}, append(environ, "BASH_ENV=/x"), false},
		{[]string{"zsh", "-c"}, environ, true},
		{[]string{"rbash", "-lc"}, environ, false},
		{[]string{"python3", "-c"}, environ, false},
		{[]string{"bash"}, append(environ, "BASH_ENV=/x"), false},
		{[]string{"sudo", "bash", "-c"}, environ, true},
		{[]string{"ksh", "-c"}, append(environ, "ENV=/x"), true},
	} {
		script, changed := withTool("/.mini/bin", tt.shell, "true", tt.environ)
		assert.Equal(t, tt.prefix, script != "true", "%q with %q: %q", tt.shell, tt.environ, script)
		if path, _ := value(changed, "PATH"); path != "/bin:/.mini/bin" {
			t.Errorf("PATH is %q", path)
		}
	}
	for _, script := range []string{"a\x00b", strings.Repeat("x", env.MaxScript-3)} {
		if got, _ := withTool("/.mini/bin", []string{"bash", "-lc"}, script, environ); got != script {
			t.Error("a script that is invalid, or would be too long with the prefix, was changed")
		}
	}
}
