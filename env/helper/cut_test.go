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
)

// recorded is a peer that says what was recorded, whatever it is told: all of
// it, or the beginning. It waits for the client's frames where the real helper
// would, because an answer before its question is against the rules.
type recorded struct {
	mu     sync.Mutex
	wake   *sync.Cond
	asked  int // frames of the client so far
	parts  []part
	said   int // bytes of all parts
	limit  int // bytes after which the stream ends; negative for never
	buf    []byte
	closed bool
	frames bytes.Buffer // what the client has written and is not counted yet
}

// part is what the helper says once the client has sent so many frames.
type part struct {
	after int
	bytes []byte
}

func replay(parts []part, limit int) *recorded {
	r := &recorded{parts: parts, limit: limit}
	r.wake = sync.NewCond(&r.mu)
	return r
}

func (r *recorded) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return 0, io.ErrClosedPipe
	}
	r.frames.Write(p)
	for {
		if _, err := helper.ReadFrame(bytes.NewReader(r.frames.Bytes()), helper.MaxRequest); err != nil {
			break
		}
		if _, err := helper.ReadFrame(&r.frames, helper.MaxRequest); err != nil {
			return 0, err
		}
		r.asked++
	}
	r.wake.Broadcast()
	return len(p), nil
}

func (r *recorded) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		if r.closed || r.said == r.limit || len(r.buf) == 0 && len(r.parts) == 0 && r.limit >= 0 {
			return 0, io.EOF
		}
		if len(r.buf) == 0 && len(r.parts) > 0 && r.asked >= r.parts[0].after {
			r.buf, r.parts = r.parts[0].bytes, r.parts[1:]
		}
		if len(r.buf) > 0 {
			break
		}
		r.wake.Wait()
	}
	n := copy(p, r.buf)
	if r.limit >= 0 {
		n = min(n, r.limit-r.said)
	}
	r.buf = r.buf[n:]
	r.said += n
	return n, nil
}

func (r *recorded) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.wake.Broadcast()
	return nil
}

