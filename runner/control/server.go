package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/minibench/mini/runner"
)

// Controller executes requests.
type Controller interface {
	// Execute executes a request and describes the effect in one sentence.
	Execute(req runner.ControlRequest) (string, error)
	// Status returns the status of the run.
	Status(ctx context.Context) Status
}

// Server accepts requests for a run.
type Server struct {
	run, path  string
	controller Controller
	http       http.Server
	wg         sync.WaitGroup
}

// Listen starts a server that accepts requests for the run in a folder until Close.
// The caller must have locked the folder. The server calls c concurrently.
func Listen(run string, c Controller) (*Server, error) {
	name := socketName(run)
	dir, err := findSocketDir(socketDirs(), name)
	if err != nil {
		return nil, fmt.Errorf("listen for requests: %w", err)
	}
	s := &Server{run: run, path: filepath.Join(dir, name), controller: c}
	s.http = http.Server{Handler: s, ReadTimeout: timeout, WriteTimeout: 2 * timeout, MaxHeaderBytes: maxRequest}
	_ = os.Remove(s.path)                       // left by a killed process: the folder is locked
	listener, err := net.Listen("unix", s.path) //nolint:noctx // returns at once; only this user can access the directory
	if err != nil {
		return nil, fmt.Errorf("listen for requests: %w", err)
	}
	l := lease{Format: format, Path: s.path, PID: os.Getpid(), UID: os.Getuid(), Host: hostname(), Started: time.Now()}
	err = os.Chmod(s.path, 0o600)
	if err == nil {
		err = l.write(run)
	}
	if err != nil {
		return nil, fmt.Errorf("listen for requests: %w", errors.Join(err, listener.Close()))
	}
	s.wg.Go(func() { _ = s.http.Serve(ownListener{listener}) }) // until Close
	return s, nil
}

// ownListener accepts connections from the user and root only.
type ownListener struct{ net.Listener }

// Accept implements net.Listener.
func (l ownListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if uid, err := peerUID(c); err == nil && (uid == os.Getuid() || uid == 0) {
			return c, nil
		}
		_ = c.Close() // nothing to flush
	}
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req Request
	reply := Reply{Kind: BadRequest, Error: `POST one JSON object of at most 8 kB, as {"verb":"status"}`}
	if r.Method == http.MethodPost && json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&req) == nil {
		reply = s.answer(r.Context(), req)
	} else {
		w.WriteHeader(http.StatusBadRequest)
	}
	_ = json.NewEncoder(w).Encode(reply) // the client may be gone
}

// answer executes a request and returns the reply.
func (s *Server) answer(ctx context.Context, req Request) Reply {
	if req.Action == StatusAction {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		status := s.controller.Status(ctx)
		return Reply{OK: true, Status: &status}
	}
	text, err := s.controller.Execute(runner.ControlRequest{Action: runner.Action(req.Action), TaskID: req.TaskID, Source: runner.SourceCtl})
	if err == nil {
		return Reply{OK: true, Text: text}
	}
	r := Reply{Kind: Refused, Error: err.Error()}
	if _, unknown := errors.AsType[*runner.UnknownTaskError](err); unknown {
		r.Kind = UnknownTask
	} else if errors.Is(err, runner.ErrNotRunning) {
		r.Kind = NotRunning
	}
	return r
}

// Close stops accepting requests and removes the socket and control.json. Closing
// a nil Server does nothing.
func (s *Server) Close() error {
	if s == nil {
		return nil
	}
	err := errors.Join(os.Remove(filepath.Join(s.run, FileName)), s.http.Close()) // removes the socket
	s.wg.Wait()
	if err != nil {
		return fmt.Errorf("close control socket: %w", err)
	}
	return nil
}
