package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/env/helper"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

var binary string

func TestMain(m *testing.M) {
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "mini-helper-test")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "mini-helper")
	if file := os.Getenv(dockertest.HelperVariable); file != "" {
		data, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(binary, data, 0o755)
		}
		if err != nil {
			panic(err)
		}
		return m.Run()
	}
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, "github.com/minibench/mini/cmd/mini-helper")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%s", out)
		return 1
	}
	return m.Run()
}

// helperProcess is a helper running as a child process.
type helperProcess struct {
	t      testing.TB
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.Reader
	err    *bytes.Buffer
	lastID uint32
}

func start(t testing.TB) *helperProcess {
	t.Helper()
	return launch(t, binary)
}

// launch starts a helper with a command line, which ends with the path of the helper.
func launch(t testing.TB, line ...string) *helperProcess {
	t.Helper()
	b := &helperProcess{t: t, err: &bytes.Buffer{}}
	b.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), line[0], line[1:]...)
	b.cmd.Stderr = b.err
	var err error
	if b.in, err = b.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if b.out, err = b.cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, b.cmd.Start())
	t.Cleanup(func() {
		b.in.Close() //nolint:errcheck // a test may have closed it
		b.cmd.Wait() //nolint:errcheck // a test may have waited already; the exit status does not matter here
		if b.err.Len() > 0 {
			t.Errorf("helper wrote to its standard error: %s", b.err)
		}
	})
	return b
}

func (b *helperProcess) send(kind helper.Kind, id uint32, body []byte) {
	b.t.Helper()
	require.NoError(b.t, helper.WriteFrame(b.in, helper.Frame{Kind: kind, ID: id, Body: body}))
}

func (b *helperProcess) next() helper.Frame {
	b.t.Helper()
	f, err := helper.ReadFrame(b.out, helper.MaxHelperFrame)
	if err != nil {
		b.t.Fatalf("read frame: %v", err)
	}
	return f
}

func (b *helperProcess) setup(s helper.Setup) helper.Hello {
	b.t.Helper()
	s.Version = helper.Version
	body, err := json.Marshal(s)
	require.NoError(b.t, err)
	b.send(helper.KindSetup, 0, body)
	f := b.next()
	var h helper.Hello
	require.Equal(b.t, helper.KindHello, f.Kind, "answer to setup: %s", f.Body)
	require.NoError(b.t, json.Unmarshal(f.Body, &h))
	return h
}

func (b *helperProcess) startCommand(r helper.Run, script string) uint32 {
	b.t.Helper()
	body, err := helper.EncodeRun(r, script)
	require.NoError(b.t, err)
	b.lastID++
	b.send(helper.KindRun, b.lastID, body)
	return b.lastID
}

// waitExit collects the frames of a command until its Exit.
func (b *helperProcess) waitExit(id uint32) (helper.Exit, []byte) {
	b.t.Helper()
	var out []byte
	for {
		f := b.next()
		require.Equal(b.t, id, f.ID, "frame %q has id: %s", f.Kind, f.Body)
		switch f.Kind {
		case helper.KindOutput:
			if len(f.Body) > helper.MaxChunk {
				b.t.Fatalf("output frame of %d bytes", len(f.Body))
			}
			out = append(out, f.Body...)
		case helper.KindExit:
			var e helper.Exit
			require.NoError(b.t, json.Unmarshal(f.Body, &e))
			return e, out
		default:
			b.t.Fatalf("unexpected frame %q: %s", f.Kind, f.Body)
		}
	}
}

func (b *helperProcess) run(script string) (helper.Exit, string) {
	b.t.Helper()
	e, out := b.waitExit(b.startCommand(helper.Run{TimeoutMillis: 60_000}, script))
	return e, string(out)
}