func said(t testing.TB, frames ...helper.Frame) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, f := range frames {
		if err := helper.WriteFrame(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func asJSON(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// conversation is a whole one: a greeting, two commands, files in and out.
func conversation(t testing.TB) []part {
	t.Helper()
	return []part{
		{1, said(t, helper.Frame{Kind: helper.KindHello, Body: []byte(goodHello)})},
		{2, said(t,
			helper.Frame{Kind: helper.KindOutput, ID: 1, Body: []byte("one ")},
			helper.Frame{Kind: helper.KindOutput, ID: 1, Body: []byte("two\n")},
			helper.Frame{Kind: helper.KindExit, ID: 1, Body: asJSON(t, helper.Exit{Result: env.Result{ExitCode: 3, Head: 8, Bytes: 8, Chars: 8}})})},
		{5, said(t, // put, a chunk, and its end
			helper.Frame{Kind: helper.KindMore, ID: 2, Body: helper.EncodeMore(1)},
			helper.Frame{Kind: helper.KindDone, ID: 2, Body: []byte(`{}`)})},
		{6, said(t,
			helper.Frame{Kind: helper.KindData, ID: 3, Body: []byte("a tar")},
			helper.Frame{Kind: helper.KindData, ID: 3, Body: []byte(" stream")},
			helper.Frame{Kind: helper.KindDone, ID: 3, Body: []byte(`{}`)})},
		{7, said(t, helper.Frame{Kind: helper.KindDone, ID: 4, Body: []byte(`{"missing":true,"failure":"none"}`)})},
		{8, said(t,
			helper.Frame{Kind: helper.KindExit, ID: 5, Body: asJSON(t, helper.Exit{Result: env.Result{ExitCode: 0}})})},
	}
}

// talk holds the client's side of the conversation. It returns how many of its
// steps gave what they should, and the first error of one that did not.
func talk(t testing.TB, peer io.ReadWriteCloser) (steps int, err error) {
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
	if tree.String() != "a tar stream" {
		t.Errorf("files are %q", tree.String())
	}
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

// TestCutAtEveryByte ends the stream after every byte of a whole conversation:
// each step before gave its result, the next one says that the stream is lost.
func TestCutAtEveryByte(t *testing.T) {
	parts := conversation(t)
	if steps, err := talk(t, replay(parts, -1)); steps != 6 || err != nil {
		t.Fatalf("the whole conversation: %d steps, %v", steps, err)
	}
	for cut := range length(parts) {
		synctest.Test(t, func(t *testing.T) { // a hang is a deadlock there, and time stands still for nobody
			want, end := 0, 0
			for i, p := range parts {
				if end += len(p.bytes); cut >= end {
					want = i + 1
				}
			}
			steps, err := talk(t, replay(parts, cut))
			if steps != want || !errors.Is(err, helper.ErrLost) || errors.Is(err, helper.ErrFrame) {
				t.Errorf("cut after %d bytes: %d steps, error %v; want %d and ErrLost", cut, steps, err, want)
			}
		})
	}
}

// TestForgedFrames puts frames of every kind, with ids and bodies of all sorts,
// into every place of a conversation. A step may be wrong about what a command
// did only where the forgery is a whole true answer; here none is.
func TestForgedFrames(t *testing.T) {
	bodies := map[string][]byte{
		"empty": nil, "text": []byte("forged"), "object": []byte("{}"), "array": []byte("[1]"), "null": []byte("null"),
		"count of 0": {0, 0, 0, 0}, "count of 2": {0, 0, 0, 2}, "count of all": {0xff, 0xff, 0xff, 0xff},
		"numbers":  []byte(`{"bytes":-1,"head":-5,"chars":99,"killed":-3,"exit_code":7}`),
		"nonsense": []byte(`{"bytes":1e400}`), "long": bytes.Repeat([]byte("x"), helper.MaxChunk+1),
	}
	parts := conversation(t)
	for _, kind := range []byte("SRPGDMCKHOXEF?\x00\xff") { // all there are, and some that are not
		for name, body := range bodies {
			for _, id := range []uint32{0, 99, 1<<32 - 1} {
				forged := said(t, helper.Frame{Kind: helper.Kind(kind), ID: id, Body: body})
				for place := range parts {
					altered := append([]part{}, parts...)
					altered[place].bytes = append(bytes.Clone(forged), parts[place].bytes...)
					steps, err := talk(t, replay(altered, -1))
					if err == nil || steps > place {
						t.Fatalf("kind %q, id %d, %s body before part %d went through: %d steps, %v", kind, id, name, place, steps, err)
					}
					if !errors.Is(err, helper.ErrFrame) && !errors.Is(err, helper.ErrFault) && !errors.Is(err, helper.ErrMismatch) {
						t.Fatalf("kind %q, id %d, %s body before part %d: %v", kind, id, name, place, err)
					}
				}
			}
		}
	}
}

// TestForgedLengths changes the length of every frame of a conversation.
func TestForgedLengths(t *testing.T) {
	parts := conversation(t)
	for place := range parts {
		for _, length := range [][4]byte{{}, {0, 0, 0, 4}, {0, 0, 0, 5}, {0, 4, 0, 6}, {0x7f, 0xff, 0xff, 0xff}, {0xff, 0xff, 0xff, 0xff}} {
			altered := append([]part{}, parts...)
			altered[place].bytes = append(length[:], parts[place].bytes[4:]...)
			if steps, err := talk(t, replay(altered, -1)); steps != place || !errors.Is(err, helper.ErrFrame) {
				t.Errorf("length % x in part %d: %d steps, %v; want %d and ErrFrame", length, place, steps, err, place)
			}
		}
	}
}

// FuzzClient: whatever a peer says, the client neither hangs nor takes more than
// was asked for, and every error says that the conversation is over.
func FuzzClient(f *testing.F) {
	parts := conversation(f)
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
				t.Errorf("error %v, and the conversation goes on", err)
			}
			var tree bytes.Buffer
			_ = c.Get(t.Context(), "/x", &tree)
			_ = c.Put(t.Context(), "/x", strings.NewReader("x"))
		}
	})
}

// FuzzMore: a count that decodes is within its bounds, and encodes the same.
func FuzzMore(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1})
	f.Add([]byte{0, 0, 0, helper.Window})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, body []byte) {
		n, err := helper.DecodeMore(body)
		if err != nil {
			if !errors.Is(err, helper.ErrFrame) {
				t.Errorf("unexpected error: %v", err)
			}
			return
		}
		if n < 1 || n > helper.Window || !bytes.Equal(helper.EncodeMore(n), body) {
			t.Errorf("%x became %d", body, n)
		}
	})
}
