package helper_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper"
)

// TestHostileStreams sends frames of streams that a correct helper never sends. The
// host does not read from the connections.
func TestHostileStreams(t *testing.T) {
	ignore := func() io.ReadWriteCloser {
		own, _ := net.Pipe()
		return own
	}
	for name, tt := range map[string]struct {
		bridge func() io.ReadWriteCloser
		play   script
	}{
		"no bridge":       {nil, func(s *fake, _ helper.Frame) { s.send(helper.KindOpen, 1, "") }},
		"data, no bridge": {nil, func(s *fake, _ helper.Frame) { s.send(helper.KindStreamData, 1, "x") }},
		"not open":        {ignore, func(s *fake, _ helper.Frame) { s.send(helper.KindStreamData, 1, "x") }},
		"credit, unknown": {ignore, func(s *fake, _ helper.Frame) {
			s.send(helper.KindStreamCredit, 1, string(helper.EncodeWindowUpdate(1)))
		}},
		"open with a body": {ignore, func(s *fake, _ helper.Frame) { s.send(helper.KindOpen, 1, "x") }},
		"opened twice": {ignore, func(s *fake, _ helper.Frame) {
			s.send(helper.KindOpen, 7, "")
			s.send(helper.KindOpen, 7, "")
		}},
		"65 streams": {ignore, func(s *fake, _ helper.Frame) {
			for i := range helper.MaxStreams + 1 {
				s.send(helper.KindOpen, uint32(i)+1, "")
			}
		}},
		"no credit": {ignore, func(s *fake, _ helper.Frame) {
			s.send(helper.KindOpen, 1, "")
			for range helper.StreamWindow + 2 { // one chunk may be on its way to the connection
				s.send(helper.KindStreamData, 1, "x")
			}
		}},
		"forged credit": {ignore, func(s *fake, _ helper.Frame) {
			s.send(helper.KindOpen, 1, "")
			s.send(helper.KindStreamCredit, 1, string(helper.EncodeWindowUpdate(helper.StreamWindow)))
		}},
		"long chunk": {ignore, func(s *fake, _ helper.Frame) {
			s.send(helper.KindOpen, 1, "")
			s.send(helper.KindStreamData, 1, strings.Repeat("x", helper.MaxChunk+1))
		}},
		"closed twice": {ignore, func(s *fake, _ helper.Frame) {
			s.send(helper.KindOpen, 1, "")
			s.send(helper.KindStreamClose, 1, "")
			s.send(helper.KindStreamClose, 1, "")
		}},
		"after the exit": {ignore, func(s *fake, r helper.Frame) {
			s.send(helper.KindOpen, 1, "")
			s.exit(r.ID, helper.Exit{})
			s.send(helper.KindStreamData, 1, "x")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := connectFake(t, helper.ClientConfig{}, goodHello, func(s *fake) { tt.play(s, s.receive()) })
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Execute(t.Context(), env.Command{Script: "x", Bridge: tt.bridge})
			if err == nil { // the exit was valid
				_, err = c.Execute(t.Context(), env.Command{Script: "x"})
			}
			if !errors.Is(err, helper.ErrFrame) {
				t.Errorf("err = %v, want ErrFrame", err)
			}
		})
	}
}