func TestHello(t *testing.T) {
	b := start(t)
	dir := t.TempDir()
	h := b.setup(helper.Setup{Dir: dir, Env: map[string]string{"GREETING": "hello"}})
	sum, err := exec.CommandContext(t.Context(), "sha256sum", binary).Output()
	require.NoError(t, err)
	assert.Equal(t, strings.Fields(string(sum))[0], h.Hash, "hash")
	if h.Dir != dir || h.DirMissing || filepath.Base(h.Shell) != "bash" || h.System != "Linux" || h.Machine == "" || h.Kernel == "" {
		t.Errorf("hello is %+v", h)
	}
	if e, out := b.run(`echo "$GREETING from $PWD"`); out != "hello from "+dir+"\n" || e.ExitCode != 0 {
		t.Errorf("output %q, exit %+v", out, e)
	}
}

func TestMissingDirectory(t *testing.T) {
	b := start(t)
	cwd, err := os.Getwd()
	require.NoError(t, err)
	if h := b.setup(helper.Setup{Dir: "/no/such/place"}); !h.DirMissing || h.Dir != cwd {
		t.Errorf("hello is %+v, want the directory it was started in, %s", h, cwd)
	}
	if _, out := b.run("pwd"); out != cwd+"\n" {
		t.Errorf("command ran in %q", out)
	}
	e, _ := b.waitExit(b.startCommand(helper.Run{Dir: "/no/such/place"}, "pwd"))
	if e.ExitCode != -1 || !strings.Contains(e.Failure, "/no/such/place") {
		t.Errorf("exit is %+v", e)
	}
}

// TestFloodMemory writes 60 MB of output and checks the helper's peak memory.
func TestFloodMemory(t *testing.T) {
	b := start(t)
	b.setup(helper.Setup{})
	e, out := b.run("head -c 60000000 /dev/zero | tr '\\0' x; echo end")
	if e.Bytes != 60000004 || e.Chars != 60000004 || !e.Truncated || e.Head != env.DefaultOutputLimit/2 || len(out) != env.DefaultOutputLimit {
		t.Errorf("exit %+v, %d bytes kept", e, len(out))
	}
	if !strings.HasSuffix(out, "xend\n") {
		t.Errorf("output ends with %q", out[len(out)-10:])
	}
	peak := memory(t, b.cmd.Process.Pid)
	t.Logf("peak resident memory: %d KiB", peak)
	if peak > 10<<10 {
		t.Errorf("peak resident memory is %d KiB, want at most 10 MiB", peak)
	}
}

// memory returns the peak resident memory of a process in KiB.
func memory(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	require.NoError(t, err)
	return kib
}

func TestCancel(t *testing.T) {
	b := start(t)
	b.setup(helper.Setup{})
	id := b.startCommand(helper.Run{}, "sleep 300 & sleep 300 & echo begun; wait") // three processes by then
	if f := b.next(); string(f.Body) != "begun\n" {
		t.Fatalf("first frame %q: %q", f.Kind, f.Body)
	}
	b.send(helper.KindCancel, id+5, nil) // an id that does not exist: ignored
	b.send(helper.KindCancel, id, nil)
	e, _ := b.waitExit(id)
	if !e.Cancelled || e.TimedOut || e.ExitCode != -1 || e.Killed != 3 || e.Survivors != 0 {
		t.Errorf("exit is %+v", e)
	}
	b.send(helper.KindCancel, id, nil) // too late: ignored
	if e, out := b.run("echo on"); e.Cancelled || out != "on\n" {
		t.Errorf("next command: %q, %+v", out, e)
	}
}

// TestEndOfInput closes the pipe while a command runs: the helper kills it and exits.
func TestEndOfInput(t *testing.T) {
	b := start(t)
	b.setup(helper.Setup{})
	b.startCommand(helper.Run{}, "setsid sleep 301 >/dev/null 2>&1 & echo $!; exec sleep 301")
	pid, err := strconv.Atoi(strings.TrimSpace(string(b.next().Body)))
	require.NoError(t, err)
	require.NoError(t, b.in.Close())
	// The helper killed the command, so it must not send a report.
	if rest, err := io.ReadAll(b.out); err != nil || len(rest) > 0 {
		t.Errorf("after the end of the input the helper sent %q (%v), want nothing", rest, err)
	}
	if err := b.cmd.Wait(); err != nil {
		t.Errorf("helper ended with %v, want success", err)
	}
	_, err = os.Stat("/proc/" + strconv.Itoa(pid))
	assert.ErrorIs(t, err, os.ErrNotExist, "process %d outlived the helper", pid)
}

