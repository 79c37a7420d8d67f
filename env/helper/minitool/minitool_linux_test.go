package minitool_test

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper"
	"github.com/minibench/mini/env/helper/child/childtest"
	"github.com/minibench/mini/env/helper/minitool"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// program returns the path of a copy of the helper named mini-tool.
func program(t testing.TB) string {
	t.Helper()
	binary, err := os.ReadFile(childtest.File(t))
	require.NoError(t, err)
	name := filepath.Join(t.TempDir(), env.ToolProgram)
	require.NoError(t, os.WriteFile(name, binary, 0o700))
	return name
}

// toolServer accepts one request, as the helper does, and calls respond. It sends the
// request to the channel.
func toolServer(t *testing.T, respond func(net.Conn, helper.ToolRequest)) (socket string, asked <-chan helper.ToolRequest) {
	t.Helper()
	socket = "mini-tool-test-" + strings.ReplaceAll(t.Name(), "/", "-")
	l, err := net.Listen("unix", "@"+socket)
	require.NoError(t, err)
	requests := make(chan helper.ToolRequest, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		f, err := helper.ReadFrame(conn, helper.MaxToolRequestFrame)
		if err != nil || f.Kind != helper.KindToolRequest {
			t.Errorf("frame %q, %v", f.Kind, err)
			return
		}
		req, err := helper.DecodeToolRequest(f.Body)
		if err != nil {
			t.Error(err)
		}
		requests <- req
		respond(conn, req)
	}()
	t.Cleanup(func() {
		_ = l.Close() // nothing was written
		<-done
	})
	return socket, requests
}

// respondWith returns a function that sends a response.
func respondWith(t *testing.T, a helper.ToolResponse) func(net.Conn, helper.ToolRequest) {
	return func(conn net.Conn, _ helper.ToolRequest) {
		body, err := a.Encode()
		if err == nil {
			err = helper.WriteFrame(conn, helper.Frame{Kind: helper.KindToolResponse, Body: body})
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// call is the result of running the program.
type call struct {
	code     int
	out, err string
}

func run(t *testing.T, c *exec.Cmd) call {
	t.Helper()
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(err)
	}
	return call{c.ProcessState.ExitCode(), out.String(), errs.String()}
}

// exitSignal returns the signal that killed a program; -1 if none did.
func exitSignal(c *exec.Cmd) syscall.Signal {
	ws, ok := c.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !ws.Signaled() {
		return -1
	}
	return ws.Signal()
}

func command(t *testing.T, socket string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), program(t), args...)
	c.Env = []string{helper.SocketVariable + "=" + socket, helper.TokenVariable + "=secret"}
	c.Dir = t.TempDir()
	return c
}

func TestResponse(t *testing.T) {
	socket, asked := toolServer(t, respondWith(t, helper.ToolResponse{Stdout: []byte("out\x00\xff"), Stderr: []byte("err\n"), ExitCode: 7}))
	c := command(t, socket, "note", "add", "a b", "", "\xff")
	c.Stdin = strings.NewReader("not asked for")
	if got := run(t, c); got != (call{7, "out\x00\xff", "err\n"}) {
		t.Errorf("%+v", got)
	}
	req := <-asked
	if req.Token != "secret" || strings.Join(req.Args, "|") != "note|add|a b||\xff" || req.Dir != c.Dir || len(req.Stdin) != 0 {
		t.Errorf("asked was %+v", req)
	}
}

func TestInput(t *testing.T) {
	socket, asked := toolServer(t, respondWith(t, helper.ToolResponse{}))
	c := command(t, socket, "note", "add", "-")
	c.Stdin = strings.NewReader("line\x00\n")
	if got := run(t, c); got != (call{}) {
		t.Errorf("%+v", got)
	}
	assert.Equal(t, "line\x00\n", string((<-asked).Stdin), "input")
}

// TestWithoutArguments: without arguments, and for help, mini-tool sends a request to
// the host.
func TestWithoutArguments(t *testing.T) {
	for _, args := range [][]string{{}, {"help"}, {"--help"}, {"read"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			socket, asked := toolServer(t, respondWith(t, helper.ToolResponse{Stdout: []byte("list\n")}))
			if got := run(t, command(t, socket, args...)); got != (call{0, "list\n", ""}) {
				t.Errorf("%+v", got)
			}
			assert.Equal(t, len(args), len((<-asked).Args), "asked")
		})
	}
}

