package server_test

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// toolCommand is a running command that may call tools.
type toolCommand struct {
	*helperProcess
	id            uint32
	socket, token string
}

func startToolCommand(b *helperProcess) toolCommand {
	b.t.Helper()
	a := toolCommand{helperProcess: b, id: b.startCommand(helper.Run{AllowTools: true, TimeoutMillis: 60_000}, `echo "$MINI_TOOL_SOCKET $MINI_TOOL_TOKEN"; sleep 300`)}
	var found bool
	a.socket, a.token, found = strings.Cut(strings.TrimSpace(string(b.next().Body)), " ")
	if !found || len(a.token) < 20 || len(a.socket) < 20 {
		b.t.Fatalf("the command has socket %q and token %q", a.socket, a.token)
	}
	return a
}

// connect dials the helper's socket; the connection is closed at the end of the test.
func (a toolCommand) connect() net.Conn {
	a.t.Helper()
	conn, err := net.Dial("unix", "@"+a.socket)
	for deadline := time.Now().Add(20 * time.Second); errors.Is(err, syscall.EAGAIN) && time.Now().Before(deadline); {
		conn, err = net.Dial("unix", "@"+a.socket) // too many connections were waiting
	}
	require.NoError(a.t, err)
	a.t.Cleanup(func() { conn.Close() }) //nolint:errcheck // the helper may have closed it
	require.NoError(a.t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	return conn
}

// sendRequest sends a tool request.
func (a toolCommand) sendRequest(conn net.Conn, req helper.ToolRequest) {
	a.t.Helper()
	body, err := req.Encode()
	require.NoError(a.t, err)
	require.NoError(a.t, helper.WriteFrame(conn, helper.Frame{Kind: helper.KindToolRequest, Body: body}))
}

// readResponse reads the response.
func readResponse(t testing.TB, conn io.Reader) helper.ToolResponse {
	t.Helper()
	f, err := helper.ReadFrame(conn, helper.MaxToolResponseFrame)
	if err != nil || f.Kind != helper.KindToolResponse {
		t.Fatalf("frame %q, %v; want an answer", f.Kind, err)
	}
	got, err := helper.DecodeToolResponse(f.Body)
	require.NoError(t, err)
	return got
}

// reply acts as the client: it reads the next request and responds to it.
func (a toolCommand) reply(n uint32, want ...string) {
	a.t.Helper()
	f := a.next()
	got, body, err := helper.CutRequestNumber(f.Body)
	if err != nil || f.Kind != helper.KindToolRequest || f.ID != a.id || got != n {
		a.t.Fatalf("frame %q of %d, number %d, %v; want request %d of %d", f.Kind, f.ID, got, err, n, a.id)
	}
	req, err := helper.DecodeToolRequest(body)
	if err != nil || req.Token != "" || !slices.Equal(req.Args, want) {
		a.t.Fatalf("request %+v, %v; want %q, and no token", req, err, want)
	}
	reply, err := helper.ToolResponse{Stdout: []byte("for " + want[0])}.Encode()
	require.NoError(a.t, err)
	a.send(helper.KindToolResponse, a.id, helper.WithRequestNumber(n, reply))
}

// ping makes one complete tool call.
func (a toolCommand) ping(n uint32) {
	a.t.Helper()
	conn := a.connect()
	a.sendRequest(conn, helper.ToolRequest{Token: a.token, Args: []string{"ping"}})
	a.reply(n, "ping")
	if got := readResponse(a.t, conn); string(got.Stdout) != "for ping" || got.ExitCode != 0 {
		a.t.Fatalf("answer %+v", got)
	}
}

// TestInvalidToolClients: invalid requests get an error or are dropped, and do not
// disturb other callers.
func TestInvalidToolClients(t *testing.T) {
	b := start(t)
	b.setup(helper.Setup{})
	a := startToolCommand(b)
	a.ping(1)
	good, err := helper.ToolRequest{Token: a.token, Args: []string{"x"}}.Encode()
	require.NoError(t, err)
	huge, err := helper.ToolRequest{Token: "none", Stdin: make([]byte, env.MaxToolRequest)}.Encode()
	require.NoError(t, err)
	for name, sent := range map[string][]byte{
		"garbage":       []byte("GET / HTTP/1.1\r\nHost: helper\r\n\r\n"),
		"length zero":   {0, 0, 0, 0},
		"every length":  {0xff, 0xff, 0xff, 0xff, 'Q', 0, 0, 0, 0},
		"another kind":  frame(t, helper.KindRun, good),
		"an answer":     frame(t, helper.KindToolResponse, good),
		"no request":    frame(t, helper.KindToolRequest, []byte("hello")),
		"an empty one":  frame(t, helper.KindToolRequest, nil),
		"no such token": frame(t, helper.KindToolRequest, huge),
	} {
		conn := a.connect()
		if _, err := conn.Write(sent); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := readResponse(t, conn); got.ExitCode != 1 || !strings.HasPrefix(string(got.Stderr), "mini-tool: ") || len(got.Stdout) > 0 {
			t.Errorf("%s: answer %+v", name, got)
		}
		_, err := conn.Read(make([]byte, 1))
		assert.Error(t, err, "%s: the connection is still open", name)
	}
	a.ping(2)
	// Far more than the maximum number of pending connections, all silent or
	// incomplete.
	for i := range 200 {
		conn := a.connect()
		if i%2 == 0 {
			if _, err := conn.Write(frame(t, helper.KindToolRequest, good)[:20]); err != nil && !errors.Is(err, net.ErrClosed) {
				t.Log(err) // it was dropped
			}
		}
	}
	a.ping(3)
	conn := a.connect()
	a.sendRequest(conn, helper.ToolRequest{Token: a.token, Args: []string{"wait"}})
	require.Equal(t, helper.KindToolRequest, a.next().Kind, "frame")
	require.NoError(t, conn.Close())
	if f := a.next(); f.Kind != helper.KindToolCancel || string(f.Body) != string(helper.WithRequestNumber(4, nil)) {
		t.Errorf("frame %q with %q, want the cancellation of request 4", f.Kind, f.Body)
	}
	a.send(helper.KindToolResponse, a.id, helper.WithRequestNumber(4, make([]byte, 8)))
	a.send(helper.KindToolResponse, a.id, helper.WithRequestNumber(4, make([]byte, 8))) // a second response: ignored
	a.send(helper.KindToolResponse, a.id+9, helper.WithRequestNumber(1, make([]byte, 8)))
	a.ping(5)
	// At the end of the command, callers get an error, and further requests are
	// rejected.
	conn = a.connect()
	a.sendRequest(conn, helper.ToolRequest{Token: a.token, Args: []string{"wait"}})
	require.Equal(t, helper.KindToolRequest, a.next().Kind, "frame")
	a.send(helper.KindCancel, a.id, nil)
	if got := readResponse(t, conn); got.ExitCode != 1 || !strings.Contains(string(got.Stderr), "over") {
		t.Errorf("at the end: %+v", got)
	}
	if e, _ := a.waitExit(a.id); !e.Cancelled {
		t.Errorf("exit is %+v", e)
	}
	conn = a.connect()
	a.sendRequest(conn, helper.ToolRequest{Token: a.token, Args: []string{"late"}})
	if got := readResponse(t, conn); got.ExitCode != 1 || !strings.Contains(string(got.Stderr), "token") {
		t.Errorf("after the end: %+v", got)
	}
	if peak := memory(t, b.cmd.Process.Pid); peak > 16<<10 {
		t.Errorf("peak resident memory is %d KiB", peak)
	}
}

// TestUnreadResponse: a caller that does not read its response does not block others.
func TestUnreadResponse(t *testing.T) {
	b := start(t)
	b.setup(helper.Setup{})
	a := startToolCommand(b)
	large, err := helper.ToolResponse{Stdout: make([]byte, env.MaxToolResponse)}.Encode()
	require.NoError(t, err)
	for n := range uint32(helper.MaxToolRequests) {
		a.sendRequest(a.connect(), helper.ToolRequest{Token: a.token, Args: []string{"much"}})
		require.Equal(t, helper.KindToolRequest, a.next().Kind, "frame")
		a.send(helper.KindToolResponse, a.id, helper.WithRequestNumber(n+1, large))
	}
	a.ping(helper.MaxToolRequests + 1)
}

// TestTokensDiffer: every command has a different token.
func TestTokensDiffer(t *testing.T) {
	b := start(t)
	b.setup(helper.Setup{})
	seen := map[string]bool{}
	for range 5 {
		a := startToolCommand(b)
		if seen[a.token] {
			t.Fatal("the token is that of an earlier command")
		}
		seen[a.token] = true
		b.send(helper.KindCancel, a.id, nil)
		b.waitExit(a.id)
	}
}

// TestForeignCallers: processes outside the sandbox and of other users are rejected,
// even with the right token.
func TestForeignCallers(t *testing.T) {
	t.Run("outside", func(t *testing.T) {
		requireNamespaces(t)
		a := startToolCommand(pid1(t)) // in the network namespace of this test, as a container may be
		conn := a.connect()
		a.sendRequest(conn, helper.ToolRequest{Token: a.token, Args: []string{"x"}})
		if got := readResponse(t, conn); got.ExitCode != 1 || !strings.Contains(string(got.Stderr), "no process of this sandbox") {
			t.Errorf("answer %+v", got)
		}
	})
	t.Run("another user", func(t *testing.T) {
		if os.Getuid() != 0 {
			t.Skip("only root can run processes as two users")
		}
		if err := os.Chmod(filepath.Dir(binary), 0o755); err != nil { // the other users must reach the binary
			t.Fatal(err)
		}
		as := func(user string) []string {
			return []string{"setpriv", "--reuid=" + user, "--regid=" + user, "--clear-groups"}
		}
		b := launch(t, append(as("65534"), binary)...)
		b.setup(helper.Setup{Dir: "/"})
		a := startToolCommand(b)
		line := append(as("65533"), "bash", "-c", `exec -a mini-tool `+binary+` x`)
		cmd := exec.CommandContext(t.Context(), line[0], line[1:]...)
		cmd.Env = []string{helper.SocketVariable + "=" + a.socket, helper.TokenVariable + "=" + a.token, "PATH=/usr/bin:/bin"}
		out, err := cmd.CombinedOutput()
		if failed, ok := errors.AsType[*exec.ExitError](err); !ok || failed.ExitCode() != 1 || !strings.Contains(string(out), "no process of this sandbox") {
			t.Errorf("%q, %v", out, err)
		}
		a.ping(1) // root may call tools
	})
}

// TestNestedTooLate: the helper sends no report for a nested command whose outer
// command has ended.
func TestNestedTooLate(t *testing.T) {
	b := start(t)
	b.setup(helper.Setup{})
	id := b.startCommand(helper.Run{AllowTools: true, TimeoutMillis: 60_000}, "true")
	b.waitExit(id)
	b.startCommand(helper.Run{Outer: id, TimeoutMillis: 60_000}, "echo no")
	b.startCommand(helper.Run{Outer: id + 77, AllowTools: true, TimeoutMillis: 60_000}, "echo no")
	if _, out := b.run("echo on"); out != "on\n" {
		t.Errorf("output %q", out)
	}
}

// TestNestedEndsFirst: the report of a command is sent after those of its nested
// commands.
func TestNestedEndsFirst(t *testing.T) {
	for name, end := range map[string]func(b *helperProcess, outer uint32){
		"timeout": func(*helperProcess, uint32) {},
		"cancel":  func(b *helperProcess, outer uint32) { b.send(helper.KindCancel, outer, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := start(t)
			b.setup(helper.Setup{})
			outer := b.startCommand(helper.Run{AllowTools: true, TimeoutMillis: map[string]int64{"timeout": 5000, "cancel": 60_000}[name]}, "sleep 300")
			inner := b.startCommand(helper.Run{AllowTools: true, Outer: outer, TimeoutMillis: 60_000}, "echo begun; sleep 300")
			if f := b.next(); f.ID != inner || string(f.Body) != "begun\n" {
				t.Fatalf("frame %q of %d: %q", f.Kind, f.ID, f.Body)
			}
			innermost := b.startCommand(helper.Run{Outer: inner, TimeoutMillis: 60_000}, "echo begun; setsid sleep 300 & sleep 300")
			if f := b.next(); f.ID != innermost {
				t.Fatalf("frame %q of %d: %q", f.Kind, f.ID, f.Body)
			}
			end(b, outer)
			for _, id := range []uint32{innermost, inner} {
				if e, _ := b.waitExit(id); !e.OuterEnded || e.Cancelled || e.TimedOut || e.ExitCode != -1 {
					t.Errorf("exit of %d is %+v", id, e)
				}
			}
			if e, _ := b.waitExit(outer); e.OuterEnded || e.TimedOut != (name == "timeout") || e.Cancelled != (name == "cancel") || e.Killed < 3 || e.Survivors != 0 {
				t.Errorf("exit is %+v", e)
			}
		})
	}
}

// TestCancelNested cancels a nested command but not the outer one.
func TestCancelNested(t *testing.T) {
	b := start(t)
	b.setup(helper.Setup{})
	over := filepath.Join(t.TempDir(), "over")
	outer := b.startCommand(helper.Run{AllowTools: true, TimeoutMillis: 60_000}, "until test -e "+over+"; do sleep 0.01; done; echo on")
	inner := b.startCommand(helper.Run{Outer: outer, TimeoutMillis: 60_000}, "sleep 300")
	b.send(helper.KindCancel, inner, nil)
	if e, _ := b.waitExit(inner); !e.Cancelled || e.OuterEnded {
		t.Errorf("exit is %+v", e)
	}
	require.NoError(t, os.WriteFile(over, nil, 0o600))
	if e, out := b.waitExit(outer); e.ExitCode != 0 || string(out) != "on\n" {
		t.Errorf("exit is %+v, output %q", e, out)
	}
}
