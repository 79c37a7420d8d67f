package envtest

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/minibench/mini/env"
)

// exitCodes: the exit code and signal of the shell are reported.
func exitCodes(t *testing.T, s suite) {
	b := s.start(t)
	for _, c := range []struct {
		name, script string
		code, signal int
	}{
		{"success", "true", 0, 0},
		{"failure", "false", 1, 0},
		{"exit code", "exit 42", 42, 0},
		{"largest exit code", "exit 255", 255, 0},
		{"unknown command", "no-such-command-here", 127, 0},
		{"syntax error", "if", 2, 0},
		{"child's signal", "bash -c 'kill -9 $$'; exit $?", 137, 0},
		{"killed shell", "kill -9 $$", 137, 9},
		{"terminated shell", "kill -TERM $$", 143, 15},
		{"aborted shell", "ulimit -c 0; kill -ABRT $$", 134, 6},
		{"whole group killed", "kill -9 0", 137, 9},
		{"last command replaces the shell", "exec bash -c 'kill -SEGV $$'", 139, 11},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := sandbox{b, t}
			r := b.run(env.Command{Script: c.script})
			if r.ExitCode != c.code || r.Signal != c.signal || r.TimedOut || r.Failure != "" {
				t.Errorf("exit code %d, signal %d, timed out %v, failure %q; want %d, %d", r.ExitCode, r.Signal, r.TimedOut, r.Failure, c.code, c.signal)
			}
			if r.Duration <= 0 {
				t.Errorf("duration is %v", r.Duration)
			}
		})
	}
}

// settings: the working directory, environment variables and initial state of a
// command.
func settings(t *testing.T, s suite) {
	b := s.start(t)
	dir := b.tempDir()
	t.Run("uname", func(t *testing.T) {
		b := sandbox{b, t}
		i := b.Info()
		if want := b.sh("uname -srm"); want != i.System+" "+i.Release+" "+i.Machine {
			t.Errorf("info is %+v, uname says %q", i, want)
		}
		if got := b.sh("pwd"); got != i.Dir {
			t.Errorf("commands start in %q, info says %q", got, i.Dir)
		}
	})
	t.Run("directory", func(t *testing.T) {
		b := sandbox{b, t}
		b.sh("mkdir -p '" + dir + "/with space' && ln -s 'with space' " + dir + "/link")
		for _, want := range []string{dir, dir + "/with space", dir + "/link"} {
			if r := b.run(env.Command{Script: "pwd", Dir: want}); string(r.Output) != want+"\n" {
				t.Errorf("pwd is %q, want %q", r.Output, want)
			}
		}
	})
	t.Run("missing directory", func(t *testing.T) {
		b := sandbox{b, t}
		for _, missing := range []string{dir + "/nowhere", "/etc/hostname/x"} {
			r := b.run(env.Command{Script: "pwd", Dir: missing})
			if r.ExitCode != -1 || !strings.Contains(r.Failure, missing) || len(r.Output) != 0 {
				t.Errorf("exit code %d, failure %q, output %q", r.ExitCode, r.Failure, r.Output)
			}
		}
	})
	t.Run("variables", func(t *testing.T) {
		b := sandbox{b, t}
		values := map[string]string{"MINI_A": "1", "MINI_B": "two words\nand a 'line' \"$HOME\"", "MINI_C": "", "PATH": "/mini-first:/bin:/usr/bin"}
		r := b.run(env.Command{Script: `printf '%s|%s|%s|%s' "$MINI_A" "$MINI_B" "${MINI_C-unset}" "$PATH"`, Env: values})
		if want := "1|" + values["MINI_B"] + "||" + values["PATH"]; string(r.Output) != want {
			t.Errorf("output %q, want %q", r.Output, want)
		}
		if got := b.sh(`echo "${MINI_A-unset}"`); got != "unset" {
			t.Errorf("a variable of the last command is still set: %q", got)
		}
	})
	t.Run("precedence", func(t *testing.T) {
		b := sandbox{b, t}
		// Variables of the environment are kept unless the command overrides them.
		initial := b.sh(`printf '%s|%s' "$PATH" "${HOME-unset}"`)
		home := env.Command{Script: `printf '%s|%s' "$PATH" "$HOME"`, Env: map[string]string{"HOME": "/mini-home"}}
		path, _, _ := strings.Cut(initial, "|")
		if r := b.run(home); string(r.Output) != path+"|/mini-home" {
			t.Errorf("output %q, want the initial path and the new home", r.Output)
		}
		if got := b.sh(`printf '%s|%s' "$PATH" "${HOME-unset}"`); got != initial {
			t.Errorf("output %q, want %q as before", got, initial)
		}
	})
	t.Run("impossible variable", func(t *testing.T) {
		b := sandbox{b, t}
		if r := b.run(env.Command{Script: "true", Env: map[string]string{"MINI_A": "a\x00b"}}); r.ExitCode != -1 || r.Failure == "" {
			t.Errorf("exit code %d, failure %q", r.ExitCode, r.Failure)
		}
	})
	t.Run("no shell state", func(t *testing.T) {
		b := sandbox{b, t}
		b.sh("cd /; MINI_LEFT=1; export MINI_LEFT; set -e; umask 0")
		if got := b.sh(`pwd; echo "${MINI_LEFT-unset}"`); got != b.Info().Dir+"\nunset" {
			t.Errorf("output %q", got)
		}
	})
	t.Run("few descriptors", func(t *testing.T) {
		b := sandbox{b, t}
		for name, script := range map[string]string{"short": "", "long": padding(200 << 10)} {
			// 3 belongs to the listing; some shells use 255 internally.
			got := b.sh(script + "\nfor f in /proc/self/fd/*; do f=${f##*/}; test -e /proc/$$/fd/$f && test $f -lt 10 && echo $f; done | sort -u | tr '\\n' ' '")
			if got = strings.TrimSpace(strings.ReplaceAll(got, "3", "")); got != "0 1 2" {
				t.Errorf("a %s script has descriptors %q, want 0 1 2", name, got)
			}
		}
	})
}

