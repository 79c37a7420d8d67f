package envtest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/minibench/mini/env"
)

// bridgeConns serves the connections of a command, and waits for all at its end.
type bridgeConns struct {
	serve func(net.Conn)
	wg    sync.WaitGroup
}

func (b *bridgeConns) open() io.ReadWriteCloser {
	own, conn := net.Pipe()
	b.wg.Go(func() {
		defer conn.Close() //nolint:errcheck // the sandbox sees the end
		b.serve(conn)
	})
	return own
}

// runWithBridge runs a command with a bridge. It requires that all connections have
// ended when the command has.
func (b sandbox) runWithBridge(serve func(net.Conn), script string) string {
	b.t.Helper()
	conns := bridgeConns{serve: serve}
	r := b.run(env.Command{Script: `connect() { exec 3<>/dev/tcp/${MINI_BRIDGE%:*}/${MINI_BRIDGE#*:}; }; ` + script, Bridge: conns.open})
	conns.wg.Wait()
	if r.Failure != "" || r.TimedOut {
		b.t.Errorf("%.80q: failure %q, timed out %v", script, r.Failure, r.TimedOut)
	}
	return strings.TrimSpace(string(r.Output))
}

// bridges: a command connects to the host, and to nothing after its end.
func bridges(t *testing.T, s suite) {
	s.needs(t, Tools)
	b := s.start(t)
	greet := func(conn net.Conn) {
		r := bufio.NewReader(conn)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			if _, err := fmt.Fprintf(conn, "hello %s", line); err != nil {
				return
			}
		}
	}
	t.Run("lines", func(t *testing.T) {
		got := sandbox{b, t}.runWithBridge(greet, `connect; for i in 1 2 3; do echo $i >&3; read -r line <&3; echo "$line"; done; echo "${MINI_BRIDGE%:*}"`)
		if got != "hello 1\nhello 2\nhello 3\n127.0.0.1" {
			t.Errorf("output %q", got)
		}
	})
	t.Run("much in both directions", func(t *testing.T) {
		const size = 2_000_000
		got := sandbox{b, t}.runWithBridge(func(conn net.Conn) {
			if n, err := io.CopyN(io.Discard, conn, size); err != nil {
				t.Errorf("received %d bytes: %v", n, err)
			}
			if _, err := conn.Write(bytes.Repeat([]byte("m"), size)); err != nil {
				t.Error(err)
			}
		}, fmt.Sprintf(`connect; head -c %d /dev/zero >&3; cat <&3 | tr -d n | wc -c`, size))
		if got != fmt.Sprint(size) {
			t.Errorf("received %s bytes", got)
		}
	})
	t.Run("more connections than streams", func(t *testing.T) {
		got := sandbox{b, t}.runWithBridge(greet,
			`for i in $(seq 150); do (connect; echo $i >&3; read -r line <&3; echo "$line") & done; wait`)
		if n := strings.Count(got, "hello "); n != 150 {
			t.Errorf("%d of 150 were served: %.200q", n, got)
		}
	})
	t.Run("slow readers", func(t *testing.T) {
		var blocked sync.WaitGroup
		blocked.Add(20)
		got := sandbox{b, t}.runWithBridge(func(conn net.Conn) {
			line, err := bufio.NewReader(conn).ReadString('\n')
			if err != nil {
				return
			}
			if line == "wait\n" {
				blocked.Wait()
				_, _ = conn.Write([]byte("all blocked\n")) // the output shows a failure
				return
			}
			_, err = conn.Write(make([]byte, 1<<20))
			blocked.Done()
			for err == nil { // until the command ends
				_, err = conn.Write(make([]byte, 1<<20))
			}
		}, `for i in $(seq 20); do (connect; echo >&3; head -c 1048576 <&3 >/dev/null; exec sleep 1000) & pids="$pids $!"; done
			connect; echo wait >&3; cat <&3; head -c 200000 /dev/zero | tr '\0' x | wc -c; kill $pids`)
		if got != "all blocked\n200000" {
			t.Errorf("output %q", got)
		}
	})
	t.Run("after the command", func(t *testing.T) {
		b := sandbox{b, t}
		address := b.runWithBridge(greet, `echo $MINI_BRIDGE`)
		r := b.run(env.Command{Script: `echo "bridge=$MINI_BRIDGE"; exec 3<>/dev/tcp/` + strings.Replace(address, ":", "/", 1)})
		if r.ExitCode == 0 || !strings.HasPrefix(string(r.Output), "bridge=\n") {
			t.Errorf("exit code %d, output %q", r.ExitCode, r.Output)
		}
	})
	t.Run("with tools", func(t *testing.T) {
		r := sandbox{b, t}.run(env.Command{Script: "true", Tools: &env.Tools{}, Bridge: func() io.ReadWriteCloser { return nil }})
		if r.Failure == "" {
			t.Error("a command with a bridge and tools was run")
		}
	})
}
