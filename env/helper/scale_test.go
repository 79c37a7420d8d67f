package helper_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper"
)

// resident is the memory of this process, in bytes: what the kernel says, where
// it says so.
func resident(t *testing.T) int64 {
	t.Helper()
	var pages, unused int64
	if text, err := os.ReadFile("/proc/self/statm"); err == nil {
		if _, err := fmt.Sscan(string(text), &unused, &pages); err == nil {
			return pages * int64(os.Getpagesize())
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys - m.HeapReleased)
}

// answer is a scripted helper that prints, for every command, the output that
// its settings ask for. All share that output: its memory is not the clients'.
func answer(conn net.Conn, output []byte) error {
	defer conn.Close()
	for {
		f, err := helper.ReadFrame(conn, helper.MaxRequest)
		if err != nil {
			return nil // the end of the conversation
		}
		switch f.Kind {
		case helper.KindSetup:
			err = helper.WriteFrame(conn, helper.Frame{Kind: helper.KindHello, Body: []byte(goodHello)})
		case helper.KindRun:
			var n int
			if _, script, e := helper.DecodeRun(f.Body); e != nil {
				return e
			} else if _, e := fmt.Sscanf(script, "print %d", &n); e != nil {
				return e
			}
			for sent := 0; sent < n && err == nil; {
				chunk := output[sent:min(n, sent+helper.MaxChunk)]
				sent += len(chunk)
				err = helper.WriteFrame(conn, helper.Frame{Kind: helper.KindOutput, ID: f.ID, Body: chunk})
			}
			body, e := json.Marshal(helper.Exit{Bytes: int64(n), Chars: int64(n), Head: n})
			if err = errors.Join(err, e); err == nil {
				err = helper.WriteFrame(conn, helper.Frame{Kind: helper.KindExit, ID: f.ID, Body: body})
			}
		}
		if err != nil {
			return err
		}
	}
}

// TestScale drives 2,000 sandboxes at once (200 under the race detector), over pipes in memory, as agents do:
// a command, a pause for the model, the next one. Outputs are of a few kilobytes,
// now and then as large as is kept.
func TestScale(t *testing.T) {
	const sandboxes, steps = 2000 / tenth, 12
	const most = 1 << 30 // of resident memory, both sides of every pipe in it
	output := bytes.Repeat([]byte("a line of output, as commands print it\n"), 8<<10)
	debug.FreeOSMemory()
	before := resident(t)
	clients := make([]*helper.Client, sandboxes)
	var peers, agents sync.WaitGroup
	for i := range clients {
		here, there := net.Pipe()
		peers.Go(func() {
			if err := answer(there, output); err != nil {
				t.Errorf("peer %d: %v", i, err)
			}
		})
		c, err := helper.Dial(t.Context(), here, helper.ClientConfig{Setup: helper.Setup{LeaseSeconds: 600}})
		if err != nil {
			t.Fatal(err)
		}
		clients[i] = c
	}
	debug.FreeOSMemory()
	idle := resident(t) - before
	peak, measured := int64(0), make(chan struct{})
	stop := make(chan struct{})
	go func() {
		defer close(measured)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				peak = max(peak, resident(t)-before)
			}
		}
	}()
	began := time.Now()
	for i, c := range clients {
		agents.Go(func() {
			for step := range steps {
				n := 500 * (1 + (i+step)%20)
				if (i+step)%50 == 0 {
					n = env.DefaultOutputLimit
				}
				r, err := c.Execute(t.Context(), env.Command{Script: fmt.Sprintf("print %d", n)})
				if err != nil || !bytes.Equal(r.Output, output[:n]) {
					t.Errorf("sandbox %d, step %d: %d of %d bytes, %v", i, step, len(r.Output), n, err)
					return
				}
				time.Sleep(20 * time.Millisecond) // the model's time, not a wait for anything
			}
		})
	}
	agents.Wait()
	took := time.Since(began)
	close(stop)
	<-measured
	for _, c := range clients {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	peers.Wait()
	t.Logf("%d sandboxes: %d KiB each when idle, %d KiB at the peak; %d steps in %v",
		sandboxes, idle/sandboxes>>10, peak/sandboxes>>10, sandboxes*steps, took.Round(time.Millisecond))
	if peak > most {
		t.Errorf("%d MiB of memory at the peak, want %d at most", peak>>20, most>>20)
	}
}
