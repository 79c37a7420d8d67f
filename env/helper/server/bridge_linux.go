package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/minibench/mini/env/helper"
)

// bridge accepts connections for one command and passes them on as streams. A nil
// bridge does nothing.
type bridge struct {
	listener net.Listener
	streams  *helper.Streams
	slots    chan struct{} // semaphore of the open streams
	done     chan struct{} // closed by close
	lastID   uint32        // of the streams; used by acceptConns only, until the end of the bridge
	accepter sync.WaitGroup
}

// openBridge opens the bridge of the next command. The caller holds the lock.
func (s *server) openBridge(ctx context.Context) (*bridge, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &bridge{
		listener: l, streams: helper.NewStreams(s.out.sendStream, true),
		slots: make(chan struct{}, helper.MaxStreams), done: make(chan struct{}),
	}
	if s.bridge != nil {
		b.lastID = s.bridge.lastID // ids are not used again, see acceptStream
	}
	s.bridge = b
	b.accepter.Go(b.acceptConns)
	return b, nil
}

func (b *bridge) address() string { return b.listener.Addr().String() }

// close closes the listener and all connections, and waits until no more frames of
// streams are sent.
func (b *bridge) close() {
	if b == nil {
		return
	}
	close(b.done)
	_ = b.listener.Close() // was open
	b.accepter.Wait()
	b.streams.Close()
}

func (b *bridge) acceptConns() {
	for {
		select {
		case b.slots <- struct{}{}:
		case <-b.done:
			return
		}
		conn, err := b.listener.Accept()
		switch {
		case err == nil:
			b.lastID++
			_ = b.streams.Add(b.lastID, conn, nil, func() { <-b.slots }) // cannot fail: the ids increase, and slots limits them
		case errors.Is(err, net.ErrClosed):
			return
		default: // for example, no more file descriptors; others may become free
			<-b.slots
			select {
			case <-time.After(50 * time.Millisecond):
			case <-b.done:
			}
		}
	}
}

// acceptStream processes a frame of a stream. The caller holds the lock.
func (s *server) acceptStream(f helper.Frame) error {
	if s.bridge == nil {
		return fmt.Errorf("%w: kind %q of stream %d, which was not opened", helper.ErrFrame, f.Kind, f.ID)
	}
	if err := s.bridge.streams.Accept(f); !errors.Is(err, helper.ErrUnknownStream) {
		return err
	}
	return nil // the stream has just ended
}
