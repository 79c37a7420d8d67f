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

// attachment is the two-way stream to a container's PID 1. The engine multiplexes
// stdout and stderr; Read returns stdout only. The beginning of stderr is kept,
// because the helper writes there only when it crashes.
type attachment struct {
	conn   types.HijackedResponse
	stdout demuxReader
	stderr *helper.StderrBuffer
}

var _ io.ReadWriteCloser = (*attachment)(nil)

func (e *Engine) attach(ctx context.Context, id string) (*attachment, error) {
	conn, err := e.dial(ctx, func(ctx context.Context) (types.HijackedResponse, error) {
		return e.api.ContainerAttach(ctx, id, container.AttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
	})
	if err != nil {
		return nil, fmt.Errorf("attach: %w", err)
	}
	stderr := &helper.StderrBuffer{}
	// conn.Reader may buffer bytes that arrived with the headers.
	stdout := demuxReader{source: aliveReader{conn.Reader, e.heartbeat}, stderr: stderr}
	return &attachment{conn: conn, stderr: stderr, stdout: stdout}, nil
}

// Read must not be called concurrently.
func (a *attachment) Read(p []byte) (int, error)  { return a.stdout.Read(p) }
func (a *attachment) Write(p []byte) (int, error) { return a.conn.Conn.Write(p) }

// Close closes both directions and the container's stdin, and ends a blocked Read.
func (a *attachment) Close() error { return a.conn.Conn.Close() }

func (a *attachment) wait() {}

// demuxReader reads stdout from the engine's multiplexed stream. Docker's package
// stdcopy copies to writers; it would cost a goroutine, a pipe and 32 KiB per
// container, and a goroutine switch per frame.
type demuxReader struct {
	source io.Reader
	stderr io.Writer
	left   int64 // bytes left in the current stdout frame
}

// The header of a frame: the stream, three zero bytes, and the length of the
// payload as a big-endian uint32. See "Stream format" of the attach endpoint:
// https://docs.docker.com/reference/api/engine/
const (
	muxHeader = 8
	muxStdout = 1
	muxStderr = 2
)

func (d *demuxReader) Read(p []byte) (int, error) {
	for d.left == 0 {
		var header [muxHeader]byte
		if _, err := io.ReadFull(d.source, header[:]); err != nil {
			return 0, err // io.EOF only between two frames
		}
		size := int64(binary.BigEndian.Uint32(header[4:]))
		switch header[0] {
		case muxStdout:
			d.left = size
		case muxStderr:
			if _, err := io.CopyN(d.stderr, d.source, size); err != nil {
				return 0, helper.UnexpectedEOF(err)
			}
		default:
			return 0, fmt.Errorf("read attached stream: unknown stream %d", header[0])
		}
	}
	n, err := d.source.Read(p[:min(int64(len(p)), d.left)])
	d.left -= int64(n)
	if d.left > 0 {
		err = helper.UnexpectedEOF(err)
	}
	return n, err
}

// aliveReader marks the engine as alive whenever bytes arrive from a container.
type aliveReader struct {
	io.Reader
	heartbeat *heartbeat
}

func (r aliveReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if n > 0 {
		r.heartbeat.markAlive()
	}
	return n, err
}