// scripts: any text is passed to the shell unchanged.
func scripts(t *testing.T, s suite) {
	b := s.start(t)
	paddings := map[string]string{"": "", " long": padding(130 << 10)}
	for suffix, pad := range paddings {
		for _, c := range []struct{ name, script, want string }{
			{"quoting", `echo 'a  "b"' "c '\$d'" e\ f`, `a  "b" c '$d' e f` + "\n"},
			{"option-like", "-c echo x 2>/dev/null; echo $?", "127\n"},
			{"option-like with a plus", "+x 2>/dev/null; echo $?", "127\n"},
			{"heredoc", "cat <<'X'\n$HOME `x` \\\nX\ncat <<Y\n$((1+1))\nY", "$HOME `x` \\\n2\n"},
			{"several lines", "a=1\n\nif true\nthen\n  echo $a\nfi", "1\n"},
			{"function", "f() { echo in; return 0; }\nf; echo out", "in\nout\n"},
			{"8-bit text", "echo 'h\xc3\xa9 \xff\xfe'", "h\xc3\xa9 \xff\xfe\n"},
			{"carriage return", "echo a\r", "a\r\n"},
			{"comment at the end", "echo a # b", "a\n"},
			{"here string", `cat <<< "x y"`, "x y\n"},
			{"process substitution", "cat <(echo p)", "p\n"},
			{"exit in the middle", "echo a; exit 0; echo b", "a\n"},
		} {
			t.Run(c.name+suffix, func(t *testing.T) {
				b := sandbox{b, t}
				// The padding is a comment after the script, except for the script
				// whose end matters.
				script := c.script
				if pad != "" {
					script += "\n" + pad
				}
				if c.name == "carriage return" {
					script = pad + c.script
				}
				r := b.run(env.Command{Script: script})
				if got := strings.TrimSuffix(string(r.Output), "\n"); got != strings.TrimSuffix(c.want, "\n") || r.ExitCode != 0 {
					t.Errorf("output %q, exit code %d, failure %q; want %q", r.Output, r.ExitCode, r.Failure, c.want)
				}
			})
		}
	}
	t.Run("line numbers", func(t *testing.T) {
		b := sandbox{b, t}
		for name, script := range map[string]string{"short": "\necho $LINENO", "long": "\necho $LINENO\n" + padding(130<<10)} {
			if got := b.sh(script); got != "2" {
				t.Errorf("%s: line %s, want 2", name, got)
			}
		}
	})
	t.Run("exit code of a long script", func(t *testing.T) {
		b := sandbox{b, t}
		if r := b.run(env.Command{Script: padding(130<<10) + "exit 9"}); r.ExitCode != 9 {
			t.Errorf("exit code %d, want 9", r.ExitCode)
		}
	})
	for script, code := range map[string]int{":": 0, "": 0, "!": 1, " ": 0, "\n": 0, "#": 0} {
		t.Run(fmt.Sprintf("%d byte %q", len(script), script), func(t *testing.T) {
			if r := (sandbox{b, t}).run(env.Command{Script: script}); r.ExitCode != code || len(r.Output) != 0 || r.Failure != "" {
				t.Errorf("exit code %d, output %q, failure %q; want %d", r.ExitCode, r.Output, r.Failure, code)
			}
		})
	}
	for _, size := range []int{100<<10 - 1, 100 << 10, 128 << 10, 1 << 20} {
		t.Run(fmt.Sprintf("%d bytes", size), func(t *testing.T) {
			sandbox{b, t}.checkScript(size)
		})
	}
	t.Run("too long", func(t *testing.T) {
		b := sandbox{b, t}
		r := b.run(env.Command{Script: strings.Repeat("#", env.MaxScript+1)})
		if r.ExitCode != -1 || r.Failure == "" {
			t.Errorf("exit code %d, failure %q", r.ExitCode, r.Failure)
		}
	})
	t.Run("NUL byte", func(t *testing.T) {
		b := sandbox{b, t}
		r := b.run(env.Command{Script: "echo a\x00b"})
		if r.ExitCode != -1 || !strings.Contains(r.Failure, "NUL") || len(r.Output) != 0 {
			t.Errorf("exit code %d, failure %q, output %q", r.ExitCode, r.Failure, r.Output)
		}
	})
}

