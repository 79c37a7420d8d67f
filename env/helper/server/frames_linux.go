package server

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/minibench/mini/env/helper"
)

// frames writes whole frames, one at a time.
type frames struct {
	mu   sync.Mutex
	w    io.Writer
	last uint32 // the command or transfer whose last word went out last
	any  bool
}

// redirect has every later frame go elsewhere.
func (f *frames) redirect(w io.Writer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.w = w
}

func (f *frames) send(frame helper.Frame) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.write(frame)
}

func (f *frames) write(frame helper.Frame) error {
	if err := helper.WriteFrame(f.w, frame); err != nil {
		return fmt.Errorf("write frame: %w", err)
	}
	return nil
}

func (f *frames) sendJSON(kind helper.Kind, id uint32, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode frame: %w", err)
	}
	return f.send(helper.Frame{Kind: kind, ID: id, Body: body})
}

// end sends the last word on a command or transfer. It notes the id before the
// client can answer with the next one.
func (f *frames) end(id uint32, kind helper.Kind, report any) error {
	body, err := json.Marshal(report)
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last, f.any = id, true
	return f.write(helper.Frame{Kind: kind, ID: id, Body: body})
}

// ended reports whether the last word on id was sent. It waits for one that is
// being written.
func (f *frames) ended(id uint32) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.any && f.last == id
}

// chunks sends what is written to it as Output frames of one command.
type chunks struct {
	out *frames
	id  uint32
}

func (c *chunks) Write(p []byte) (int, error) {
	sent := 0
	for sent < len(p) {
		n := min(len(p)-sent, helper.MaxChunk)
		if err := c.out.send(helper.Frame{Kind: helper.KindOutput, ID: c.id, Body: p[sent : sent+n]}); err != nil {
			return sent, err
		}
		sent += n
	}
	return sent, nil
}
