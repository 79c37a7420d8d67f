package local_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/local"
)

// TestDirect tests commands without a helper.
func TestDirect(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sandbox := openAs(t, local.Config{Dir: dir})
	cancelled, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, tt := range []struct {
		name    string
		command env.Command
		ctx     context.Context
		want    env.Result
		output  string
		err     error
	}{
		{name: "output and variables", command: env.Command{Script: "echo $A; echo b >&2", Env: map[string]string{"A": "a"}}, output: "a\nb\n"},
		{name: "exit code", command: env.Command{Script: "exit 7"}, want: env.Result{ExitCode: 7}},
		{name: "signal", command: env.Command{Script: "kill -9 $$"}, want: env.Result{ExitCode: 137, Signal: 9}},
		{name: "another interpreter", command: env.Command{Script: "echo ${0##*/}", Interpreter: []string{"sh", "-c"}}, output: "sh\n"},
		{name: "no such folder", command: env.Command{Script: "true", Dir: "nowhere"}, want: env.Result{ExitCode: -1, Failure: "x"}},
		{name: "no such shell", command: env.Command{Script: "true", Interpreter: []string{"/no/such/shell"}}, want: env.Result{ExitCode: -1, Failure: "x"}},
		{name: "in the background", command: env.Command{Script: "sleep 300 & echo a"}, output: "a\n"},
		{
			name: "a busy machine, where the output is read late", output: "a\nb\n",
			command: env.Command{Script: "echo a; until [ -e read ]; do sleep 0.01; done; echo b; sleep 300 &", OnOutput: func([]byte) {
				if err := os.WriteFile(filepath.Join(dir, "read"), nil, 0o600); err != nil {
					t.Error(err)
				}
				time.Sleep(200 * time.Millisecond) // the late reader: the command ends meanwhile
			}},
		},
		{name: "timeout", command: env.Command{Script: "echo a; sleep 300 | sleep 300", Timeout: 5 * time.Second}, output: "a\n", want: env.Result{ExitCode: -1, TimedOut: true, Killed: 1}},
		{name: "cancelled", command: env.Command{Script: "echo a; sleep 300", OnOutput: func([]byte) { cancel() }}, ctx: cancelled, output: "a\n", want: env.Result{ExitCode: -1, Killed: 1}, err: context.Canceled},
		{name: "sink that fails", command: env.Command{Script: "echo a; sleep 300", Sink: failingSink{}}, want: env.Result{ExitCode: -1, Killed: 1}, err: env.ErrSink},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx := t.Context()
			if tt.ctx != nil {
				ctx = tt.ctx
			}
			r, err := sandbox.Execute(ctx, tt.command)
			got := env.Result{ExitCode: r.ExitCode, Signal: r.Signal, TimedOut: r.TimedOut, Killed: r.Killed}
			if (r.Failure != "") != (tt.want.Failure != "") {
				t.Errorf("failure %q", r.Failure)
			}
			tt.want.Failure = ""
			if string(r.Output) != tt.output || !equal(got, tt.want) || !errors.Is(err, tt.err) {
				t.Errorf("output %q, %+v, error %v", r.Output, got, err)
			}
		})
	}
	long, err := sandbox.Execute(t.Context(), env.Command{Script: "head -c 20000000 /dev/zero"})
	if err != nil || !long.Truncated || long.Bytes != 20_000_000 || len(long.Output) != env.DefaultOutputLimit {
		t.Errorf("kept %d of %d bytes, truncated %v, error %v", len(long.Output), long.Bytes, long.Truncated, err)
	}
	var tree bytes.Buffer
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(sandbox.Get(t.Context(), "file", &tree), sandbox.Put(t.Context(), "copy", &tree)); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "copy", "file")); err != nil || string(text) != "text" {
		t.Errorf("copied %q, %v", text, err)
	}
}

func equal(a, b env.Result) bool {
	return a.ExitCode == b.ExitCode && a.Signal == b.Signal && a.TimedOut == b.TimedOut && a.Killed == b.Killed
}

type failingSink struct{}

func (failingSink) Write([]byte) (int, error) { return 0, errors.New("full") }

// TestDirectClose closes the environment while a command and a background process run.
func TestDirectClose(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sandbox := openAs(t, local.Config{Dir: dir})
	run(t, sandbox, "sleep 300 >/dev/null 2>&1 & echo $! >background")
	done := make(chan error, 1)
	go func() {
		_, err := sandbox.Execute(t.Context(), env.Command{Script: "echo $$ >pid; sleep 300"})
		done <- err
	}()
	await(t, "the command runs", func() bool {
		pid, err := os.ReadFile(dir + "/pid")
		return err == nil && strings.HasSuffix(string(pid), "\n")
	})
	if err := sandbox.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, env.ErrClosed) {
		t.Errorf("the command returned %v, want env.ErrClosed", err)
	}
	for _, file := range []string{"/pid", "/background"} {
		await(t, file+" is gone", func() bool { return !alive(t, dir+file) })
	}
	if _, err := sandbox.Execute(t.Context(), env.Command{Script: "true"}); !errors.Is(err, env.ErrClosed) {
		t.Errorf("after the close: %v", err)
	}
}
