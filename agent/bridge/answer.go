package bridge

import (
	"context"
	"crypto/sha256"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/minibench/mini/model/dialect"
)

// Times of the keepalives of streamed answers. Without them, clients give up after some
// minutes.
const (
	holdHeaders    = 20 * time.Second
	keepAliveEvery = 3 * time.Second
)

// answerWriter writes one answer to the agent.
type answerWriter struct {
	dialect dialect.Dialect
	copy    *answer

	mu      sync.Mutex
	w       http.ResponseWriter
	started bool // the status was sent
	events  bool // an event was sent
}

// start sends the status of a stream. The caller holds the lock.
func (a *answerWriter) start() {
	if !a.started {
		a.started = true
		a.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		a.w.Header().Set("Cache-Control", "no-cache")
		a.w.WriteHeader(http.StatusOK)
	}
}

// send writes events and keeps them for a repeat.
func (a *answerWriter) send(events []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.start()
	a.events = true
	a.copy.add("text/event-stream; charset=utf-8", events)
	if _, err := a.w.Write(events); err != nil {
		return err
	}
	return http.NewResponseController(a.w).Flush()
}

// finish writes the last events. The agent may be gone.
func (a *answerWriter) finish(events []byte) { _ = a.send(events) }

// whole writes an answer that is not a stream.
func (a *answerWriter) whole(body []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.copy.add("application/json", body)
	if a.started { // keepalives were sent: the answer can only be an event
		_, _ = a.w.Write(append(append([]byte("data: "), body...), "\n\n"...)) // the agent may be gone
		return
	}
	a.w.Header().Set("Content-Type", "application/json")
	a.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = a.w.Write(body) // likewise
}

// fail writes an error: as the response if none was begun, else as an event.
func (a *answerWriter) fail(status int, body []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.started {
		sendError(a.w, status, body)
		return
	}
	event := append(append([]byte("data: "), body...), "\n\n"...)
	if a.dialect.HasEventNames() {
		event = append([]byte("event: error\n"), event...)
	}
	_, _ = a.w.Write(event) //nolint:gosec // an answer of the provider in JSON; the agent may be gone
}

// keepAlive sends keepalives while the agent waits for the first event, until stop is
// called.
func (a *answerWriter) keepAlive() (stop func()) {
	done := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		timer := time.NewTimer(holdHeaders)
		defer timer.Stop()
		for {
			select {
			case <-timer.C:
			case <-done:
				return
			}
			if !a.sendKeepAlive() {
				return
			}
			timer.Reset(keepAliveEvery)
		}
	})
	return func() {
		close(done)
		ended.Wait()
	}
}

func (a *answerWriter) sendKeepAlive() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.events {
		return false
	}
	a.start()
	text := ": keepalive\n" // without an empty line, which some clients take for an event
	if a.dialect.Name() == "messages" {
		text = "event: ping\ndata: {\"type\": \"ping\"}\n\n"
	}
	if _, err := a.w.Write([]byte(text)); err != nil {
		return false
	}
	return http.NewResponseController(a.w).Flush() == nil
}

// Limits of the answers that are kept for repeats.
const (
	maxAnswers     = 64
	maxAnswerBytes = 1 << 20
)

// answers are the last answers, by request. A client that repeats a request gets the
// stored or running answer, which is not paid twice.
type answers struct {
	mu   sync.Mutex
	all  map[[sha256.Size]byte]*answer
	keys [][sha256.Size]byte // oldest first
}

// answer is a running or complete answer.
type answer struct {
	done        chan struct{} // closed by end
	ok          bool          // complete and usable
	contentType string
	data        []byte
	tooLong     bool
}

func requestKey(r *http.Request, body []byte) [sha256.Size]byte {
	h := sha256.New()
	_, _ = h.Write([]byte(r.URL.Path + "\x00")) // never fails
	_, _ = h.Write(body)                        // likewise
	return [sha256.Size]byte(h.Sum(nil))
}

// begin returns the answer of a new request, or the one of the request that this one
// repeats.
func (s *answers) begin(r *http.Request, body []byte) (_ *answer, isRepeat bool) {
	if n, err := strconv.Atoi(r.Header.Get("X-Stainless-Retry-Count")); err == nil && n > 0 {
		s.mu.Lock()
		a := s.all[requestKey(r, body)]
		s.mu.Unlock()
		if a != nil {
			return a, true
		}
	}
	return s.replace(r, body), false
}

// replace starts the answer of a request.
func (s *answers) replace(r *http.Request, body []byte) *answer {
	key, a := requestKey(r, body), &answer{done: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[[sha256.Size]byte]*answer{}
	}
	if s.all[key] == nil {
		s.keys = append(s.keys, key)
	}
	s.all[key] = a
	if len(s.keys) > maxAnswers {
		delete(s.all, s.keys[0])
		s.keys = s.keys[1:]
	}
	return a
}

// add keeps a part of the answer.
func (a *answer) add(contentType string, data []byte) {
	a.contentType = contentType
	if a.tooLong = a.tooLong || len(a.data)+len(data) > maxAnswerBytes; a.tooLong {
		a.data = nil
		return
	}
	a.data = append(a.data, data...)
}

// end makes the answer available to repeats.
func (a *answer) end(ok bool) {
	a.ok = ok && !a.tooLong
	close(a.done)
}

// replay waits for the answer and writes it. It reports whether there was one.
func (a *answer) replay(ctx context.Context, w http.ResponseWriter) bool {
	select {
	case <-a.done:
	case <-ctx.Done():
		return true // the client has left again
	}
	if !a.ok {
		return false
	}
	w.Header().Set("Content-Type", a.contentType)
	_, _ = w.Write(a.data) //nolint:gosec // likewise
	return true
}