func TestLease(t *testing.T) {
	t.Parallel()
	b := start(t)
	started := time.Now()
	b.setup(helper.Setup{LeaseSeconds: 1})
	_, err := helper.ReadFrame(b.out, helper.MaxHelperFrame)
	assert.ErrorIs(t, err, io.EOF, "after the lease")
	if took := time.Since(started); took < time.Second || took > time.Minute {
		t.Errorf("lease of a second took %v", took)
	}
}

func TestLeaseIsRenewed(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.setup(helper.Setup{LeaseSeconds: 6})
	id := b.startCommand(helper.Run{}, "for i in 1 2 3 4 5 6 7 8; do sleep 0.8; echo $i; done")
	frame := b.next()
	for ; frame.Kind == helper.KindOutput; frame = b.next() {
		b.send(helper.KindKeepalive, 0, nil)
	}
	var e helper.Exit
	if err := json.Unmarshal(frame.Body, &e); err != nil || frame.Kind != helper.KindExit || frame.ID != id || e.ExitCode != 0 {
		t.Errorf("frame %q of %d: %s, %v", frame.Kind, frame.ID, frame.Body, err)
	}
}

func TestMalformedInput(t *testing.T) {
	setup := frame(t, helper.KindSetup, []byte(`{"version":5}`))
	run := func(settings, script string) []byte {
		body := append([]byte{0, 0, 0, byte(len(settings))}, settings...)
		return frame(t, helper.KindRun, append(body, script...))
	}
	for name, input := range map[string][]byte{
		"run before setup":     run("{}", "true"),
		"alive before setup":   frame(t, helper.KindKeepalive, nil),
		"setup twice":          append(bytes.Clone(setup), setup...),
		"setup is not JSON":    frame(t, helper.KindSetup, []byte("hello")),
		"other version":        frame(t, helper.KindSetup, []byte(`{"version":99}`)),
		"negative lease":       frame(t, helper.KindSetup, []byte(`{"version":5,"lease_seconds":-1}`)),
		"unknown kind":         append(bytes.Clone(setup), frame(t, '?', nil)...),
		"length zero":          append(bytes.Clone(setup), 0, 0, 0, 0),
		"length of everything": append(bytes.Clone(setup), 0xff, 0xff, 0xff, 0xff),
		"cut frame":            append(bytes.Clone(setup), 0, 0, 0, 9, 'R'),
		"empty run":            append(bytes.Clone(setup), frame(t, helper.KindRun, nil)...),
		"settings too long":    append(bytes.Clone(setup), frame(t, helper.KindRun, []byte{0xff, 0, 0, 0, '{', '}'})...),
		"negative timeout":     append(bytes.Clone(setup), run(`{"timeout_ms":-1}`, "true")...),
		"absurd timeout":       append(bytes.Clone(setup), run(`{"timeout_ms":9223372036854775807}`, "true")...),
		"absurd limit":         append(bytes.Clone(setup), run(`{"output_limit":1000000000000}`, "true")...),
		"put without a path":   append(bytes.Clone(setup), frame(t, helper.KindPut, nil)...),
		"get without a path":   append(bytes.Clone(setup), frame(t, helper.KindGet, nil)...),
		"path too long":        append(bytes.Clone(setup), frame(t, helper.KindGet, make([]byte, helper.MaxPath+1))...),
		"data from nowhere":    append(bytes.Clone(setup), frame(t, helper.KindData, []byte("x"))...),
		"credit for nothing":   append(bytes.Clone(setup), frame(t, helper.KindWindowUpdate, helper.EncodeWindowUpdate(1))...),
		"put during a command": append(append(bytes.Clone(setup), run("{}", "sleep 60")...), frame(t, helper.KindPut, []byte("/tmp"))...),
		"data for a command":   append(append(bytes.Clone(setup), run("{}", "sleep 60")...), frame(t, helper.KindData, []byte("x"))...),
		"chunk too long":       append(append(bytes.Clone(setup), frame(t, helper.KindPut, []byte("/tmp"))...), frame(t, helper.KindData, make([]byte, helper.MaxChunk+1))...),
		"credit for a put":     append(append(bytes.Clone(setup), frame(t, helper.KindPut, []byte("/tmp"))...), frame(t, helper.KindWindowUpdate, helper.EncodeWindowUpdate(1))...),
		"no credit at all":     append(append(bytes.Clone(setup), frame(t, helper.KindGet, []byte("/usr/bin"))...), frame(t, helper.KindWindowUpdate, []byte{0, 0, 0, 0})...),
		"endless credit":       append(append(bytes.Clone(setup), frame(t, helper.KindGet, []byte("/usr/bin"))...), frame(t, helper.KindWindowUpdate, []byte{0xff, 0, 0, 0})...),
		"two at once":          append(append(bytes.Clone(setup), run("{}", "sleep 60")...), run("{}", "true")...),
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t)
			_, err := b.in.Write(input)
			require.NoError(t, err)
			require.NoError(t, b.in.Close())
			var last helper.Frame
			for {
				f, err := helper.ReadFrame(b.out, helper.MaxHelperFrame)
				if errors.Is(err, io.EOF) {
					break
				}
				require.NoError(t, err)
				if last.Kind != helper.KindError || f.Kind != helper.KindExit && f.Kind != helper.KindDone && f.Kind != helper.KindData {
					last = f
				}
			}
			if last.Kind != helper.KindError || len(last.Body) == 0 {
				t.Errorf("last frame is %q %q, want an Error frame with a message", last.Kind, last.Body)
			}
			assert.Error(t, b.cmd.Wait(), "helper ended with success")
		})
	}
}

