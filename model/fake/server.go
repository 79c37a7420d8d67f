package fake

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// Server is an http.Handler, and a server of its own for any listener.
type Server struct {
	config Config
	mux    *http.ServeMux
	http   *http.Server
	names  names

	mu     sync.Mutex // guards what follows
	books  Books
	seen   []*Request
	inHand int
	plan   *planner
	limits *limiter

	ending sync.Mutex // guards what follows: no new work once it is closed
	closed chan struct{}
	conns  map[net.Conn]bool // those that work counts
	work   sync.WaitGroup    // connections and requests
	once   sync.Once
}

// Serve answers on a listener until Close, and then returns nil.
func (s *Server) Serve(l net.Listener) error {
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// Close ends listeners, connections and requests, and waits for them.
func (s *Server) Close() error {
	s.once.Do(func() {
		s.ending.Lock()
		close(s.closed)
		s.ending.Unlock()
	})
	err := s.http.Close()
	s.work.Wait()
	return err
}

// add counts a piece of work that Close waits for; false once it is too late.
func (s *Server) add() bool {
	s.ending.Lock()
	defer s.ending.Unlock()
	if s.isClosed() {
		return false
	}
	s.work.Add(1)
	return true
}

func (s *Server) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// connection is told of every change of a connection.
func (s *Server) connection(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if !s.add() {
			_ = c.Close() // too late
			return
		}
		s.ending.Lock()
		s.conns[c] = true
		s.ending.Unlock()
	case http.StateClosed, http.StateHijacked:
		s.ending.Lock()
		counted := s.conns[c]
		delete(s.conns, c)
		s.ending.Unlock()
		if counted {
			s.work.Done()
		}
	default:
	}
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.add() {
		panic(http.ErrAbortHandler) // closes the connection
	}
	defer s.work.Done()
	s.mux.ServeHTTP(w, r)
}

// routes are also there without /v1, for base URLs are given in both ways.
func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for _, base := range []string{"", "/v1"} {
		mux.HandleFunc("POST "+base+"/chat/completions", func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, openAI{}) })
		mux.HandleFunc("POST "+base+"/messages", func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, anthropic{}) })
		mux.HandleFunc("POST "+base+"/messages/count_tokens", s.countTokens)
		mux.HandleFunc("GET "+base+"/models", s.listModels)
	}
	mux.HandleFunc("GET /fake/books", s.serveBooks)
	mux.HandleFunc("GET /fake/faults", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, Faults()) })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		p := problem{
			status: http.StatusNotFound, typ: "invalid_request_error", code: "unknown_url",
			message: fmt.Sprintf("Unknown request URL: %s %s.", r.Method, r.URL.Path),
		}
		if wireOf(r) == (anthropic{}) {
			p.typ, p.message = "not_found_error", "Not found"
		}
		s.refuseOutside(w, r, p)
	})
	return mux
}

// wireOf tells the providers apart where their addresses are the same.
func wireOf(r *http.Request) wire {
	if r.Header.Get("Anthropic-Version") != "" || r.Header.Get("X-Api-Key") != "" {
		return anthropic{}
	}
	return openAI{}
}

// refuseOutside is for requests that are no completions, and in no book.
func (s *Server) refuseOutside(w http.ResponseWriter, r *http.Request, p problem) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(p.status)
	_, _ = w.Write(wireOf(r).problem(p, "req_fake")) // the client's loss
}

func (s *Server) listModels(w http.ResponseWriter, r *http.Request) {
	if !s.keyGood(r) {
		s.refuseOutside(w, r, badKey(wireOf(r)))
		return
	}
	names := s.config.Models
	if len(names) == 0 {
		names = []string{"fake"}
	}
	began := s.Books().Began
	var list []any
	for _, name := range names {
		if wireOf(r) == (anthropic{}) {
			list = append(list, map[string]any{"type": "model", "id": name, "display_name": name, "created_at": began.UTC().Format(time.RFC3339)})
		} else {
			list = append(list, map[string]any{"id": name, "object": "model", "created": began.Unix(), "owned_by": "fake"})
		}
	}
	if wireOf(r) == (anthropic{}) {
		writeJSON(w, http.StatusOK, map[string]any{"data": list, "has_more": false, "first_id": names[0], "last_id": names[len(names)-1]})
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": list})
}

func (s *Server) countTokens(w http.ResponseWriter, r *http.Request) {
	body, p := s.readBody(w, r)
	if p == nil && !s.keyGood(r) {
		bad := badKey(anthropic{})
		p = &bad
	}
	var req *request
	if p == nil {
		req, p = anthropic{}.parse(body, true)
	}
	if p != nil {
		s.refuseOutside(w, r, *p)
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"input_tokens": req.usage().Prompt})
}

func (s *Server) serveBooks(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, s.Books())
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client's loss
}

// discard is for what net/http says of connections that were cut on purpose.
func discard() *log.Logger { return log.New(io.Discard, "", 0) }
