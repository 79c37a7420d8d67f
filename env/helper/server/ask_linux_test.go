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
)

// asker is a command that may ask, and waits.
type asker struct {
	*box
	id            uint32
	socket, token string
}

func asking(b *box) asker {
	b.t.Helper()
	a := asker{box: b, id: b.begin(helper.Run{Asks: true, TimeoutMillis: 60_000}, `echo "$MINI_TOOL_SOCKET $MINI_TOOL_TOKEN"; sleep 300`)}
	var found bool
	a.socket, a.token, found = strings.Cut(strings.TrimSpace(string(b.next().Body)), " ")
	if !found || len(a.token) < 20 || len(a.socket) < 20 {
		b.t.Fatalf("the command has socket %q and token %q", a.socket, a.token)
	}
	return a
}

// connect dials the helper's socket; the connection ends with the test.
func (a asker) connect() net.Conn {
	a.t.Helper()
	conn, err := net.Dial("unix", "@"+a.socket)
	for deadline := time.Now().Add(20 * time.Second); errors.Is(err, syscall.EAGAIN) && time.Now().Before(deadline); {
		conn, err = net.Dial("unix", "@"+a.socket) // too many were in line
	}
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { conn.Close() }) //nolint:errcheck // the helper may have
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		a.t.Fatal(err)
	}
	return conn
}

// post sends a request.
func (a asker) post(conn net.Conn, ask helper.Ask) {
	a.t.Helper()
	body, err := ask.Encode()
	if err != nil {
		a.t.Fatal(err)
	}
	if err := helper.WriteFrame(conn, helper.Frame{Kind: helper.KindAsk, Body: body}); err != nil {
		a.t.Fatal(err)
	}
}

