package cli_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/env/docker/dockertest"
)

// An engine that cannot be reached is said in a line and what to do about it,
// with exit code 2, and nothing waits for it for long.
func TestUnreachableEngine(t *testing.T) {
	place := newMistakePlace(t)
	mute := mutePort(t)
	tests := map[string]struct {
		host, say string
		plain     bool // as a user without root's rights
	}{
		"a closed port":                {host: "tcp://" + closedAddress(t), say: "Cannot connect"},
		"no such socket":               {host: "unix:///nowhere/docker.sock", say: "Cannot connect"},
		"accepts and never answers":    {host: "tcp://" + mute, say: "no answer in"},
		"a socket that is not for all": {host: "unix://" + lockedSocket(t), say: "permission denied", plain: true},
	}
	for name, tt := range tests {
		for _, command := range []string{"mini bench --subset rows.jsonl --model-class scripted -c model.replies=replies.yaml -o out", "mini clean"} {
			t.Run(name+"/"+strings.Join(strings.Fields(command)[:2], " "), func(t *testing.T) {
				t.Parallel()
				if tt.plain {
					command = "plain_user " + command
				}
				code, said, took := place.at(t, tt.host, command)
				if reason, ok := skipReason(said); ok {
					t.Skip(reason)
				}
				if code != 2 || !strings.Contains(said, tt.say) || strings.Count(said, "\n") != 2 || !strings.HasPrefix(said, "mini: ") {
					t.Errorf("exit code %d after %s, want 2, a line with %q and a hint; got:\n%s", code, took, tt.say, said)
				}
				if took > time.Minute {
					t.Errorf("it took %s", took)
				}
			})
		}
	}
}

// An engine that stops answering while mini waits for it to start a sandbox.
func TestFrozenEngineAtStart(t *testing.T) {
	d := dockertest.StartDaemon(t)
	d.Freeze()
	code, said, took := newMistakePlace(t).at(t, d.Host(), "mini clean")
	d.Thaw()
	if code != 2 || !strings.Contains(said, "no answer in") || took > time.Minute {
		t.Errorf("exit code %d after %s: %s", code, took, said)
	}
}

// at runs a command with an engine's address.
func (p *mistakePlace) at(t *testing.T, host, command string) (code int, said string, took time.Duration) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/mistakes")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", prelude+command)
	cmd.Dir = dir
	cmd.Env = append(append([]string{}, p.env...), "HOME="+dir, "DOCKER_HOST="+host)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	begin := time.Now()
	err := cmd.Run()
	took = time.Since(begin)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), out.String(), took
	} else if err != nil {
		t.Fatal(err)
	}
	return 0, out.String(), took
}

// mutePort accepts connections, and that is all.
func mutePort(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close() // all at the end: they stay open on purpose
		}
	}()
	t.Cleanup(func() {
		_ = l.Close() // its end is the loop's
		<-done
	})
	return l.Addr().String()
}

// lockedSocket is one that only root may talk to.
func lockedSocket(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mini-s-") //nolint:usetesting // the path of a socket has room for a hundred bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	return path
}
