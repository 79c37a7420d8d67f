package fake

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	"github.com/minibench/mini/model/fake/vllm"
)

// Server is an http.Handler, and a server for any listener.
type Server struct {
	config Config
	tokens *vllm.Server // for Config.Tokens
	mux    *http.ServeMux
	http   *http.Server

	mu        sync.Mutex // guards the following fields
	stats     Stats
	requests  []*Request
	requested map[instanceStep]int // number of requests for each reply

	closed   bool
	inFlight sync.WaitGroup // requests in progress
}

// Serve serves on a listener until Close, and then returns nil.
func (s *Server) Serve(l net.Listener) error {
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// Close closes listeners and connections, and waits for requests to end.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	err := s.http.Close()
	s.inFlight.Wait()
	return err
}

// beginRequest registers a request, for which Close then waits. It returns false if
// the server is closed.
func (s *Server) beginRequest() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.inFlight.Add(1)
	}
	return !s.closed
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.beginRequest() {
		panic(http.ErrAbortHandler) // closes the connection
	}
	defer s.inFlight.Done()
	s.mux.ServeHTTP(w, r)
}

// routes returns the handlers. The paths of the APIs work with and without /v1.
func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for _, base := range []string{"", "/v1"} {
		mux.HandleFunc("POST "+base+"/chat/completions", func(w http.ResponseWriter, r *http.Request) {
			if s.config.Tokens {
				s.answerWithTokens(w, r)
			} else {
				s.answer(w, r, openAI{})
			}
		})
		mux.HandleFunc("POST "+base+"/messages", func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, anthropic{}) })
		mux.HandleFunc("POST "+base+"/responses", func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, responses{}) })
		mux.HandleFunc("POST "+base+"/messages/count_tokens", func(w http.ResponseWriter, r *http.Request) { s.countTokens(w, r, "input_tokens") })
		mux.HandleFunc("GET "+base+"/models", s.listModels)
	}
	mux.HandleFunc("POST /v1beta/models/{call}", s.serveGemini)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		p := problem{
			status: http.StatusNotFound, typ: "invalid_request_error", code: "unknown_url",
			message: fmt.Sprintf("Unknown request URL: %s %s.", r.Method, r.URL.Path),
		}
		if wireOf(r) == (anthropic{}) {
			p.typ, p.message = "not_found_error", "Not found"
		}
		s.refuseUnrecorded(w, r, p)
	})
	return mux
}

// wireOf guesses, from its headers, the API of a request.
func wireOf(r *http.Request) wireFormat {
	if r.Header.Get("Anthropic-Version") != "" || r.Header.Get("X-Api-Key") != "" {
		return anthropic{}
	}
	return openAI{}
}

// refuseUnrecorded refuses a request that is not for a completion. The server does
// not record such requests.
func (s *Server) refuseUnrecorded(w http.ResponseWriter, r *http.Request, p problem) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(p.status)
	_, _ = w.Write(wireOf(r).problem(p, "req_fake")) // the client may be gone
}

func (s *Server) listModels(w http.ResponseWriter, r *http.Request) {
	if !s.isKeyValid(r) {
		s.refuseUnrecorded(w, r, badKey(wireOf(r)))
		return
	}
	names := s.config.Models
	if len(names) == 0 {
		names = []string{"fake"}
	}
	var list []any
	for _, name := range names {
		list = append(list, map[string]any{"id": name, "type": "model", "object": "model", "display_name": name, "owned_by": "fake"})
	}
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": list, "has_more": false})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may be gone
}
