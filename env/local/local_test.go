package local_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/envtest"
	"github.com/minibench/mini/env/helper/child"
	"github.com/minibench/mini/env/helper/child/childtest"
	"github.com/minibench/mini/env/local"
	"github.com/minibench/mini/env/scratch"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

func TestMain(m *testing.M) {
	runOwner()
	goleak.VerifyTestMain(m)
}

// openWith opens an environment with a helper.
func openWith(t *testing.T, c local.Config) *local.Local {
	t.Helper()
	if c.Helper == nil {
		c.Helper = childtest.Program(t)
	}
	return openAs(t, c)
}

func openAs(t *testing.T, c local.Config) *local.Local {
	t.Helper()
	sandbox, err := local.New(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := sandbox.Close(t.Context()); err != nil { // Close must work although t.Context() has ended
			t.Errorf("close: %v", err)
		}
	})
	return sandbox
}

// run runs a script, which must exit with 0, and returns its output.
func run(t *testing.T, sandbox env.Environment, script string) string {
	t.Helper()
	r, err := sandbox.Execute(t.Context(), env.Command{Script: script})
	if err != nil || r.ExitCode != 0 {
		t.Errorf("%.60q: exit code %d, failure %q, error %v, output %q", script, r.ExitCode, r.Failure, err, r.Output)
	}
	return string(r.Output)
}

// hostOptions declares the capabilities that the host lacks.
var hostOptions = func() (options []envtest.Option) {
	for _, capability := range []envtest.Capability{envtest.OwnProcesses, envtest.ProcessLimit, envtest.ShieldedInit, envtest.OtherUsers} {
		options = append(options, envtest.WithoutCapability(capability, "commands run on the host, as the user"))
	}
	return options
}()

func TestConformance(t *testing.T) {
	program := childtest.Program(t)
	envtest.Run(t, func(t *testing.T) env.Environment {
		t.Helper()
		return openWith(t, local.Config{Dir: t.TempDir(), Helper: program})
	}, append(hostOptions, envtest.SharedProcessTable())...)
}

func TestSecret(t *testing.T) {
	for name, want := range map[string]bool{
		"OPENAI_API_KEY": true, "openai_api_key": true, "GITHUB_TOKEN": true, "DB_PASSWORD": true, "CLIENT_SECRET": true,
		"AWS_SECRET_ACCESS_KEY": true, "AWS_ACCESS_KEY_ID": true, "AWS_SESSION_TOKEN": true, "TOKEN": true, "API_KEY": true,
		"PGPASSWORD": true, "GOOGLE_APPLICATION_CREDENTIALS": true,
		"PATH": false, "HOME": false, "TOKENIZERS_PARALLELISM": false, "SECRETARY": false, "KEYBOARD": false,
		"MAX_TOKENS": false, "PWD": false, "CPATH": false, "": false,
	} {
		assert.Equal(t, want, local.IsSecret(name), "IsSecret(%q)", name)
	}
}

func TestVariables(t *testing.T) {
	t.Setenv("MINI_TEST_API_KEY", "hidden")
	t.Setenv("MINI_TEST_GIVEN_TOKEN", "of the host")
	t.Setenv("MINI_TEST_PLAIN", "seen")
	t.Setenv("MINI_TEST_PLAIN_TOO", "hidden by name")
	sandbox := openWith(t, local.Config{Env: map[string]string{"MINI_TEST_GIVEN_TOKEN": "given"}, Hidden: []string{"MINI_TEST_PLAIN_TOO"}})
	assert.Equal(t, "unset given seen\n", run(t, sandbox, `echo "${MINI_TEST_API_KEY-unset} $MINI_TEST_GIVEN_TOKEN $MINI_TEST_PLAIN"`), "output")
	assert.Equal(t, "0\n", run(t, sandbox, `tr '\0' '\n' </proc/self/environ | grep -c hidden; true`), "the secret in the environment")
}

// TestGitVariables: commands do not inherit git variables, such as those of a hook that
// started mini. They get those in Config.Env.
func TestGitVariables(t *testing.T) {
	for _, name := range []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_CONFIG_COUNT", "GIT_PREFIX"} {
		t.Setenv(name, "of the host")
	}
	for name, program := range map[string]*child.Program{"direct": nil, "helper": childtest.Program(t)} {
		t.Run(name, func(t *testing.T) {
			sandbox := openWith(t, local.Config{Env: map[string]string{"GIT_AUTHOR_NAME": "given"}, Helper: program})
			assert.Equal(t, "GIT_AUTHOR_NAME=given\n", run(t, sandbox, `env | grep ^GIT_`), "output")
		})
	}
}

