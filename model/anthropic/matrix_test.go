package anthropic_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/anthropic"
	"github.com/minibench/mini/model/retry"
)

// pipes is a network inside the process, which fake time can stand still for.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// within makes a model of what serve answers, inside a bubble of fake time,
// with the policy around it that every provider has.
func within(t *testing.T, serve http.HandlerFunc, stream bool) model.Model {
	t.Helper()
	p := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	server := &http.Server{Handler: serve, ReadHeaderTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(p) }()
	m, err := anthropic.New(anthropic.Config{
		Name: "m", BaseURL: "http://inside", Stream: stream, Price: model.Price{Input: 1, Output: 1},
		HTTPClient: &http.Client{Transport: &http.Transport{DialContext: p.dial, DisableKeepAlives: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(m.Close(), server.Close()); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	return retry.New(m, retry.Policy{MaxTries: 5})
}

// whole is a good answer, plain or streamed, as the request asks for it.
func whole(stream bool) (kind, body string) {
	if stream {
		return "text/event-stream", streamed
	}
	return "application/json", plain
}

type serving func(w http.ResponseWriter, r *http.Request, stream bool)

// fault is one way in which a first request goes wrong; the second is answered
// well.
type fault struct {
	serve serving
	// class ends the call; empty where it is tried again, after exactly so
	// long, or where that is 0 after the policy's own first wait.
	class model.Status
	waits time.Duration
	takes time.Duration // the request itself, before it failed
	idle  time.Duration // the same of a stream, where that is another time
}

func status(code int, body string, header ...string) serving {
	return func(w http.ResponseWriter, r *http.Request, _ bool) {
		if len(header) == 2 {
			w.Header().Set(header[0], header[1])
		}
		says(code, "application/json", body)(w, r)
	}
}

func body(kind, text string) serving {
	return func(w http.ResponseWriter, r *http.Request, _ bool) { says(200, kind, text)(w, r) }
}

// part sends the beginning of a good answer, and then does something else.
func part(then func(w http.ResponseWriter, r *http.Request)) serving {
	return func(w http.ResponseWriter, r *http.Request, stream bool) {
		_, _ = io.Copy(io.Discard, r.Body)
		kind, text := whole(stream)
		w.Header().Set("Content-Type", kind)
		if !stream {
			w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		}
		_, _ = io.WriteString(w, text[:len(text)/2])
		_ = http.NewResponseController(w).Flush()
		if then != nil {
			then(w, r)
		}
	}
}

func stall(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// told is an error that comes with a status of its own, or in mid-stream.
func told(code int, kind, text string) serving {
	return func(w http.ResponseWriter, r *http.Request, stream bool) {
		if !stream {
			says(code, "application/json", failure(kind, text))(w, r)
			return
		}
		first, _, _ := strings.Cut(streamed, "event: message_delta")
		says(200, "text/event-stream", first+"event: error\ndata: "+failure(kind, text)+"\n\n")(w, r)
	}
}

func faults() map[string]fault {
	const timeout = 10 * time.Minute
	return map[string]fault{
		"429, seconds":      {serve: status(429, "{}", "Retry-After", "17"), waits: 17 * time.Second},
		"429, milliseconds": {serve: status(429, "{}", "Retry-After-Ms", "1700"), waits: 1700 * time.Millisecond},
		"429, date": {serve: func(w http.ResponseWriter, r *http.Request, _ bool) {
			date := time.Now().Add(33 * time.Second).UTC().Format(http.TimeFormat)
			status(429, "{}", "Retry-After", date)(w, r, false)
		}, waits: 33 * time.Second},
		"429, silent":        {serve: status(429, "{}")},
		"500":                {serve: status(500, failure("api_error", "x"))},
		"502, page":          {serve: status(502, "<html>")},
		"503, seconds":       {serve: status(503, "{}", "Retry-After", "5"), waits: 5 * time.Second},
		"529":                {serve: status(529, failure("overloaded_error", "x"))},
		"overloaded":         {serve: told(529, "overloaded_error", "x")},
		"rate":               {serve: told(429, "rate_limit_error", "x")},
		"API":                {serve: told(500, "api_error", "x")},
		"page":               {serve: body("text/html", "<html>")},
		"bad JSON":           {serve: body("application/json", `{"content":[{`)},
		"error in good":      {serve: body("application/json", failure("api_error", "x"))},
		"no content":         {serve: body("application/json", `{"stop_reason":"end_turn"}`)},
		"no stop_reason":     {serve: body("application/json", message("", "null"))},
		"nothing":            {serve: body("application/json", "")},
		"no events":          {serve: body("text/event-stream", "")},
		"reset":              {serve: func(http.ResponseWriter, *http.Request, bool) { panic(http.ErrAbortHandler) }},
		"reset in the midst": {serve: part(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })},
		"cut":                {serve: part(nil)},
		"stall": {serve: func(w http.ResponseWriter, r *http.Request, _ bool) {
			_, _ = io.Copy(io.Discard, r.Body)
			stall(w, r)
		}, takes: timeout},
		"stall in the midst": {serve: part(stall), takes: timeout, idle: 2 * time.Minute},
		"400":                {serve: told(400, "invalid_request_error", "no"), class: model.BadRequest},
		"401":                {serve: told(401, "authentication_error", "no"), class: model.AuthenticationError},
		"403":                {serve: told(403, "permission_error", "no"), class: model.AuthenticationError},
		"404":                {serve: told(404, "not_found_error", "model: m"), class: model.BadRequest},
		"no credit":          {serve: told(400, "invalid_request_error", "Your credit balance is too low"), class: model.AuthenticationError},
		"too long":           {serve: told(400, "invalid_request_error", "prompt is too long: 2 tokens > 1 maximum"), class: model.ContextWindowExceeded},
		"too large":          {serve: told(413, "request_too_large", "no"), class: model.ContextWindowExceeded},
		"end of the window":  {serve: body("application/json", message("", `"model_context_window_exceeded"`)), class: model.ContextWindowExceeded},
		"refused":            {serve: body("application/json", message("", `"refusal"`)), class: model.ContentRefused},
		"a day":              {serve: status(429, "{}", "Retry-After", "86400"), class: model.RateLimited},
	}
}

// TestFaultMatrix is every fault, plain and streamed: the class it ends in, how
// many requests the server saw, and how long was waited.
func TestFaultMatrix(t *testing.T) {
	for name, f := range faults() {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stream %t", name, stream), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					requests := 0
					m := within(t, func(w http.ResponseWriter, r *http.Request) {
						if requests++; requests == 1 {
							f.serve(w, r, stream)
							return
						}
						kind, text := whole(stream)
						says(200, kind, text)(w, r)
					}, stream)
					if stream && f.idle > 0 {
						f.takes = f.idle
					}
					start := time.Now()
					reply, err := m.Query(t.Context(), []model.Message{{Role: model.User, Content: "x"}})
					f.check(t, reply, err, requests, time.Since(start))
				})
			})
		}
	}
}

func (f fault) check(t *testing.T, reply model.Reply, err error, requests int, took time.Duration) {
	t.Helper()
	want := 2
	if f.class != "" {
		want = 1
	}
	if requests != want || reply.Tries != want || len(reply.Attempts) != want {
		t.Errorf("the server saw %d requests, told %d, want %d: %v", requests, reply.Tries, want, err)
		return
	}
	if f.class != "" {
		if got := reply.Attempts[0]; got.Status != f.class || reply.Waited != 0 || took != f.takes {
			t.Errorf("%s after %v: %v", got.Status, reply.Waited, err)
		}
		return
	}
	if err != nil || reply.Message.Content == "" || reply.Usage.Completion < 25 {
		t.Errorf("%+v, %v", reply.Usage, err)
	}
	least, most := f.waits-time.Second, f.waits // the seconds of a date are whole
	if f.waits == 0 {
		least, most = 125*time.Millisecond, 375*time.Millisecond
	}
	if reply.Waited < least || reply.Waited > most || took != reply.Waited+f.takes {
		t.Errorf("waited %v of %v, want %v to %v", reply.Waited, took, least, most)
	}
}