func TestNoServer(t *testing.T) {
	none := command(t, "x", "note")
	none.Env = []string{}
	if got := run(t, none); got != (call{1, "", "mini-tool: no tools are there for this command\n"}) {
		t.Errorf("%+v", got)
	}
	if got := run(t, command(t, "mini-tool-nobody", "note")); got.code != 1 || got.out != "" || !strings.Contains(got.err, "mini-tool: nobody is there to ask: connection refused") {
		t.Errorf("%+v", got)
	}
	if got := run(t, command(t, strings.Repeat("x", 200), "note")); got.code != 1 || got.out != "" || got.err == "" {
		t.Errorf("%+v", got)
	}
	for name, respond := range map[string]func(net.Conn, helper.ToolRequest){
		"hung up":  func(net.Conn, helper.ToolRequest) {},
		"cut":      func(conn net.Conn, _ helper.ToolRequest) { _, _ = conn.Write([]byte{0, 0, 1, 0, 'A'}) },
		"too long": func(conn net.Conn, _ helper.ToolRequest) { _, _ = conn.Write([]byte{0xff, 0, 0, 0, 'A', 0, 0, 0, 0}) },
		"another": func(conn net.Conn, _ helper.ToolRequest) {
			_ = helper.WriteFrame(conn, helper.Frame{Kind: helper.KindHello})
		},
		"empty": func(conn net.Conn, _ helper.ToolRequest) {
			_ = helper.WriteFrame(conn, helper.Frame{Kind: helper.KindToolResponse})
		},
	} {
		t.Run(name, func(t *testing.T) {
			socket, _ := toolServer(t, respond)
			if got := run(t, command(t, socket, "note")); got.code != 1 || got.out != "" || !strings.HasPrefix(got.err, "mini-tool: ") {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestTooLarge(t *testing.T) {
	c := command(t, "never-asked", "note", "-")
	c.Stdin = strings.NewReader(strings.Repeat("x", env.MaxToolRequest))
	if got := run(t, c); got.code != 2 || !strings.Contains(got.err, "more than 128 KB; put what is long into a file") {
		t.Errorf("%+v", got)
	}
	assert.Equal(t, 2, run(t, command(t, "never-asked", "note", strings.Repeat("x", 100<<10), strings.Repeat("x", 30<<10))).code)
}

func TestLocalTools(t *testing.T) {
	c := command(t, "never-asked", "write", "f", "text")
	c.Env = []string{helper.LocalVariable + "=read,write"}
	if got := run(t, c); got.code != 0 || got.out != "created f: 1 line, 4 bytes, no line end at the end\n" {
		t.Errorf("%+v", got)
	}
	notLocal := command(t, "mini-tool-nobody", "edit", "f", "--old", "a", "--new", "b")
	notLocal.Env = append(notLocal.Env, helper.LocalVariable+"=read,write")
	if got := run(t, notLocal); got.code != 1 || !strings.Contains(got.err, "nobody is there to ask") {
		t.Errorf("%+v", got)
	}
}

// TestSignals: signals kill mini-tool like any other program.
func TestSignals(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(s.String(), func(t *testing.T) {
			ended := make(chan struct{})
			socket, asked := toolServer(t, func(net.Conn, helper.ToolRequest) { <-ended })
			c := command(t, socket, "note")
			require.NoError(t, c.Start())
			<-asked
			assert.NoError(t, c.Process.Signal(s))
			_ = c.Wait() // ProcessState has the result
			close(ended)
			if exitSignal(c) != s {
				t.Errorf("it ended with %v", c.ProcessState)
			}
		})
	}
	t.Run("while it is given a file", func(t *testing.T) {
		c := command(t, "never-asked", "write", "f", "-")
		c.Env = append(c.Env, helper.LocalVariable+"=write")
		in, err := c.StdinPipe()
		require.NoError(t, err)
		require.NoError(t, c.Start())
		if _, err := in.Write(bytes.Repeat([]byte("x"), 1<<20)); err != nil { // does not fit into a pipe: some was read
			t.Error(err)
		}
		assert.NoError(t, c.Process.Kill())
		_ = c.Wait() // it was killed
		if left, err := os.ReadDir(c.Dir); err != nil || len(left) > 0 {
			t.Errorf("it left %v, %v", left, err)
		}
	})
	t.Run("pipe", func(t *testing.T) {
		socket, _ := toolServer(t, respondWith(t, helper.ToolResponse{Stdout: bytes.Repeat([]byte("x"), 1<<20)}))
		c := command(t, socket, "note")
		r, w, err := os.Pipe()
		require.NoError(t, err)
		_ = r.Close() // no process reads
		c.Stdout = w
		require.NoError(t, c.Start())
		_ = c.Wait()  // ProcessState has the result
		_ = w.Close() // nothing was written
		if exitSignal(c) != syscall.SIGPIPE {
			t.Errorf("it ended with %v", c.ProcessState)
		}
	})
}

func TestIsToolName(t *testing.T) {
	for name, want := range map[string]bool{
		"mini-tool": true, "/.mini/bin/mini-tool": true, "./mini-tool": true,
		"mini-helper": false, "/.mini/h": false, "mini-tool/x": false, "xmini-tool": false, "": false,
	} {
		assert.Equal(t, want, minitool.IsToolName([]string{name}), "%q", name)
	}
	if minitool.IsToolName(nil) {
		t.Error("without arguments")
	}
}
