//go:build full && linux

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
)

// If the engine is unreachable, mini prints the error in one line and a hint in another,
// and exits with code 2.
func TestUnreachableEngine(t *testing.T) {
	t.Parallel()
	place := newMistakePlace(t)
	silent := silentPort(t)
	tests := map[string]struct {
		host, say string
		plain     bool // as a user without root's rights
	}{
		"a closed port":                {host: "tcp://" + closedAddress, say: "nothing answers"},
		"no such socket":               {host: "unix:///nowhere/docker.sock", say: "nothing answers"},
		"accepts and never answers":    {host: "tcp://" + silent, say: "no answer in"},
		"a socket that is not for all": {host: "unix://" + lockedSocket(t), say: "permission denied", plain: true},
	}
	for name, tt := range tests {
		for _, command := range []string{"mini bench --subset rows.jsonl --model-class scripted -c model.replies=replies.yaml -o out", "mini clean"} {
			t.Run(name+"/"+strings.Join(strings.Fields(command)[:2], " "), func(t *testing.T) {
				t.Parallel()
				if tt.plain {
					command = "plain_user " + command
				}
				code, output := place.runWithEngine(t, tt.host, command)
				if reason, ok := skipReason(output); ok {
					t.Skip(reason)
				}
				if code != 2 || !strings.Contains(output, tt.say) || strings.Count(output, "\n") != 2 || !strings.HasPrefix(output, "mini: ") {
					t.Errorf("exit code %d, want 2, a line with %q and a hint; got:\n%s", code, tt.say, output)
				}
			})
		}
	}
}

// runWithEngine runs a command with the address of an engine. It kills a command that does
// not end.
func (p *mistakePlace) runWithEngine(t *testing.T, host, command string) (code int, output string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/mistakes")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", prelude+command)
	cmd.Dir = dir
	cmd.Env = append(append([]string{}, p.env...), "PATH="+binFolder(t)+":"+os.Getenv("PATH"), "HOME="+dir, "TMPDIR="+tempFolder(t), "DOCKER_HOST="+host)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), out.String()
	} else if err != nil {
		t.Fatal(err)
	}
	return 0, out.String()
}

// silentPort listens on a port that accepts connections and never responds.
func silentPort(t *testing.T) string {
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
			defer conn.Close() // the connections stay open until the test ends
		}
	}()
	t.Cleanup(func() {
		_ = l.Close() // ends the loop
		<-done
	})
	return l.Addr().String()
}

// lockedSocket listens on a socket that only root can connect to.
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