// answer reads what comes back.
func answer(t testing.TB, conn io.Reader) helper.Answer {
	t.Helper()
	f, err := helper.ReadFrame(conn, helper.MaxAnswer)
	if err != nil || f.Kind != helper.KindAnswer {
		t.Fatalf("frame %q, %v; want an answer", f.Kind, err)
	}
	got, err := helper.DecodeAnswer(f.Body)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// reply plays the client: it takes the next request and answers it.
func (a asker) reply(n uint32, want ...string) {
	a.t.Helper()
	f := a.next()
	got, body, err := helper.CutNumber(f.Body)
	if err != nil || f.Kind != helper.KindAsk || f.ID != a.id || got != n {
		a.t.Fatalf("frame %q of %d, number %d, %v; want request %d of %d", f.Kind, f.ID, got, err, n, a.id)
	}
	ask, err := helper.DecodeAsk(body)
	if err != nil || ask.Token != "" || !slices.Equal(ask.Args, want) {
		a.t.Fatalf("request %+v, %v; want %q, and no token", ask, err, want)
	}
	reply, err := helper.Answer{Output: []byte("for " + want[0])}.Encode()
	if err != nil {
		a.t.Fatal(err)
	}
	a.send(helper.KindAnswer, a.id, helper.WithNumber(n, reply))
}

// ping is a whole request.
func (a asker) ping(n uint32) {
	a.t.Helper()
	conn := a.connect()
	a.post(conn, helper.Ask{Token: a.token, Args: []string{"ping"}})
	a.reply(n, "ping")
	if got := answer(a.t, conn); string(got.Output) != "for ping" || got.ExitCode != 0 {
		a.t.Fatalf("answer %+v", got)
	}
}

// TestStrangeClients: what connects and does not ask as it should is told so, or
// dropped, and keeps nobody else from asking.
func TestStrangeClients(t *testing.T) {
	b := start(t)
	b.setup(helper.Setup{})
	a := asking(b)
	a.ping(1)
	good, err := helper.Ask{Token: a.token, Args: []string{"x"}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	huge, err := helper.Ask{Token: "none", Input: make([]byte, env.MaxToolRequest)}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, sent := range map[string][]byte{
		"garbage":       []byte("GET / HTTP/1.1\r\nHost: helper\r\n\r\n"),
		"length zero":   {0, 0, 0, 0},
		"every length":  {0xff, 0xff, 0xff, 0xff, 'Q', 0, 0, 0, 0},
		"another kind":  frame(t, helper.KindRun, good),
		"an answer":     frame(t, helper.KindAnswer, good),
		"no request":    frame(t, helper.KindAsk, []byte("hello")),
		"an empty one":  frame(t, helper.KindAsk, nil),
		"no such token": frame(t, helper.KindAsk, huge),
	} {
		conn := a.connect()
		if _, err := conn.Write(sent); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := answer(t, conn); got.ExitCode != 1 || !strings.HasPrefix(string(got.Errors), "mini-tool: ") || len(got.Output) > 0 {
			t.Errorf("%s: answer %+v", name, got)
		}
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Errorf("%s: the connection goes on", name)
		}
	}
	a.ping(2)
	// Far more than may wait, all silent or half way.
	for i := range 200 {
		conn := a.connect()
		if i%2 == 0 {
			if _, err := conn.Write(frame(t, helper.KindAsk, good)[:20]); err != nil && !errors.Is(err, net.ErrClosed) {
				t.Log(err) // it was dropped
			}
		}
	}
	began := time.Now()
	a.ping(3)
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("beside silent clients a request took %v", took)
	}
	conn := a.connect()
	a.post(conn, helper.Ask{Token: a.token, Args: []string{"wait"}})
	if f := a.next(); f.Kind != helper.KindAsk {
		t.Fatalf("frame %q", f.Kind)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if f := a.next(); f.Kind != helper.KindGone || string(f.Body) != string(helper.WithNumber(4, nil)) {
		t.Errorf("frame %q with %q, want that request 4 is gone", f.Kind, f.Body)
	}
	a.send(helper.KindAnswer, a.id, helper.WithNumber(4, make([]byte, 8)))
	a.send(helper.KindAnswer, a.id, helper.WithNumber(4, make([]byte, 8))) // again: ignored
	a.send(helper.KindAnswer, a.id+9, helper.WithNumber(1, make([]byte, 8)))
	a.ping(5)
	// At the end of the command everybody is told, and nobody may ask any more.
	conn = a.connect()
	a.post(conn, helper.Ask{Token: a.token, Args: []string{"wait"}})
	if f := a.next(); f.Kind != helper.KindAsk {
		t.Fatalf("frame %q", f.Kind)
	}
	a.send(helper.KindCancel, a.id, nil)
	if got := answer(t, conn); got.ExitCode != 1 || !strings.Contains(string(got.Errors), "over") {
		t.Errorf("at the end: %+v", got)
	}
	if e, _ := a.end(a.id); !e.Cancelled {
		t.Errorf("exit is %+v", e)
	}
	conn = a.connect()
	a.post(conn, helper.Ask{Token: a.token, Args: []string{"late"}})
	if got := answer(t, conn); got.ExitCode != 1 || !strings.Contains(string(got.Errors), "token") {
		t.Errorf("after the end: %+v", got)
	}
	if peak := memory(t, b.cmd.Process.Pid); peak > 16<<10 {
		t.Errorf("peak resident memory is %d KiB", peak)
	}
}

// TestAnswerThatNobodyTakes: who asks and does not read blocks nobody.
func TestAnswerThatNobodyTakes(t *testing.T) {
	b := start(t)
	b.setup(helper.Setup{})
	a := asking(b)
	large, err := helper.Answer{Output: make([]byte, env.MaxToolAnswer)}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for n := range uint32(helper.MaxAsks) {
		a.post(a.connect(), helper.Ask{Token: a.token, Args: []string{"much"}})
		if f := a.next(); f.Kind != helper.KindAsk {
			t.Fatalf("frame %q", f.Kind)
		}
		a.send(helper.KindAnswer, a.id, helper.WithNumber(n+1, large))
	}
	a.ping(helper.MaxAsks + 1)
}

// TestTokensDiffer: no two commands have the same, and one does not do for
// another's.
func TestTokensDiffer(t *testing.T) {
	b := start(t)
	b.setup(helper.Setup{})
	seen := map[string]bool{}
	for range 5 {
		a := asking(b)
		if seen[a.token] {
			t.Fatal("the token is an earlier command's")
		}
		seen[a.token] = true
		b.send(helper.KindCancel, a.id, nil)
		b.end(a.id)
	}
}

// TestStrangersAreRefused, also with the right token: from outside of the
// sandbox's processes, and of another user.
func TestStrangersAreRefused(t *testing.T) {
	t.Run("outside", func(t *testing.T) {
		namespace(t)
		a := asking(pid1(t)) // in the network of this test, as a container may be
		conn := a.connect()
		a.post(conn, helper.Ask{Token: a.token, Args: []string{"x"}})
		if got := answer(t, conn); got.ExitCode != 1 || !strings.Contains(string(got.Errors), "no process of this sandbox") {
			t.Errorf("answer %+v", got)
		}
	})
	t.Run("another user", func(t *testing.T) {
		if os.Getuid() != 0 {
			t.Skip("only root can be two users")
		}
		if err := os.Chmod(filepath.Dir(binary), 0o755); err != nil { // the other users must reach the binary
			t.Fatal(err)
		}
		as := func(user string) []string {
			return []string{"setpriv", "--reuid=" + user, "--regid=" + user, "--clear-groups"}
		}
		b := launch(t, append(as("65534"), binary)...)
		b.setup(helper.Setup{Dir: "/"})
		a := asking(b)
		line := append(as("65533"), "bash", "-c", `exec -a mini-tool `+binary+` x`)
		cmd := exec.CommandContext(t.Context(), line[0], line[1:]...)
		cmd.Env = []string{helper.SocketVariable + "=" + a.socket, helper.TokenVariable + "=" + a.token, "PATH=/usr/bin:/bin"}
		out, err := cmd.CombinedOutput()
		if failed, ok := errors.AsType[*exec.ExitError](err); !ok || failed.ExitCode() != 1 || !strings.Contains(string(out), "no process of this sandbox") {
			t.Errorf("%q, %v", out, err)
		}
		a.ping(1) // root may
	})
}

// TestInsideOfWhatIsOver: the helper is silent on a command that comes too late.
func TestInsideOfWhatIsOver(t *testing.T) {
	b := start(t)
	b.setup(helper.Setup{})
	id := b.begin(helper.Run{Asks: true, TimeoutMillis: 60_000}, "true")
	b.end(id)
	b.begin(helper.Run{Inside: id, TimeoutMillis: 60_000}, "echo no")
	b.begin(helper.Run{Inside: id + 77, Asks: true, TimeoutMillis: 60_000}, "echo no")
	if _, out := b.run("echo on"); out != "on\n" {
		t.Errorf("output %q", out)
	}
}

// TestInsideEndsFirst: the last word on a command comes after those on what ran
// inside of it.
func TestInsideEndsFirst(t *testing.T) {
	for name, how := range map[string]func(b *box, outer uint32){
		"timeout": func(*box, uint32) {},
		"cancel":  func(b *box, outer uint32) { b.send(helper.KindCancel, outer, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t)
			b.setup(helper.Setup{})
			outer := b.begin(helper.Run{Asks: true, TimeoutMillis: 1500}, "sleep 300")
			inner := b.begin(helper.Run{Asks: true, Inside: outer, TimeoutMillis: 60_000}, "echo begun; sleep 300")
			if f := b.next(); f.ID != inner || string(f.Body) != "begun\n" {
				t.Fatalf("frame %q of %d: %q", f.Kind, f.ID, f.Body)
			}
			innermost := b.begin(helper.Run{Inside: inner, TimeoutMillis: 60_000}, "echo begun; setsid sleep 300 & sleep 300")
			if f := b.next(); f.ID != innermost {
				t.Fatalf("frame %q of %d: %q", f.Kind, f.ID, f.Body)
			}
			how(b, outer)
			for _, id := range []uint32{innermost, inner} {
				if e, _ := b.end(id); !e.Over || e.Cancelled || e.TimedOut || e.ExitCode != -1 {
					t.Errorf("exit of %d is %+v", id, e)
				}
			}
			if e, _ := b.end(outer); e.Over || e.TimedOut != (name == "timeout") || e.Cancelled != (name == "cancel") || e.Killed < 3 || e.Survivors != 0 {
				t.Errorf("exit is %+v", e)
			}
		})
	}
}

// TestCancelInside ends one command and not the one around it.
func TestCancelInside(t *testing.T) {
	b := start(t)
	b.setup(helper.Setup{})
	outer := b.begin(helper.Run{Asks: true, TimeoutMillis: 60_000}, "read -t 1 <> <(:); echo on")
	inner := b.begin(helper.Run{Inside: outer, TimeoutMillis: 60_000}, "sleep 300")
	b.send(helper.KindCancel, inner, nil)
	if e, _ := b.end(inner); !e.Cancelled || e.Over {
		t.Errorf("exit is %+v", e)
	}
	if e, out := b.end(outer); e.ExitCode != 0 || string(out) != "on\n" {
		t.Errorf("exit is %+v, output %q", e, out)
	}
}
