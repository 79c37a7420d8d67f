package modeltest

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/fake"
	"github.com/minibench/mini/model/retry"
)

// Fault makes the first request fail; the second one succeeds.
type Fault struct {
	Serve Handler
	// Status is the status that ends the call. If it is empty, the call is retried
	// after Wait, or after the policy's own first wait if Wait is 0.
	Status model.Status
	Wait   time.Duration

	duration       time.Duration // duration of the failing request
	streamDuration time.Duration // the same for a stream, if it differs
	rounded        bool          // the wait is rounded down to seconds
}

// Handler handles a request; stream reports whether it asks for a stream.
type Handler func(w http.ResponseWriter, r *http.Request, stream bool)

// ErrorHandler returns a handler that answers with a status, a body and, if given,
// a header as name and value.
func ErrorHandler(status int, body string, header ...string) Handler {
	return func(w http.ResponseWriter, r *http.Request, _ bool) {
		if len(header) == 2 {
			w.Header().Set(header[0], header[1])
		}
		StaticHandler(status, "application/json", body)(w, r)
	}
}

// OKHandler returns a handler that answers with status 200.
func OKHandler(contentType, body string) Handler {
	return func(w http.ResponseWriter, r *http.Request, _ bool) {
		StaticHandler(http.StatusOK, contentType, body)(w, r)
	}
}

// partialResponse sends half of a good answer and then calls then.
func (p Provider) partialResponse(then func(r *http.Request)) Handler {
	return func(w http.ResponseWriter, r *http.Request, stream bool) {
		_, _ = io.Copy(io.Discard, r.Body)
		kind, text := p.goodResponse(stream)
		w.Header().Set("Content-Type", kind)
		if !stream {
			w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		}
		_, _ = io.WriteString(w, text[:len(text)/2])
		_ = http.NewResponseController(w).Flush()
		then(r)
	}
}

func stall(r *http.Request)  { <-r.Context().Done() }
func hangUp(_ *http.Request) { panic(http.ErrAbortHandler) }

// commonFaults returns the faults of every API.
func (p Provider) commonFaults() map[string]Fault {
	const timeout, silence = 10 * time.Minute, 2 * time.Minute
	return map[string]Fault{
		"429, seconds":      {Serve: ErrorHandler(429, "{}", "Retry-After", "17"), Wait: 17 * time.Second},
		"429, milliseconds": {Serve: ErrorHandler(429, "{}", "Retry-After-Ms", "1700"), Wait: 1700 * time.Millisecond},
		"429, date": {Serve: func(w http.ResponseWriter, r *http.Request, stream bool) {
			date := time.Now().Add(33 * time.Second).UTC().Format(http.TimeFormat)
			ErrorHandler(429, "{}", "Retry-After", date)(w, r, stream)
		}, Wait: 33 * time.Second, rounded: true},
		"429, silent":        {Serve: ErrorHandler(429, "{}")},
		"a day":              {Serve: ErrorHandler(429, "{}", "Retry-After", "86400"), Status: model.RateLimited},
		"408":                {Serve: ErrorHandler(408, "{}")},
		"409":                {Serve: ErrorHandler(409, "{}")},
		"500":                {Serve: ErrorHandler(500, "")},
		"502, page":          {Serve: ErrorHandler(502, "<html>")},
		"503, seconds":       {Serve: ErrorHandler(503, "{}", "Retry-After", "5"), Wait: 5 * time.Second},
		"504":                {Serve: ErrorHandler(504, "")},
		"529":                {Serve: ErrorHandler(529, `{"error":{"message":"overloaded"}}`)},
		"400":                {Serve: ErrorHandler(400, `{"error":{"message":"no"}}`), Status: model.BadRequest},
		"401":                {Serve: ErrorHandler(401, "{}"), Status: model.AuthenticationError},
		"402":                {Serve: ErrorHandler(402, "{}"), Status: model.AuthenticationError},
		"403":                {Serve: ErrorHandler(403, "{}"), Status: model.AuthenticationError},
		"404":                {Serve: ErrorHandler(404, "{}"), Status: model.BadRequest},
		"413":                {Serve: ErrorHandler(413, "{}"), Status: model.ContextWindowExceeded},
		"page":               {Serve: OKHandler("text/html", "<html>")},
		"bad JSON":           {Serve: OKHandler("application/json", `{"a":[{`)},
		"nothing":            {Serve: OKHandler("application/json", "")},
		"no events":          {Serve: OKHandler("text/event-stream", "")},
		"reset":              {Serve: func(_ http.ResponseWriter, r *http.Request, _ bool) { hangUp(r) }},
		"reset in the midst": {Serve: p.partialResponse(hangUp)},
		"cut":                {Serve: p.partialResponse(func(*http.Request) {})},
		"stall": {Serve: func(_ http.ResponseWriter, r *http.Request, _ bool) {
			_, _ = io.Copy(io.Discard, r.Body)
			stall(r)
		}, duration: timeout},
		"stall in the midst": {Serve: p.partialResponse(stall), duration: timeout, streamDuration: silence},
	}
}

// faults tests every fault, plain and streamed, with a fake clock. It checks the
// final status, the number of requests and the time waited.
func (p Provider) faults(t *testing.T) {
	all := p.commonFaults()
	maps.Copy(all, p.Faults)
	for name, f := range all {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stream %t", name, stream), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { p.testFault(t, f, stream) })
			})
		}
	}
}

func (p Provider) testFault(t *testing.T, f Fault, stream bool) {
	requests := 0
	m := p.connectInBubble(t, stream, func(w http.ResponseWriter, r *http.Request) {
		if requests++; requests == 1 {
			f.Serve(w, r, stream)
			return
		}
		p.serve(stream)(w, r)
	})
	if stream && f.streamDuration > 0 {
		f.duration = f.streamDuration
	}
	start := time.Now()
	reply, err := ask(t.Context(), m)
	took := time.Since(start)

	want := 2
	if f.Status != "" {
		want = 1
	}
	if requests != want || reply.Tries != want || len(reply.Requests) != want {
		t.Fatalf("the server received %d requests, the reply reports %d, want %d: %v", requests, reply.Tries, want, err)
	}
	if f.Status != "" {
		if got := reply.Requests[0]; got.Status != f.Status || reply.Waited != 0 || took != f.duration {
			t.Errorf("%s after %v: %v", got.Status, took, err)
		}
		return
	}
	if err != nil || reply.Message.Content == "" || reply.Usage.Prompt < 100 {
		t.Errorf("%+v, %v", reply.Usage, err)
	}
	minWait, maxWait := f.Wait, f.Wait
	switch {
	case f.Wait == 0:
		minWait, maxWait = 125*time.Millisecond, 375*time.Millisecond
	case f.rounded:
		minWait -= time.Second
	}
	if reply.Waited < minWait || reply.Waited > maxWait || took != reply.Waited+f.duration {
		t.Errorf("waited %v of %v, want %v to %v", reply.Waited, took, minWait, maxWait)
	}
}

// connectInBubble returns a model that sends its requests to serve, with retries and
// with connections in memory, for a synctest bubble.
func (p Provider) connectInBubble(t *testing.T, stream bool, serve http.HandlerFunc) model.Model {
	t.Helper()
	network := fake.NewMemoryListener()
	server := &http.Server{Handler: serve, ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(network) }()
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	client := &http.Client{Transport: &http.Transport{DialContext: network.DialContext, DisableKeepAlives: true}}
	return retry.New(p.make(t, Settings{BaseURL: "http://inside", Stream: stream, Client: client}), retry.Policy{MaxTries: 5})
}
