package helper_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// recordedPeer replays recorded frames, all of them or only the first bytes,
// regardless of the client's frames. It waits for the client's frames as the real
// helper would, because a response before its request violates the protocol.
type recordedPeer struct {
	mu       sync.Mutex
	wake     *sync.Cond
	received int // number of frames received from the client
	parts    []part
	sent     int // number of bytes sent
	limit    int // bytes after which the stream ends; negative for never
	buf      []byte
	closed   bool
	frames   bytes.Buffer // data from the client that is not yet counted
}

// part is the data that the helper sends after the client has sent a number of frames.
type part struct {
	after int
	bytes []byte
}

func replay(parts []part, limit int) *recordedPeer {
	r := &recordedPeer{parts: parts, limit: limit}
	r.wake = sync.NewCond(&r.mu)
	return r
}

func (r *recordedPeer) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return 0, io.ErrClosedPipe
	}
	r.frames.Write(p)
	for {
		if _, err := helper.ReadFrame(bytes.NewReader(r.frames.Bytes()), helper.MaxClientFrame); err != nil {
			break
		}
		if _, err := helper.ReadFrame(&r.frames, helper.MaxClientFrame); err != nil {
			return 0, err
		}
		r.received++
	}
	r.wake.Broadcast()
	return len(p), nil
}

func (r *recordedPeer) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		if r.closed || r.sent == r.limit || len(r.buf) == 0 && len(r.parts) == 0 && r.limit >= 0 {
			return 0, io.EOF
		}
		if len(r.buf) == 0 && len(r.parts) > 0 && r.received >= r.parts[0].after {
			r.buf, r.parts = r.parts[0].bytes, r.parts[1:]
		}
		if len(r.buf) > 0 {
			break
		}
		r.wake.Wait()
	}
	n := copy(p, r.buf)
	if r.limit >= 0 {
		n = min(n, r.limit-r.sent)
	}
	r.buf = r.buf[n:]
	r.sent += n
	return n, nil
}

func (r *recordedPeer) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.wake.Broadcast()
	return nil
}

func encodeFrames(t testing.TB, frames ...helper.Frame) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, f := range frames {
		require.NoError(t, helper.WriteFrame(&b, f))
	}
	return b.Bytes()
}

func asJSON(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return b
}

// fullSession records a complete session: handshake, two commands, files in and out.
func fullSession(t testing.TB) []part {
	t.Helper()
	return []part{
		{1, encodeFrames(t, helper.Frame{Kind: helper.KindHello, Body: []byte(goodHello)})},
		{2, encodeFrames(t,
			helper.Frame{Kind: helper.KindOutput, ID: 1, Body: []byte("one ")},
			helper.Frame{Kind: helper.KindOutput, ID: 1, Body: []byte("two\n")},
			helper.Frame{Kind: helper.KindExit, ID: 1, Body: asJSON(t, helper.Exit{Result: env.Result{ExitCode: 3, Head: 8, Bytes: 8, Chars: 8}})})},
		{5, encodeFrames(t, // put, a chunk, and its end
			helper.Frame{Kind: helper.KindWindowUpdate, ID: 2, Body: helper.EncodeWindowUpdate(1)},
			helper.Frame{Kind: helper.KindDone, ID: 2, Body: []byte(`{}`)})},
		{6, encodeFrames(t,
			helper.Frame{Kind: helper.KindData, ID: 3, Body: []byte("a tar")},
			helper.Frame{Kind: helper.KindData, ID: 3, Body: []byte(" stream")},
			helper.Frame{Kind: helper.KindDone, ID: 3, Body: []byte(`{}`)})},
		{7, encodeFrames(t, helper.Frame{Kind: helper.KindDone, ID: 4, Body: []byte(`{"missing":true,"failure":"none"}`)})},
		{8, encodeFrames(t,
			helper.Frame{Kind: helper.KindExit, ID: 5, Body: asJSON(t, helper.Exit{Result: env.Result{ExitCode: 0}})})},
	}
}

// runSession runs the client's side of the session. It returns the number of steps
// with the expected result, and the first error.
func runSession(t testing.TB, peer io.ReadWriteCloser) (steps int, err error) {
	t.Helper()
	c, err := helper.Dial(t.Context(), peer, helper.ClientConfig{})
	if err != nil {
		return 0, err
	}
	defer c.Close()
	r, err := c.Execute(t.Context(), env.Command{Script: "x"})
	if err != nil {
		return 1, err
	}
	if r.ExitCode != 3 || string(r.Output) != "one two\n" {
		t.Errorf("first result is %+v", r)
	}
	if err := c.Put(t.Context(), "/d", strings.NewReader("a tar stream")); err != nil {
		return 2, err
	}
	var tree bytes.Buffer
	if err := c.Get(t.Context(), "/d", &tree); err != nil {
		return 3, err
	}
	assert.Equal(t, "a tar stream", tree.String(), "files")
	if err := c.Get(t.Context(), "/none", &tree); !errors.Is(err, fs.ErrNotExist) {
		return 4, err
	}
	if _, err := c.Execute(t.Context(), env.Command{Script: "x"}); err != nil {
		return 5, err
	}
	return 6, nil
}

func length(parts []part) (n int) {
	for _, p := range parts {
		n += len(p.bytes)
	}
	return n
}

