package openai_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minibench/mini/model"
)

// whole is a good answer, plain or streamed, as the request asks for it.
func whole(stream bool) (kind, body string) {
	if stream {
		return "text/event-stream", streamed
	}
	return "application/json", plain
}

// fault is one way in which a first request goes wrong; the second is answered
// well.
type fault struct {
	serve func(w http.ResponseWriter, r *http.Request, stream bool)
	// class ends the call; empty where it is tried again, after exactly so
	// long, or where that is 0 after the policy's own first wait.
	class model.Status
	waits time.Duration
	takes time.Duration // the request itself, before it failed
	idle  time.Duration // the same of a stream, where that is another time
}

func status(code int, body string, header ...string) func(http.ResponseWriter, *http.Request, bool) {
	return func(w http.ResponseWriter, r *http.Request, _ bool) {
		if len(header) == 2 {
			w.Header().Set(header[0], header[1])
		}
		says(code, "application/json", body)(w, r)
	}
}

func body(kind, text string) func(http.ResponseWriter, *http.Request, bool) {
	return func(w http.ResponseWriter, r *http.Request, _ bool) { says(200, kind, text)(w, r) }
}

// part sends the beginning of a good answer, and then does something else.
func part(then func(w http.ResponseWriter, r *http.Request)) func(http.ResponseWriter, *http.Request, bool) {
	return func(w http.ResponseWriter, r *http.Request, stream bool) {
		_, _ = io.Copy(io.Discard, r.Body)
		kind, text := whole(stream)
		w.Header().Set("Content-Type", kind)
		if !stream {
			w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		}
		_, _ = io.WriteString(w, text[:400])
		_ = http.NewResponseController(w).Flush()
		if then != nil {
			then(w, r)
		}
	}
}

func stall(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func faults() map[string]fault {
	const timeout = 10 * time.Minute
	return map[string]fault{
		"429, seconds":      {serve: status(429, "{}", "Retry-After", "17"), waits: 17 * time.Second},
		"429, milliseconds": {serve: status(429, "{}", "Retry-After-Ms", "1700"), waits: 1700 * time.Millisecond},
		"429, date": {serve: func(w http.ResponseWriter, r *http.Request, _ bool) {
			in(33*time.Second)(w, r)
		}, waits: 33 * time.Second},
		"429, silent":        {serve: status(429, "{}")},
		"408":                {serve: status(408, "{}")},
		"409":                {serve: status(409, "{}")},
		"500":                {serve: status(500, "")},
		"502, page":          {serve: status(502, "<html>")},
		"503, seconds":       {serve: status(503, "{}", "Retry-After", "5"), waits: 5 * time.Second},
		"504":                {serve: status(504, "")},
		"529":                {serve: status(529, `{"error":{"message":"overloaded"}}`)},
		"page":               {serve: body("text/html", "<html>")},
		"bad JSON":           {serve: body("application/json", `{"choices":[{`)},
		"error in good":      {serve: body("application/json", `{"error":{"message":"upstream","code":502}}`)},
		"busy in good":       {serve: body("application/json", `{"error":{"message":"slow down","code":429}}`)},
		"no choices":         {serve: body("application/json", `{"choices":[]}`)},
		"no finish":          {serve: body("application/json", `{"choices":[{"message":{"content":"x"}}]}`)},
		"nothing":            {serve: body("application/json", "")},
		"reset":              {serve: func(http.ResponseWriter, *http.Request, bool) { panic(http.ErrAbortHandler) }},
		"reset in the midst": {serve: part(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })},
		"cut":                {serve: part(nil)},
		"stall": {serve: func(w http.ResponseWriter, r *http.Request, _ bool) {
			_, _ = io.Copy(io.Discard, r.Body)
			stall(w, r)
		}, takes: timeout},
		"stall in the midst": {serve: part(stall), takes: timeout, idle: 2 * time.Minute},
		"400":                {serve: status(400, `{"error":{"message":"no"}}`), class: model.BadRequest},
		"401":                {serve: status(401, "{}"), class: model.AuthenticationError},
		"402":                {serve: status(402, "{}"), class: model.AuthenticationError},
		"403":                {serve: status(403, "{}"), class: model.AuthenticationError},
		"404":                {serve: status(404, "{}"), class: model.BadRequest},
		"no credit":          {serve: status(429, `{"error":{"code":"insufficient_quota"}}`), class: model.AuthenticationError},
		"too long":           {serve: status(400, `{"error":{"code":"context_length_exceeded"}}`), class: model.ContextWindowExceeded},
		"refused":            {serve: status(400, `{"error":{"code":"content_filter"}}`), class: model.ContentRefused},
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
					reply, err := m.Query(t.Context(), nil)
					took := time.Since(start)

					want := 2
					if f.class != "" {
						want = 1
					}
					if requests != want || reply.Tries != want || len(reply.Attempts) != want {
						t.Errorf("the server saw %d requests, told %d, want %d: %v", requests, reply.Tries, want, err)
					}
					if got := reply.Attempts[0]; f.class != "" && (got.Status != f.class || reply.Waited != 0) {
						t.Errorf("%s after %v: %v", got.Status, reply.Waited, err)
					}
					if f.class != "" {
						return
					}
					if err != nil || reply.Usage.Prompt != 100 || reply.Cost != 0.5 {
						t.Errorf("%+v, %v", reply.Usage, err)
					}
					least, most := f.waits, f.waits
					if f.waits == 0 {
						least, most = 125*time.Millisecond, 375*time.Millisecond
					} else if name == "429, date" {
						least -= time.Second // its seconds are whole
					}
					if reply.Waited < least || reply.Waited > most || took != reply.Waited+f.takes {
						t.Errorf("waited %v of %v, want %v to %v", reply.Waited, took, least, most)
					}
				})
			})
		}
	}
}
