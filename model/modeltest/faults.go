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

// Fault is one way in which a first request goes wrong; the second one is
// answered well.
type Fault struct {
	Serve Serving
	// Class ends the call; empty where it is tried again, after exactly so
	// long, or where that is 0 after the policy's own first wait.
	Class model.Status
	Waits time.Duration

	takes time.Duration // the request itself, before it failed
	idle  time.Duration // the same of a stream, where that is another time
	date  bool          // what is waited is rounded to seconds
}

// Serving is a server that knows whether a stream was asked for.
type Serving func(w http.ResponseWriter, r *http.Request, stream bool)

// Refuses is a server that answers with a status; of headers there may be one.
func Refuses(status int, body string, header ...string) Serving {
	return func(w http.ResponseWriter, r *http.Request, _ bool) {
		if len(header) == 2 {
			w.Header().Set(header[0], header[1])
		}
		Says(status, "application/json", body)(w, r)
	}
}

// Answers is a server that answers so, well as far as it can tell.
func Answers(kind, body string) Serving {
	return func(w http.ResponseWriter, r *http.Request, _ bool) { Says(http.StatusOK, kind, body)(w, r) }
}

// part sends the beginning of a good answer, and then does something else.
func (p Provider) part(then func(r *http.Request)) Serving {
	return func(w http.ResponseWriter, r *http.Request, stream bool) {
		_, _ = io.Copy(io.Discard, r.Body)
		kind, text := p.good(stream)
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

// common are the faults of every API.
func (p Provider) common() map[string]Fault {
	const timeout, silence = 10 * time.Minute, 2 * time.Minute
	return map[string]Fault{
		"429, seconds":      {Serve: Refuses(429, "{}", "Retry-After", "17"), Waits: 17 * time.Second},
		"429, milliseconds": {Serve: Refuses(429, "{}", "Retry-After-Ms", "1700"), Waits: 1700 * time.Millisecond},
		"429, date": {Serve: func(w http.ResponseWriter, r *http.Request, stream bool) {
			date := time.Now().Add(33 * time.Second).UTC().Format(http.TimeFormat)
			Refuses(429, "{}", "Retry-After", date)(w, r, stream)
		}, Waits: 33 * time.Second, date: true},
		"429, silent":        {Serve: Refuses(429, "{}")},
		"a day":              {Serve: Refuses(429, "{}", "Retry-After", "86400"), Class: model.RateLimited},
		"408":                {Serve: Refuses(408, "{}")},
		"409":                {Serve: Refuses(409, "{}")},
		"500":                {Serve: Refuses(500, "")},
		"502, page":          {Serve: Refuses(502, "<html>")},
		"503, seconds":       {Serve: Refuses(503, "{}", "Retry-After", "5"), Waits: 5 * time.Second},
		"504":                {Serve: Refuses(504, "")},
		"529":                {Serve: Refuses(529, `{"error":{"message":"overloaded"}}`)},
		"400":                {Serve: Refuses(400, `{"error":{"message":"no"}}`), Class: model.BadRequest},
		"401":                {Serve: Refuses(401, "{}"), Class: model.AuthenticationError},
		"402":                {Serve: Refuses(402, "{}"), Class: model.AuthenticationError},
		"403":                {Serve: Refuses(403, "{}"), Class: model.AuthenticationError},
		"404":                {Serve: Refuses(404, "{}"), Class: model.BadRequest},
		"413":                {Serve: Refuses(413, "{}"), Class: model.ContextWindowExceeded},
		"page":               {Serve: Answers("text/html", "<html>")},
		"bad JSON":           {Serve: Answers("application/json", `{"a":[{`)},
		"nothing":            {Serve: Answers("application/json", "")},
		"no events":          {Serve: Answers("text/event-stream", "")},
		"reset":              {Serve: func(_ http.ResponseWriter, r *http.Request, _ bool) { hangUp(r) }},
		"reset in the midst": {Serve: p.part(hangUp)},
		"cut":                {Serve: p.part(func(*http.Request) {})},
		"stall": {Serve: func(_ http.ResponseWriter, r *http.Request, _ bool) {
			_, _ = io.Copy(io.Discard, r.Body)
			stall(r)
		}, takes: timeout},
		"stall in the midst": {Serve: p.part(stall), takes: timeout, idle: silence},
	}
}

// faults is every fault, plain and streamed, by a clock that nobody waits for:
// the class it ends in, how many requests the server saw, how long was waited.
func (p Provider) faults(t *testing.T) {
	all := p.common()
	maps.Copy(all, p.Faults)
	for name, f := range all {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stream %t", name, stream), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { p.try(t, f, stream) })
			})
		}
	}
}

func (p Provider) try(t *testing.T, f Fault, stream bool) {
	requests := 0
	m := p.within(t, stream, func(w http.ResponseWriter, r *http.Request) {
		if requests++; requests == 1 {
			f.Serve(w, r, stream)
			return
		}
		p.serve(stream)(w, r)
	})
	if stream && f.idle > 0 {
		f.takes = f.idle
	}
	start := time.Now()
	reply, err := ask(t.Context(), m)
	took := time.Since(start)

	want := 2
	if f.Class != "" {
		want = 1
	}
	if requests != want || reply.Tries != want || len(reply.Attempts) != want {
		t.Fatalf("the server saw %d requests, told %d, want %d: %v", requests, reply.Tries, want, err)
	}
	if f.Class != "" {
		if got := reply.Attempts[0]; got.Status != f.Class || reply.Waited != 0 || took != f.takes {
			t.Errorf("%s after %v: %v", got.Status, took, err)
		}
		return
	}
	if err != nil || reply.Message.Content == "" || reply.Usage.Prompt < 100 {
		t.Errorf("%+v, %v", reply.Usage, err)
	}
	least, most := f.Waits, f.Waits
	switch {
	case f.Waits == 0:
		least, most = 125*time.Millisecond, 375*time.Millisecond
	case f.date:
		least -= time.Second
	}
	if reply.Waited < least || reply.Waited > most || took != reply.Waited+f.takes {
		t.Errorf("waited %v of %v, want %v to %v", reply.Waited, took, least, most)
	}
}

// within makes a model of what serve answers, inside a bubble of fake time, with
// the policy around it that every provider has.
func (p Provider) within(t *testing.T, stream bool, serve http.HandlerFunc) model.Model {
	t.Helper()
	network := fake.NewMemory()
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
