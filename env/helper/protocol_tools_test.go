package helper_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper"
)

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
		if _, err := a.Encode(); !errors.Is(err, helper.ErrFrame) {
			t.Errorf("%s too long: %v, want ErrFrame", name, err)
		}
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
	if _, err := (helper.ToolResponse{Stdout: make([]byte, env.MaxToolResponse), Stderr: []byte("x")}).Encode(); !errors.Is(err, helper.ErrFrame) {
		t.Errorf("an answer too long: %v, want ErrFrame", err)
	}
}

// FuzzDecodeToolRequest: a decoded request is within its limits, and encodes to the
// same bytes.
func FuzzDecodeToolRequest(f *testing.F) {
	for _, a := range []helper.ToolRequest{{}, {Token: "t", Args: []string{"a", "", "\xff"}, Dir: "/d", Stdin: []byte("in")}} {
		body, err := a.Encode()
		if err != nil {
			f.Fatal(err)
		}
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
		if err != nil {
			f.Fatal(err)
		}
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
		if (err != nil) != (len(b) < 4) {
			t.Fatalf("%q: %v", b, err)
		}
		if err == nil && !bytes.Equal(helper.WithRequestNumber(n, body), b) {
			t.Errorf("%q became %d and %q", b, n, body)
		}
	})
}
