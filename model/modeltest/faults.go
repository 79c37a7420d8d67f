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

// Fault makes a first request fail; the second one succeeds.
type Fault struct {
	Serve Handler
	// Class is the status that ends the call. If it is empty, the call is retried
	// after Wait, or after the policy's own first wait if Wait is 0.
	Class model.Status
	Wait  time.Duration

	duration       time.Duration // duration of the failing request
	streamDuration time.Duration // the same for a stream, if it differs
	rounded        bool          // the wait is rounded to seconds
}

// Handler is a server that knows whether a stream was requested.
type Handler func(w http.ResponseWriter, r *http.Request, stream bool)

// ErrorResponse returns a server that answers with a status and at most one
// header.
func ErrorResponse(status int, body string, header ...string) Handler {
	return func(w http.ResponseWriter, r *http.Request, _ bool) {
		if len(header) == 2 {
			w.Header().Set(header[0], header[1])
		}
		StaticResponse(status, "application/json", body)(w, r)
	}
}

// OKResponse returns a server that answers with status 200.
func OKResponse(kind, body string) Handler {
	return func(w http.ResponseWriter, r *http.Request, _ bool) { StaticResponse(http.StatusOK, kind, body)(w, r) }
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
		"429, seconds":      {Serve: ErrorResponse(429, "{}", "Retry-After", "17"), Wait: 17 * time.Second},
		"429, milliseconds": {Serve: ErrorResponse(429, "{}", "Retry-After-Ms", "1700"), Wait: 1700 * time.Millisecond},
		"429, date": {Serve: func(w http.ResponseWriter, r *http.Request, stream bool) {
			date := time.Now().Add(33 * time.Second).UTC().Format(http.TimeFormat)
			ErrorResponse(429, "{}", "Retry-After", date)(w, r, stream)
		}, Wait: 33 * time.Second, rounded: true},
		"429, silent":        {Serve: ErrorResponse(429, "{}")},
		"a day":              {Serve: ErrorResponse(429, "{}", "Retry-After", "86400"), Class: model.RateLimited},
		"408":                {Serve: ErrorResponse(408, "{}")},
		"409":                {Serve: ErrorResponse(409, "{}")},
		"500":                {Serve: ErrorResponse(500, "")},
		"502, page":          {Serve: ErrorResponse(502, "<html>")},
		"503, seconds":       {Serve: ErrorResponse(503, "{}", "Retry-After", "5"), Wait: 5 * time.Second},
		"504":                {Serve: ErrorResponse(504, "")},
		"529":                {Serve: ErrorResponse(529, `{"error":{"message":"overloaded"}}`)},
		"400":                {Serve: ErrorResponse(400, `{"error":{"message":"no"}}`), Class: model.BadRequest},
		"401":                {Serve: ErrorResponse(401, "{}"), Class: model.AuthenticationError},
		"402":                {Serve: ErrorResponse(402, "{}"), Class: model.AuthenticationError},
		"403":                {Serve: ErrorResponse(403, "{}"), Class: model.AuthenticationError},
		"404":                {Serve: ErrorResponse(404, "{}"), Class: model.BadRequest},
		"413":                {Serve: ErrorResponse(413, "{}"), Class: model.ContextWindowExceeded},
		"page":               {Serve: OKResponse("text/html", "<html>")},
		"bad JSON":           {Serve: OKResponse("application/json", `{"a":[{`)},
		"nothing":            {Serve: OKResponse("application/json", "")},
		"no events":          {Serve: OKResponse("text/event-stream", "")},
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

// faults tests every fault, plain and streamed, with a fake clock: the status it
// ends in, the number of requests, the time waited.
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
	if f.Class != "" {
		want = 1
	}
	if requests != want || reply.Tries != want || len(reply.Requests) != want {
		t.Fatalf("the server saw %d requests, told %d, want %d: %v", requests, reply.Tries, want, err)
	}
	if f.Class != "" {
		if got := reply.Requests[0]; got.Status != f.Class || reply.Waited != 0 || took != f.duration {
			t.Errorf("%s after %v: %v", got.Status, took, err)
		}
		return
	}
	if err != nil || reply.Message.Content == "" || reply.Usage.Prompt < 100 {
		t.Errorf("%+v, %v", reply.Usage, err)
	}
	least, most := f.Wait, f.Wait
	switch {
	case f.Wait == 0:
		least, most = 125*time.Millisecond, 375*time.Millisecond
	case f.rounded:
		least -= time.Second
	}
	if reply.Waited < least || reply.Waited > most || took != reply.Waited+f.duration {
		t.Errorf("waited %v of %v, want %v to %v", reply.Waited, took, least, most)
	}
}

// connectInBubble returns a model in a synctest bubble that asks serve, wrapped with the
// usual retry policy.
func (p Provider) connectInBubble(t *testing.T, stream bool, serve http.HandlerFunc) model.Model {
	t.Helper()
	network := fake.NewMemoryListener()
	server := &http.Server{Handler: serve, ReadHeaderTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(network) }()
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	client := &http.Client{Transport: &http.Transport{DialContext: network.DialContext, DisableKeepAlives: true}}
	return retry.New(p.make(t, Settings{BaseURL: "http://inside", Stream: stream, Client: client}), retry.Policy{MaxTries: 5})
}
