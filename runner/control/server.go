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

// Desk follows orders.
type Desk interface {
	// Do says in a sentence what came of an order.
	Do(o runner.Order) (string, error)
	// Status says how the run stands.
	Status(ctx context.Context) Status
}

// Server takes orders for a run.
type Server struct {
	run, path string
	desk      Desk
	http      http.Server
	wg        sync.WaitGroup
}

// Listen takes orders for the run in a folder until Close. The caller holds the
// folder; desk is asked by several at once.
func Listen(run string, desk Desk) (*Server, error) {
	name := newName()
	dir, err := findPlace(places(), name)
	if err != nil {
		return nil, fmt.Errorf("take orders: %w", err)
	}
	sweep(dir)
	s := &Server{run: run, path: filepath.Join(dir, name), desk: desk}
	s.http = http.Server{Handler: s, ReadTimeout: patience, WriteTimeout: 2 * patience, MaxHeaderBytes: maxRequest}
	listener, err := net.Listen("unix", s.path) //nolint:noctx // it is there at once; its folder lets nobody else in
	if err != nil {
		return nil, fmt.Errorf("take orders: %w", err)
	}
	l := lease{Format: format, Path: s.path, PID: os.Getpid(), UID: os.Getuid(), Host: hostname(), Started: time.Now()}
	err = os.Chmod(s.path, 0o600)
	if err == nil {
		err = l.write(run)
	}
	if err != nil {
		return nil, fmt.Errorf("take orders: %w", errors.Join(err, listener.Close()))
	}
	s.wg.Go(func() { _ = s.http.Serve(ownListener{listener}) }) // it ends with Close
	return s, nil
}

// ownListener lets in the user, and root.
type ownListener struct{ net.Listener }

// Accept implements net.Listener.
func (l ownListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if uid, err := peer(c); err == nil && (uid == os.Getuid() || uid == 0) {
			return c, nil
		}
		_ = c.Close() // nothing was said
	}
}

// Bounds of the search for leftovers: how many are looked at, and how old they
// are, so that a socket is not met before anybody listens at it.
const (
	sweepMost = 200
	sweepAge  = time.Minute
)

// sweep removes the sockets that nobody listens at: their minis were killed.
func sweep(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries[:min(len(entries), sweepMost)] {
		info, err := e.Info()
		if err != nil || !isSocketName(e.Name()) || e.Type() != os.ModeSocket || time.Since(info.ModTime()) < sweepAge {
			continue
		}
		path := filepath.Join(dir, e.Name())
		c, err := net.DialTimeout("unix", path, time.Second) //nolint:noctx // it is there, or is not
		if isRefused(err) {
			_ = os.Remove(path) // or the next one does
		}
		if err == nil {
			_ = c.Close() // nothing was said
		}
	}
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q Request
	reply := Reply{Kind: Bad, Error: `POST one JSON object of at most 8 kB, as {"verb":"status"}`}
	if r.Method == http.MethodPost && json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&q) == nil {
		reply = s.answer(r.Context(), q)
	} else {
		w.WriteHeader(http.StatusBadRequest)
	}
	_ = json.NewEncoder(w).Encode(reply) // if it is read
}

// answer follows an order.
func (s *Server) answer(ctx context.Context, q Request) Reply {
	if q.Verb == StatusVerb {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		status := s.desk.Status(ctx)
		return Reply{OK: true, Status: &status}
	}
	text, err := s.desk.Do(runner.Order{Action: runner.Action(q.Verb), Who: q.Who, By: runner.ByCtl})
	if err == nil {
		return Reply{OK: true, Text: text}
	}
	r := Reply{Kind: Refused, Error: err.Error()}
	if _, unknown := errors.AsType[*runner.UnknownError](err); unknown {
		r.Kind = Unknown
	} else if errors.Is(err, runner.ErrNotRunning) {
		r.Kind = Over
	}
	return r
}

// Close takes no more orders, and leaves nothing behind. nil takes none anyway.
func (s *Server) Close() error {
	if s == nil {
		return nil
	}
	err := errors.Join(os.Remove(filepath.Join(s.run, File)), s.http.Close()) // removes the socket
	s.wg.Wait()
	if err != nil {
		return fmt.Errorf("take no more orders: %w", err)
	}
	return nil
}
