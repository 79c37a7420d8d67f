package server

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/minibench/mini/env/helper"
)

// frameWriter writes complete frames, one at a time.
type frameWriter struct {
	mu         sync.Mutex
	w          io.Writer
	lastReport uint32 // id in the last report that was not of a nested command
	hasReport  bool   // whether a report was sent
	streams    sync.Mutex
}

// sendStream sends a frame of a stream. At most one such frame waits for its turn at
// any time, so that many streams do not delay other frames.
func (f *frameWriter) sendStream(frame helper.Frame) error {
	f.streams.Lock()
	defer f.streams.Unlock()
	return f.send(frame)
}

// redirect sends all later frames to another writer.
func (f *frameWriter) redirect(w io.Writer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.w = w
}

func (f *frameWriter) send(frame helper.Frame) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return helper.WriteFrame(f.w, frame)
}

func (f *frameWriter) sendJSON(kind helper.Kind, id uint32, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode frame: %w", err)
	}
	return f.send(helper.Frame{Kind: kind, ID: id, Body: body})
}

// sendReport sends the report that ends a command or transfer. It records the id
// before the client can send the next request.
func (f *frameWriter) sendReport(id uint32, kind helper.Kind, report any) error {
	body, err := json.Marshal(report)
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lastReport, f.hasReport = id, true
	return helper.WriteFrame(f.w, helper.Frame{Kind: kind, ID: id, Body: body})
}

// reportSent reports whether the last report sent, without those of nested commands, is
// that of id. If a frame is being written, it waits for the end of the write.
func (f *frameWriter) reportSent(id uint32) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hasReport && f.lastReport == id
}

// outputWriter sends the output of one command as Output frames.
type outputWriter struct {
	out *frameWriter
	id  uint32
}

func (c *outputWriter) Write(p []byte) (int, error) {
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
