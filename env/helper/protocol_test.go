package helper_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/env/helper"
)

func TestFrames(t *testing.T) {
	var stream bytes.Buffer
	sent := []helper.Frame{
		{Kind: helper.KindKeepalive, Body: []byte{}},
		{Kind: helper.KindOutput, ID: 7, Body: []byte("a\x00\xff")},
		{Kind: helper.KindRun, ID: 1<<32 - 1, Body: bytes.Repeat([]byte("x"), 3*helper.MaxChunk)},
	}
	for _, f := range sent {
		if err := helper.WriteFrame(&stream, f); err != nil {
			t.Fatal(err)
		}
	}
	r := iotest.HalfReader(&stream)
	for _, want := range sent {
		got, err := helper.ReadFrame(r, helper.MaxClientFrame)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("error %v; frame differs (-want +got):\n%s", err, diff)
		}
	}
	if _, err := helper.ReadFrame(r, 0); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v, want io.EOF", err)
	}
}

func TestBadFrames(t *testing.T) {
	for name, c := range map[string]struct {
		stream string
		limit  int
		want   error
	}{
		"cut length":        {"\x00\x00", 9, io.ErrUnexpectedEOF},
		"cut header":        {"\x00\x00\x00\x05K\x00", 9, io.ErrUnexpectedEOF},
		"cut body":          {"\x00\x00\x00\x07K\x00\x00\x00\x00a", 9, io.ErrUnexpectedEOF},
		"nothing follows":   {"\x00\x00\x00\x05", 9, io.ErrUnexpectedEOF},
		"shorter than head": {"\x00\x00\x00\x04K\x00\x00\x00", 9, helper.ErrFrame},
		"over the limit":    {"\x00\x00\x00\x0fK\x00\x00\x00\x00aaaaaaaaaa", 9, helper.ErrFrame},
		"largest length":    {"\xff\xff\xff\xff", 9, helper.ErrFrame},
		"cut long body":     {"\x00\x50\x00\x00K\x00\x00\x00\x00aaaa", 6 << 20, io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := helper.ReadFrame(strings.NewReader(c.stream), c.limit); !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
		})
	}
}

func TestOneWritePerFrame(t *testing.T) {
	var w writeCounter
	if err := helper.WriteFrame(&w, helper.Frame{Kind: helper.KindOutput, Body: make([]byte, helper.MaxChunk)}); err != nil {
		t.Fatal(err)
	}
	if w != 1 {
		t.Errorf("%d writes, want 1", w)
	}
}

type writeCounter int

func (c *writeCounter) Write(p []byte) (int, error) {
	*c++
	return len(p), nil
}

func TestRunTooLong(t *testing.T) {
	if _, err := helper.EncodeRun(helper.Run{}, strings.Repeat("x", helper.MaxClientFrame)); !errors.Is(err, helper.ErrFrame) {
		t.Errorf("error %v, want ErrFrame", err)
	}
}

// FuzzReadFrame: a decoded frame is within its limits, and encodes to the same bytes.
func FuzzReadFrame(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x05K\x00\x00\x00\x00"), 10)
	f.Add([]byte("\x00\x00\x00\x08O\x00\x00\x00\x01abc"), 10)
	f.Add([]byte("\x00\x02\x00\x08O\x00\x00\x00\x01abc"), 1<<20)
	f.Add([]byte("\xff\xff\xff\xff"), 0)
	f.Fuzz(func(t *testing.T, stream []byte, limit int) {
		limit = max(0, limit%(1<<20))
		r := bytes.NewReader(stream)
		frame, err := helper.ReadFrame(r, limit)
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, helper.ErrFrame) {
				t.Fatalf("unexpected error: %v", err)
			}
			return
		}
		if len(frame.Body) > limit {
			t.Fatalf("body of %d bytes, limit %d", len(frame.Body), limit)
		}
		var again bytes.Buffer
		if err := helper.WriteFrame(&again, frame); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(again.Bytes(), stream[:len(stream)-r.Len()]) {
			t.Errorf("%q became %q", stream, again.Bytes())
		}
	})
}

// FuzzDecodeRun: a decoded Run survives encoding and decoding.
func FuzzDecodeRun(f *testing.F) {
	body, err := helper.EncodeRun(helper.Run{Dir: "/x", Env: map[string]string{"A": "b"}, TimeoutMillis: 5, Markers: []string{"M"}}, "echo \xff\n")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	if body, err = helper.EncodeRun(helper.Run{Dir: "/\xff", Env: map[string]string{"A\xfe": "b", "C": "\x80", "D": "e"}}, ""); err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	f.Add([]byte{0, 0, 0, 2, '{', '}'})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, '{', '}'})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, body []byte) {
		run, script, err := helper.DecodeRun(body)
		if err != nil {
			if !errors.Is(err, helper.ErrFrame) {
				t.Fatalf("unexpected error: %v", err)
			}
			return
		}
		again, err := helper.EncodeRun(run, script)
		if err != nil {
			t.Fatal(err)
		}
		run2, script2, err := helper.DecodeRun(again)
		if err != nil || script2 != script {
			t.Fatalf("script %q became %q (%v)", script, script2, err)
		}
		empty := func(r helper.Run) helper.Run { // JSON leaves empty collections out
			if len(r.Env) == 0 {
				r.Env = nil
			}
			if len(r.Markers) == 0 {
				r.Markers = nil
			}
			return r
		}
		if diff := cmp.Diff(empty(run), empty(run2)); diff != "" {
			t.Errorf("settings differ (-first +second):\n%s", diff)
		}
	})
}
