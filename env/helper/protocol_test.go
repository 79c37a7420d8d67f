package helper_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

func TestOneWritePerFrame(t *testing.T) {
	var w writeCounter
	require.NoError(t, helper.WriteFrame(&w, helper.Frame{Kind: helper.KindOutput, Body: make([]byte, helper.MaxChunk)}))
	assert.Equal(t, 1, w, "writes")
}

type writeCounter int

func (c *writeCounter) Write(p []byte) (int, error) {
	*c++
	return len(p), nil
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
		require.NoError(t, helper.WriteFrame(&again, frame))
		if !bytes.Equal(again.Bytes(), stream[:len(stream)-r.Len()]) {
			t.Errorf("%q became %q", stream, again.Bytes())
		}
	})
}

// FuzzDecodeRun: a decoded Run survives encoding and decoding.
func FuzzDecodeRun(f *testing.F) {
	body, err := helper.EncodeRun(helper.Run{Dir: "/x", Env: map[string]string{"A": "b"}, TimeoutMillis: 5, Markers: []string{"M"}}, "echo \xff\n")
	require.NoError(f, err)
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
		require.NoError(t, err)
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
		assert.NoDiff(t, cmp.Diff(empty(run), empty(run2)), "settings differ (-first +second)")
	})
}

func TestToolRequestRoundTrip(t *testing.T) {
	for name, want := range map[string]helper.ToolRequest{
		"nothing":     {},
		"all":         {Token: "t", Args: []string{"greet", "the world", ""}, Dir: "/w", Stdin: []byte("in")},
		"any bytes":   {Args: []string{"\xff\x00\n", "\xc3"}, Dir: "/\xfe", Stdin: []byte{0, 0xff}},
		"largest":     {Token: strings.Repeat("t", helper.MaxToken), Stdin: make([]byte, env.MaxToolRequest)},
		"many":        {Args: make([]string, env.MaxToolRequest/4)},
		"long folder": {Dir: strings.Repeat("d", env.MaxToolRequest)},
	} {
		t.Run(name, func(t *testing.T) {
			body, err := want.Encode()
			if err != nil || len(body) > helper.MaxToolRequestFrame {
				t.Fatalf("%d bytes, %v", len(body), err)
			}
			got, err := helper.DecodeToolRequest(body)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("error %v; differs (-want +got):\n%s", err, diff)
			}
		})
	}
	for name, a := range map[string]helper.ToolRequest{
		"token":     {Token: strings.Repeat("t", helper.MaxToken+1)},
		"input":     {Stdin: make([]byte, env.MaxToolRequest+1)},
		"sum":       {Args: []string{strings.Repeat("a", env.MaxToolRequest/2)}, Stdin: make([]byte, env.MaxToolRequest/2)},
		"arguments": {Args: make([]string, env.MaxToolRequest/4+1)},
	} {
		_, err := a.Encode()
		assert.ErrorIs(t, err, helper.ErrFrame, "%s too long", name)
	}
}

func TestInvalidToolFrames(t *testing.T) {
	for name, body := range map[string]string{
		"empty":               "",
		"cut number":          "\x00\x00",
		"cut token":           "\x00\x00\x00\x05ab",
		"forged token length": "\xff\xff\xff\xff",
		"no arguments":        "\x00\x00\x00\x00\x00\x00\x00\x00",
		"forged count":        "\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff",
		"cut argument":        "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x05ab",
		"too long":            strings.Repeat("\x00", helper.MaxToolRequestFrame+1),
		"input too long":      strings.Repeat("\x00", helper.MaxToolRequestFrame),
	} {
		if a, err := helper.DecodeToolRequest([]byte(body)); !errors.Is(err, helper.ErrFrame) {
			t.Errorf("%s: %+v, %v; want ErrFrame", name, a, err)
		}
	}
	for name, body := range map[string]string{
		"empty":       "",
		"cut":         "\x00\x00\x00\x00\x00\x00\x00\x05abc",
		"forged size": "\x00\x00\x00\x00\xff\xff\xff\xff",
		"too long":    strings.Repeat("\x00", helper.MaxToolResponseFrame),
		"far beyond":  strings.Repeat("\x00", helper.MaxToolResponseFrame+1),
	} {
		if a, err := helper.DecodeToolResponse([]byte(body)); !errors.Is(err, helper.ErrFrame) {
			t.Errorf("answer, %s: %+v, %v; want ErrFrame", name, a, err)
		}
	}
	_, err := (helper.ToolResponse{Stdout: make([]byte, env.MaxToolResponse), Stderr: []byte("x")}).Encode()
	assert.ErrorIs(t, err, helper.ErrFrame, "an answer too long")
}

// FuzzDecodeToolRequest: a decoded request is within its limits, and encodes to the
// same bytes.
func FuzzDecodeToolRequest(f *testing.F) {
	for _, a := range []helper.ToolRequest{{}, {Token: "t", Args: []string{"a", "", "\xff"}, Dir: "/d", Stdin: []byte("in")}} {
		body, err := a.Encode()
		require.NoError(f, err)
		f.Add(body)
	}
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, body []byte) {
		a, err := helper.DecodeToolRequest(body)
		if err != nil {
			if !errors.Is(err, helper.ErrFrame) {
				t.Fatalf("unexpected error: %v", err)
			}
			return
		}
		again, err := a.Encode()
		if err != nil || !bytes.Equal(again, body) {
			t.Errorf("%q became %q (%v)", body, again, err)
		}
	})
}

// FuzzDecodeToolResponse: a decoded response is within its limits, and encodes to the
// same bytes.
func FuzzDecodeToolResponse(f *testing.F) {
	for _, a := range []helper.ToolResponse{{}, {Stdout: []byte("o\xff"), Stderr: []byte("e"), ExitCode: -1}} {
		body, err := a.Encode()
		require.NoError(f, err)
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		a, err := helper.DecodeToolResponse(body)
		if err != nil {
			if !errors.Is(err, helper.ErrFrame) {
				t.Fatalf("unexpected error: %v", err)
			}
			return
		}
		again, err := a.Encode()
		if err != nil || !bytes.Equal(again, body) {
			t.Errorf("%q became %q (%v)", body, again, err)
		}
		if b, err := helper.DecodeToolResponse(again); err != nil || !cmp.Equal(a, b, cmpopts.EquateEmpty()) {
			t.Errorf("%+v became %+v (%v)", a, b, err)
		}
	})
}

// FuzzCutRequestNumber: a decoded number and body encode to the same bytes.
func FuzzCutRequestNumber(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x07rest"))
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, b []byte) {
		n, body, err := helper.CutRequestNumber(b)
		require.Equal(t, len(b) < 4, err != nil, "%q: %v", b, err)
		if err == nil && !bytes.Equal(helper.WithRequestNumber(n, body), b) {
			t.Errorf("%q became %d and %q", b, n, body)
		}
	})
}