// TestCleanEnv: commands get only the variables of child.FilterEnv and those in
// Config.Env.
func TestCleanEnv(t *testing.T) {
	t.Setenv("MINI_TEST_PLAIN", "of the host")
	t.Setenv("LC_TEST", "kept")
	for name, program := range map[string]*child.Program{"direct": nil, "helper": childtest.Program(t)} {
		t.Run(name, func(t *testing.T) {
			sandbox := openWith(t, local.Config{CleanEnv: true, Env: map[string]string{"MINI_TEST_GIVEN": "given"}, Helper: program})
			got := run(t, sandbox, `env | cut -d= -f1 | sort | tr '\n' ' '; echo "$PATH"`)
			names, path, _ := strings.Cut(strings.TrimSuffix(got, "\n"), "/")
			assert.Equal(t, os.Getenv("PATH"), "/"+path, "PATH")
			for _, name := range strings.Fields(names) {
				allowed := strings.HasPrefix(name, "LC_") || slices.Contains([]string{
					"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TERM", "TZ", "TMPDIR", // of the host
					"MINI_TEST_GIVEN", "MINI_LOCAL_SANDBOX", "PWD", "SHLVL", "_", // mini's and the shell's
				}, name)
				if !allowed {
					t.Errorf("%s is set", name)
				}
			}
			for _, want := range []string{"MINI_TEST_GIVEN", "LC_TEST"} {
				if !slices.Contains(strings.Fields(names), want) {
					t.Errorf("%s is missing", want)
				}
			}
		})
	}
}

// TestDisposable: Close removes a disposable directory, and no other.
func TestDisposable(t *testing.T) {
	for _, disposable := range []bool{true, false} {
		dir, err := scratch.New("local-test")
		require.NoError(t, err)
		sandbox := openWith(t, local.Config{Dir: dir, Disposable: disposable, Warnings: []string{"empty"}})
		if i := sandbox.Info(); i.Disposable != disposable || !slices.Equal(i.Warnings, []string{"empty"}) {
			t.Errorf("info is %+v", i)
		}
		run(t, sandbox, "mkdir -p a/b && touch a/b/c && chmod 0 a/b/c a/b a")
		assert.NoError(t, sandbox.Close(t.Context()))
		if _, err := os.Lstat(dir); (err == nil) == disposable {
			t.Errorf("disposable %v, and afterwards: %v", disposable, err)
		}
		assert.NoError(t, scratch.Remove(dir))
	}
}

func TestConfig(t *testing.T) {
	cwd, err := os.Getwd()
	require.NoError(t, err)
	t.Run("zero value", func(t *testing.T) {
		sandbox := openWith(t, local.Config{})
		if sandbox.Info().Dir != cwd || run(t, sandbox, "pwd") != cwd+"\n" || !sandbox.Info().Network {
			t.Errorf("info is %+v", sandbox.Info())
		}
	})
	t.Run("relative directories", func(t *testing.T) {
		dir := t.TempDir()
		t.Chdir(dir)
		require.NoError(t, os.MkdirAll("a/b", 0o750))
		sandbox := openWith(t, local.Config{Dir: "a"})
		r, err := sandbox.Execute(t.Context(), env.Command{Script: "pwd", Dir: "b"})
		if want := filepath.Join(dir, "a/b") + "\n"; err != nil || string(r.Output) != want {
			t.Errorf("output %q, error %v; want %q", r.Output, err, want)
		}
	})
	t.Run("interpreter", func(t *testing.T) {
		sandbox := openWith(t, local.Config{Interpreter: []string{"sh", "-ec"}})
		r, err := sandbox.Execute(t.Context(), env.Command{Script: "false; echo not reached"})
		if err != nil || r.ExitCode != 1 || len(r.Output) > 0 {
			t.Errorf("exit code %d, output %q, error %v", r.ExitCode, r.Output, err)
		}
	})
	t.Run("no such interpreter", func(t *testing.T) {
		sandbox := openWith(t, local.Config{Interpreter: []string{"no-such-shell", "-c"}})
		r, err := sandbox.Execute(t.Context(), env.Command{Script: "true"})
		if err != nil || r.ExitCode != -1 || r.Failure == "" {
			t.Errorf("exit code %d, failure %q, error %v", r.ExitCode, r.Failure, err)
		}
	})
	t.Run("default timeout", func(t *testing.T) {
		sandbox := openWith(t, local.Config{Timeout: 300 * time.Millisecond})
		r, err := sandbox.Execute(t.Context(), env.Command{Script: "sleep 60"})
		if err != nil || !r.TimedOut {
			t.Errorf("timed out %v, error %v", r.TimedOut, err)
		}
	})
	for name, c := range map[string]local.Config{
		"missing directory": {Dir: "/no/such/place"},
		"a file":            {Dir: "/etc/passwd"},
		"negative timeout":  {Timeout: -1},
		"bad variable":      {Env: map[string]string{"A=B": "c"}},
		"empty interpreter": {Interpreter: []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			sandbox, err := local.New(t.Context(), c)
			if err == nil {
				t.Fatal(errors.Join(errors.New("no error"), sandbox.Close(t.Context())))
			}
			var envErr *env.Error
			if isDir := c.Dir != ""; errors.As(err, &envErr) != isDir {
				t.Errorf("error %v; only a missing directory is an env.Error", err)
			}
		})
	}
}