// TestTruncatedStream ends the stream after every byte of a session: all steps before
// succeed, and the next one returns ErrDisconnected.
func TestTruncatedStream(t *testing.T) {
	parts := fullSession(t)
	if steps, err := runSession(t, replay(parts, -1)); steps != 6 || err != nil {
		t.Fatalf("the whole session: %d steps, %v", steps, err)
	}
	for cut := range length(parts) {
		synctest.Test(t, func(t *testing.T) { // synctest reports a hang as a deadlock
			want, end := 0, 0
			for i, p := range parts {
				if end += len(p.bytes); cut >= end {
					want = i + 1
				}
			}
			steps, err := runSession(t, replay(parts, cut))
			if steps != want || !errors.Is(err, helper.ErrDisconnected) || errors.Is(err, helper.ErrFrame) {
				t.Errorf("cut after %d bytes: %d steps, error %v; want %d and ErrDisconnected", cut, steps, err, want)
			}
		})
	}
}

// TestForgedFrames inserts frames of every kind, with various ids and bodies, at every
// position of a session. None of them is a complete valid report, so no later step may
// succeed.
func TestForgedFrames(t *testing.T) {
	bodies := map[string][]byte{
		"empty": nil, "text": []byte("forged"), "object": []byte("{}"), "array": []byte("[1]"), "null": []byte("null"),
		"count of 0": {0, 0, 0, 0}, "count of 2": {0, 0, 0, 2}, "count of all": {0xff, 0xff, 0xff, 0xff},
		"numbers":  []byte(`{"bytes":-1,"head":-5,"chars":99,"killed":-3,"exit_code":7}`),
		"nonsense": []byte(`{"bytes":1e400}`), "long": bytes.Repeat([]byte("x"), helper.MaxChunk+1),
	}
	parts := fullSession(t)
	for _, kind := range []byte("SRPGDMCKHOXEF?\x00\xff") { // all kinds, and some that do not exist
		for name, body := range bodies {
			for _, id := range []uint32{0, 99, 1<<32 - 1} {
				forged := encodeFrames(t, helper.Frame{Kind: helper.Kind(kind), ID: id, Body: body})
				for pos := range parts {
					altered := append([]part{}, parts...)
					altered[pos].bytes = append(bytes.Clone(forged), parts[pos].bytes...)
					steps, err := runSession(t, replay(altered, -1))
					if err == nil || steps > pos {
						t.Fatalf("kind %q, id %d, %s body before part %d went through: %d steps, %v", kind, id, name, pos, steps, err)
					}
					if !errors.Is(err, helper.ErrFrame) && !errors.Is(err, helper.ErrHelperFailed) && !errors.Is(err, helper.ErrMismatch) {
						t.Fatalf("kind %q, id %d, %s body before part %d: %v", kind, id, name, pos, err)
					}
				}
			}
		}
	}
}

// TestForgedLengths changes the length of every frame of a session.
func TestForgedLengths(t *testing.T) {
	parts := fullSession(t)
	for pos := range parts {
		for _, length := range [][4]byte{{}, {0, 0, 0, 4}, {0, 0, 0, 5}, {0, 4, 0, 6}, {0x7f, 0xff, 0xff, 0xff}, {0xff, 0xff, 0xff, 0xff}} {
			altered := append([]part{}, parts...)
			altered[pos].bytes = append(length[:], parts[pos].bytes[4:]...)
			if steps, err := runSession(t, replay(altered, -1)); steps != pos || !errors.Is(err, helper.ErrFrame) {
				t.Errorf("length % x in part %d: %d steps, %v; want %d and ErrFrame", length, pos, steps, err, pos)
			}
		}
	}
}

// FuzzClient: with any data from the peer, the client neither hangs nor exceeds its
// limits, and every error ends the connection.
func FuzzClient(f *testing.F) {
	parts := fullSession(f)
	var whole []byte
	for _, p := range parts {
		whole = append(whole, p.bytes...)
	}
	f.Add(whole, byte(0), 0)
	f.Add(whole, byte(0xff), 20)
	f.Fuzz(func(t *testing.T, stream []byte, flip byte, at int) {
		stream = bytes.Clone(stream)
		if len(stream) > 0 && at >= 0 {
			stream[at%len(stream)] ^= flip
		}
		peer := replay([]part{{1, stream}}, len(stream))
		c, err := helper.Dial(t.Context(), peer, helper.ClientConfig{})
		if err != nil {
			return
		}
		defer c.Close()
		for range 3 {
			r, err := c.Execute(t.Context(), env.Command{Script: "x"})
			if len(r.Output) > env.DefaultOutputLimit {
				t.Errorf("%d bytes of output", len(r.Output))
			}
			if err != nil && c.Err() == nil {
				t.Errorf("error %v, but the connection is open", err)
			}
			var tree bytes.Buffer
			_ = c.Get(t.Context(), "/x", &tree)
			_ = c.Put(t.Context(), "/x", strings.NewReader("x"))
		}
	})
}

// FuzzWindowUpdate: a decoded value is within its limits, and encodes to the same
// bytes.
func FuzzWindowUpdate(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1})
	f.Add([]byte{0, 0, 0, helper.Window})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, body []byte) {
		n, err := helper.DecodeWindowUpdate(body)
		if err != nil {
			assert.ErrorIs(t, err, helper.ErrFrame, "unexpected")
			return
		}
		if n < 1 || n > helper.Window || !bytes.Equal(helper.EncodeWindowUpdate(n), body) {
			t.Errorf("%x became %d", body, n)
		}
	})
}
