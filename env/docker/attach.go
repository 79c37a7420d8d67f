package docker

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"

	"github.com/minibench/mini/env/helper"
)

// attachment is the two-way stream to a container's PID 1. What arrives is
// stdout and stderr mixed by the engine; Read gives stdout alone, and the
// beginning of stderr is kept: the helper writes there only when it crashes.
type attachment struct {
	conn   types.HijackedResponse
	in     demultiplexed
	stderr *helper.Stderr
}

var _ io.ReadWriteCloser = (*attachment)(nil)

func (e *Engine) attach(ctx context.Context, id string) (*attachment, error) {
	conn, err := e.api.ContainerAttach(ctx, id, container.AttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
	if err != nil {
		return nil, fmt.Errorf("attach: %w", err)
	}
	stderr := &helper.Stderr{}
	// conn.Reader may hold bytes that came along with the headers.
	return &attachment{conn: conn, stderr: stderr, in: demultiplexed{from: heard{conn.Reader, e.pulse}, stderr: stderr}}, nil
}

// Read is for one goroutine at a time.
func (a *attachment) Read(p []byte) (int, error)  { return a.in.Read(p) }
func (a *attachment) Write(p []byte) (int, error) { return a.conn.Conn.Write(p) }

// Close ends both directions, and a Read that waits; the container's stdin ends
// with it.
func (a *attachment) Close() error { return a.conn.Conn.Close() }

func (a *attachment) settle() {}

// demultiplexed is stdout out of the engine's mix of streams. The engine's own
// stdcopy wants writers, which would take a goroutine, a pipe and 32 KiB for
// every container, and a switch between goroutines for every frame of a step.
type demultiplexed struct {
	from   io.Reader
	stderr io.Writer
	left   int64 // of the present frame of stdout
}

// The header of a frame, as the engine's documentation of attach has it: the
// stream, three zeros, and the length of what follows, big endian.
const (
	muxHeader = 8
	muxStdout = 1
	muxStderr = 2
)

func (d *demultiplexed) Read(p []byte) (int, error) {
	for d.left == 0 {
		var header [muxHeader]byte
		if _, err := io.ReadFull(d.from, header[:]); err != nil {
			return 0, err // io.EOF between two frames only
		}
		size := int64(binary.BigEndian.Uint32(header[4:]))
		switch header[0] {
		case muxStdout:
			d.left = size
		case muxStderr:
			if _, err := io.CopyN(d.stderr, d.from, size); err != nil {
				return 0, helper.NoEOF(err)
			}
		default:
			return 0, fmt.Errorf("the engine sent a frame of stream %d", header[0])
		}
	}
	n, err := d.from.Read(p[:min(int64(len(p)), d.left)])
	d.left -= int64(n)
	if d.left > 0 {
		err = helper.NoEOF(err)
	}
	return n, err
}

// heard is a stream out of a container: what comes says that the engine lives.
type heard struct {
	io.Reader
	pulse *pulse
}

func (h heard) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	if n > 0 {
		h.pulse.note()
	}
	return n, err
}