// checkScript runs a script of size bytes, which prints how many of them are in a
// variable.
func (b sandbox) checkScript(size int) {
	b.t.Helper()
	const first, last = "x='", "'; echo ${#x}"
	n := size - len(first) - len(last)
	if got := b.sh(first + strings.Repeat("y", n) + last); got != fmt.Sprint(n) {
		b.t.Errorf("the shell saw %s bytes, want %d", got, n)
	}
}

// padding returns comment lines of about n bytes.
func padding(n int) string {
	const line = "# padding that makes the script too long for one argument\n"
	return strings.Repeat(line, n/len(line)+1)
}

// closeEnvironment: Close can be called twice, and commands and transfers then return
// env.ErrClosed.
func closeEnvironment(t *testing.T, s suite) {
	b := s.start(t)
	b.run(env.Command{Script: "sleep 300 & setsid sleep 300 &"})
	for range 2 {
		if err := b.Close(t.Context()); err != nil {
			t.Fatalf("close: %v", err)
		}
	}
	if _, err := b.Execute(t.Context(), env.Command{Script: "true"}); !errors.Is(err, env.ErrClosed) {
		t.Errorf("execute after close: %v, want env.ErrClosed", err)
	}
	if f, ok := b.Environment.(env.Files); ok {
		if err := f.Put(t.Context(), "/tmp", tarStream(t, nil)); !errors.Is(err, env.ErrClosed) {
			t.Errorf("put after close: %v, want env.ErrClosed", err)
		}
		if err := f.Get(t.Context(), "/tmp", io.Discard); !errors.Is(err, env.ErrClosed) {
			t.Errorf("get after close: %v, want env.ErrClosed", err)
		}
	}
}