func frame(t *testing.T, kind helper.Kind, body []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	require.NoError(t, helper.WriteFrame(&buf, helper.Frame{Kind: kind, ID: 1, Body: body}))
	return buf.Bytes()
}

// TestBlockedSignals: only the helper's first thread blocks signals, because commands
// inherit what the thread blocks that starts them.
func TestBlockedSignals(t *testing.T) {
	const shield = "fffffffd7ffbfeff" // all but 32 and 34, and SIGKILL and SIGSTOP, which cannot be blocked
	for range 20 {
		b := launch(t, binary)
		b.setup(helper.Setup{Dir: t.TempDir()})
		pid := fmt.Sprint(b.cmd.Process.Pid)
		for deadline := time.Now().Add(time.Minute); ; {
			blocked := blockedSignals(t, pid)
			if tid, ok := holder(blocked, shield); ok {
				require.Equal(t, pid, tid, "thread, blocked %v", blocked)
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("no thread blocks signals: %v", blocked)
			}
		}
	}
}

// holder returns the thread with a mask.
func holder(blocked map[string]string, mask string) (tid string, ok bool) {
	for tid, m := range blocked {
		if m == mask {
			return tid, true
		}
	}
	return "", false
}

// blockedSignals returns the mask of each thread of a process in hex.
func blockedSignals(t *testing.T, pid string) map[string]string {
	t.Helper()
	files, err := filepath.Glob("/proc/" + pid + "/task/*/status")
	require.NoError(t, err)
	masks := map[string]string{}
	for _, f := range files {
		status, err := os.ReadFile(f)
		if err != nil {
			continue // the thread has ended
		}
		_, rest, _ := strings.Cut(string(status), "\nSigBlk:")
		mask, _, _ := strings.Cut(strings.TrimSpace(rest), "\n")
		masks[filepath.Base(filepath.Dir(f))] = mask
	}
	return masks
}
