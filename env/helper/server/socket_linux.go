package server

import (
	"bufio"
	"crypto/rand"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/minibench/mini/env/helper"
	"github.com/minibench/mini/env/helper/sockets"
)

// Limits of connections to the socket.
const (
	// maxPending is the maximum number of connections that have not sent a token yet.
	// Another connection replaces the oldest one.
	maxPending = 32
	// requestTimeout limits the arrival of a request, responseTimeout the write of a
	// response.
	requestTimeout  = 5 * time.Second
	responseTimeout = 30 * time.Second
)

// Messages to rejected callers.
const (
	refusalToken   = "no command that runs now has this token; a program can ask for as long as the command that it belongs to runs"
	refusalEnded   = "the command that asks is over"
	refusalForeign = "who asks is no process of this sandbox"
	refusalFrame   = "this is not a request"
)

// pendingConn is a connection that has not sent a token yet.
type pendingConn struct{ conn *os.File }

// open creates the socket, once. It is an abstract socket, which needs no writable
// file system and ends with this process.
func (s *toolServer) open() (name string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return "", errors.New("open socket: connection has ended")
	case s.listener != nil:
		return s.name, nil
	}
	name = "mini-tool-" + rand.Text()
	if s.listener, err = sockets.Listen("@" + name); err != nil {
		return "", err
	}
	s.name = name
	listener := s.listener
	s.workers.Go(func() { s.accept(listener) })
	return name, nil
}

// close closes the socket and the pending connections. It is called after the commands
// have been killed.
func (s *toolServer) close() {
	s.mu.Lock()
	s.closed = true
	if s.listener != nil {
		s.listener.Close() //nolint:errcheck // nothing was written
	}
	for _, p := range s.pending {
		p.conn.Close() //nolint:errcheck // likewise
	}
	s.mu.Unlock()
}

// accept serves connections until the listener is closed.
func (s *toolServer) accept(listener *os.File) {
	for {
		conn, err := sockets.Accept(listener)
		if err != nil {
			return
		}
		p := &pendingConn{conn}
		if !s.addPending(p) {
			return
		}
		s.workers.Go(func() { s.serve(p) })
	}
}

// addPending registers a connection. If there are too many, it closes the oldest one.
// If the server is closed, it closes the connection and returns false.
func (s *toolServer) addPending(p *pendingConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		p.conn.Close() //nolint:errcheck // nothing was written
		return false
	}
	if len(s.pending) >= maxPending {
		s.pending[0].conn.Close() //nolint:errcheck // likewise
		s.pending = slices.Delete(s.pending, 0, 1)
	}
	s.pending = append(s.pending, p)
	return true
}

func (s *toolServer) removePending(p *pendingConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = slices.DeleteFunc(s.pending, func(other *pendingConn) bool { return other == p })
}

// serve handles one request.
func (s *toolServer) serve(p *pendingConn) {
	defer p.conn.Close() //nolint:errcheck // the caller has exited or has the response
	cmd, req, refusal := s.receive(p)
	s.removePending(p)
	if refusal != "" {
		refuse(p.conn, refusal)
		return
	}
	n, r, refusal := s.forward(cmd, req)
	if refusal != "" {
		refuse(p.conn, refusal)
		return
	}
	defer r.resume() // needed if no response arrives
	closed := make(chan struct{})
	s.workers.Go(func() { // returns when the connection is closed, at the latest
		defer close(closed)
		p.conn.Read(make([]byte, 1)) //nolint:errcheck // further data and the end of the stream both cancel the request
	})
	select {
	case body := <-r.response:
		reply(p.conn, body)
	case <-cmd.ending:
		select {
		case body := <-r.response: // both are ready
			reply(p.conn, body)
		default:
			refuse(p.conn, refusalEnded)
		}
	case <-closed:
		s.cancelRequest(cmd, n, r)
	}
}

// receive reads a request and returns the command that it belongs to, or a refusal.
func (s *toolServer) receive(p *pendingConn) (*command, helper.ToolRequest, string) {
	if err := p.conn.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return nil, helper.ToolRequest{}, refusalFrame
	}
	f, err := helper.ReadFrame(bufio.NewReaderSize(p.conn, readBufferSize), helper.MaxToolRequestFrame)
	if !isFromSandbox(p.conn) { // checked after the request is read, so that the caller reads the refusal
		return nil, helper.ToolRequest{}, refusalForeign
	}
	if err != nil || f.Kind != helper.KindToolRequest {
		return nil, helper.ToolRequest{}, refusalFrame
	}
	req, err := helper.DecodeToolRequest(f.Body)
	if err != nil {
		return nil, helper.ToolRequest{}, refusalFrame
	}
	c := s.find(req.Token)
	if c == nil {
		return nil, helper.ToolRequest{}, refusalToken
	}
	if err := p.conn.SetDeadline(time.Time{}); err != nil {
		return nil, helper.ToolRequest{}, refusalFrame
	}
	return c, req, ""
}

// isFromSandbox reports whether the peer is a process in this PID namespace, with the
// user of this process or root; if this process is root, with any user. An abstract
// socket can be reached from everywhere in its network namespace, including other
// containers.
func isFromSandbox(conn *os.File) bool {
	peer, err := sockets.Peer(conn)
	if err != nil || peer.Pid <= 0 {
		return false
	}
	self := uint32(os.Geteuid())
	return self == 0 || peer.Uid == self || peer.Uid == 0
}

// refuse responds with an error message.
func refuse(conn *os.File, refusal string) {
	body, err := helper.ToolResponse{Stderr: []byte("mini-tool: " + refusal + "\n"), ExitCode: 1}.Encode()
	if err == nil {
		reply(conn, body)
	}
}

// reply writes a response. It ignores errors: the caller may have exited.
func reply(conn *os.File, body []byte) {
	if err := conn.SetWriteDeadline(time.Now().Add(responseTimeout)); err != nil {
		return
	}
	helper.WriteFrame(conn, helper.Frame{Kind: helper.KindToolResponse, Body: body}) //nolint:errcheck // see above
}
