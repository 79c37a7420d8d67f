package server

import (
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/minibench/mini/env/helper"
	"github.com/minibench/mini/env/process"
)

// toolServer receives the tool requests of commands on a Unix socket, forwards them to
// the client, and returns the responses. It opens the socket for the first command
// that may call tools.
type toolServer struct {
	out *frameWriter

	mu       sync.Mutex
	name     string   // name of the socket
	listener *os.File // nil if not open
	closed   bool
	commands map[uint32]*command // by id
	pending  []*pendingConn      // connections that have not sent a token yet, oldest first
	workers  sync.WaitGroup
}

// command is a running command that may call tools or is nested in one that may.
type command struct {
	id     uint32
	outer  *command // nil if not nested
	depth  int
	token  string // empty if the command may not call tools
	job    *job
	scope  *process.Scope
	timer  *helper.PausableTimer
	nested sync.WaitGroup // the running nested commands
	ending chan struct{}  // closed when requests are no longer forwarded

	// sending is held while a frame about a request is sent, so that none follows
	// the Exit of the command.
	sending sync.Mutex
	ended   bool

	// Guarded by toolServer.mu.
	lastNumber uint32
	waiting    map[uint32]*request // by number
}

// request is a tool request that waits for the client's response.
type request struct {
	response chan []byte // capacity 1
	resume   func()      // resumes the timer of the command
}

// add registers a command. It returns the environment variables that the command needs
// to call tools.
func (s *toolServer) add(c *command, allowTools bool, localTools []string, timeout time.Duration) (variables map[string]string, err error) {
	if allowTools {
		name, err := s.open()
		if err != nil {
			return nil, err
		}
		c.token = rand.Text()
		variables = map[string]string{
			helper.SocketVariable: name,
			helper.TokenVariable:  c.token,
			helper.LocalVariable:  strings.Join(localTools, ","),
		}
	}
	envMarker := ""
	if allowTools {
		envMarker = helper.TokenVariable + "=" + c.token
	}
	c.waiting, c.ending = map[uint32]*request{}, make(chan struct{})
	if c.outer == nil {
		c.scope, c.timer = process.NewScope(nil, envMarker), helper.NewPausableTimer(timeout, nil)
	} else {
		c.scope, c.timer = process.NewScope(c.outer.scope, envMarker), helper.NewPausableTimer(timeout, c.outer.timer)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commands[c.id] = c
	return variables, nil
}

// outerCommand returns the command with an id, and makes it wait for one more nested
// command. It returns nil if the command has ended or may not call tools.
func (s *toolServer) outerCommand(id uint32) *command {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.commands[id]
	if c == nil || c.token == "" {
		return nil
	}
	c.nested.Add(1)
	return c
}

// remove unregisters a command, cancels its requests and waits until the reports of
// its nested commands have been sent.
func (s *toolServer) remove(c *command) {
	c.timer.Stop()
	c.sending.Lock()
	c.ended = true
	c.sending.Unlock()
	close(c.ending)
	s.mu.Lock()
	delete(s.commands, c.id)
	s.mu.Unlock()
	c.nested.Wait()
}

// cancel cancels a nested command, if there is one with this id.
func (s *toolServer) cancel(id uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.commands[id]; c != nil {
		c.job.cancel(errCancel)
	}
}

// respond passes a response of the client to the goroutine that waits for it, if any.
func (s *toolServer) respond(f helper.Frame) error {
	n, body, err := helper.CutRequestNumber(f.Body)
	if err != nil {
		return err
	}
	if len(body) > helper.MaxToolResponseFrame {
		return fmt.Errorf("%w: answer of %d bytes", helper.ErrFrame, len(body))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.commands[f.ID]
	if c == nil || c.waiting[n] == nil {
		return nil // the command has just ended, or the request was answered
	}
	r := c.waiting[n]
	delete(c.waiting, n)
	r.resume()
	r.response <- body // the only response
	return nil
}

// find returns the command with a token; nil if there is none. It compares in constant
// time, so that timing does not reveal tokens.
func (s *toolServer) find(token string) *command {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found *command
	for _, c := range s.commands {
		if c.token != "" && subtle.ConstantTimeCompare([]byte(c.token), []byte(token)) == 1 {
			found = c
		}
	}
	return found
}

// forward sends a request to the client. If it cannot, refusal says why.
func (s *toolServer) forward(c *command, req helper.ToolRequest) (n uint32, r *request, refusal string) {
	req.Token = ""
	body, err := req.Encode()
	if err != nil {
		return 0, nil, "the request cannot be passed on: " + err.Error()
	}
	c.sending.Lock() // also keeps the numbers in order
	defer c.sending.Unlock()
	if c.ended {
		return 0, nil, refusalEnded
	}
	s.mu.Lock()
	if len(c.waiting) >= helper.MaxToolRequests {
		s.mu.Unlock()
		return 0, nil, fmt.Sprintf("%d requests of this command are under way, and no more can be; try again when one has been answered", helper.MaxToolRequests)
	}
	c.lastNumber++
	n, r = c.lastNumber, &request{response: make(chan []byte, 1), resume: c.timer.Pause()}
	c.waiting[n] = r
	s.mu.Unlock()
	if err := s.out.send(helper.Frame{Kind: helper.KindToolRequest, ID: c.id, Body: helper.WithRequestNumber(n, body)}); err != nil {
		return 0, nil, refusalEnded // the connection has ended
	}
	return n, r, ""
}

// cancelRequest tells the client that the caller of a request has exited.
func (s *toolServer) cancelRequest(c *command, n uint32, r *request) {
	r.resume()
	c.sending.Lock()
	defer c.sending.Unlock()
	s.mu.Lock()
	awaited := c.waiting[n] == r
	s.mu.Unlock()
	if !c.ended && awaited {
		s.out.send(helper.Frame{Kind: helper.KindToolCancel, ID: c.id, Body: helper.WithRequestNumber(n, nil)}) //nolint:errcheck // after a failed write the input ends, too
	}
}
