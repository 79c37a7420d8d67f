// Package bridge answers the model requests of an agent in the sandbox. The connections
// come from env.Command.Bridge; HTTP is read on this side only. The requests go to the
// provider of the run in the agent's own dialect, with the run's model, key, retries and
// limits. The container has neither the key nor a network.
//
//	b := bridge.New(ctx, bridge.Config{Model: m, ModelName: "gpt-5", Dialects: []string{"chat"}})
//	defer b.Close()
//	res, err := sandbox.Execute(ctx, env.Command{Script: agent, Bridge: b.Open, Env: map[string]string{"KEY": b.Token()}})
package bridge

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/dialect"
)

// Limits of requests.
const (
	maxBody = 64 << 20
	// largeBody is the length from which on a request is large, and maxLarge how many of
	// these are held at once.
	largeBody = 8 << 20
	maxLarge  = 4
	maxHeader = 64 << 10
	// maxDiscard bounds what is read of a longer body, so that the agent reads the answer
	// instead of a broken connection.
	maxDiscard    = 1 << 30
	headerTimeout = 30 * time.Second
	bodyTimeout   = 5 * time.Minute
	idleTimeout   = 2 * time.Minute
)

// Config configures a Bridge.
type Config struct {
	// Model answers the exchanges of package model/raw.
	Model     model.Model
	ModelName string // replaces the name in requests
	// Dialects are the names of those that the provider speaks.
	Dialects []string
	// AllowServerTools keeps the tools that run at the provider.
	AllowServerTools bool
	// Tokens asks for the tokens of answers, in the dialects that have them. A reply without is an error.
	Tokens bool
	// Begin is called before each request to the provider; isCount is set if it only
	// counts tokens. An error refuses it.
	Begin func(isCount bool) error
	// Record is called for each request that Begin allowed, before the agent can
	// read the end of the answer.
	Record func(Exchange) error
	// OnUnknown is called for the first requests to an unknown path.
	OnUnknown func(endpoint string)
	// Warn is called once for each field that is dropped and for each reason to refuse a
	// request, up to a limit; may be nil.
	Warn func(text string)
}

// Bridge serves the connections of one attempt.
type Bridge struct {
	config  Config
	token   string
	server  *http.Server
	conns   connListener
	answers answers
	waits   waits
	large   chan struct{}  // semaphore of large requests
	served  sync.WaitGroup // Serve and handlers

	mu     sync.Mutex
	closed bool
	counts int                        // requests that count tokens
	seen   map[string]map[string]bool // what was reported, by kind
}

// New starts a Bridge. The pauses of ctx (see model.WithPause) begin while all open
// requests wait for the provider.
func New(ctx context.Context, c Config) *Bridge {
	b := &Bridge{config: c, token: "mini-" + rand.Text(), large: make(chan struct{}, maxLarge), seen: map[string]map[string]bool{}}
	b.conns = connListener{conns: make(chan net.Conn, maxQueue), closed: make(chan struct{})}
	b.waits.begin = func() func() { return model.BeginPause(ctx) }
	b.server = &http.Server{
		Handler: b, MaxHeaderBytes: maxHeader, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		ErrorLog: log.New(io.Discard, "", 0), // it would have what the agent sends
	}
	b.served.Go(func() { _ = b.server.Serve(&b.conns) }) // ends with Close
	return b
}

// Open returns the agent's side of a new connection. It is an env.Command.Bridge.
func (b *Bridge) Open() io.ReadWriteCloser {
	agent, own := net.Pipe() // supports the deadlines that net/http sets
	b.conns.add(own)
	return agent
}

// Token is the API key that the agent has to send.
func (b *Bridge) Token() string { return b.token }

// Close ends all requests, cancels those at the provider, and waits for their records.
// Later requests are refused.
func (b *Bridge) Close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	_ = b.conns.Close()  // never fails
	_ = b.server.Close() // closing the pipes cannot fail
	b.served.Wait()
}

// enter registers a request, for which Close then waits.
func (b *Bridge) enter() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.served.Add(1)
	}
	return !b.closed
}

// ServeHTTP implements http.Handler.
func (b *Bridge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	route := routeOf(r)
	if !b.enter() {
		refuse(w, route.dialect, http.StatusUnauthorized, "the attempt has ended")
		return
	}
	defer b.served.Done()
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout)) // every connection supports it
	switch {
	case r.Header.Get("Upgrade") != "":
		refuse(w, route.dialect, http.StatusUpgradeRequired, "use HTTP requests; upgrades are not supported")
	case route.kind == kindRoot:
		w.WriteHeader(http.StatusOK)
	case !b.isAuthorized(r):
		refuse(w, route.dialect, http.StatusUnauthorized, "invalid API key: use the key that mini has set")
	case route.kind == kindModels:
		b.listModels(w, r)
	case route.kind == kindModel || route.kind == kindCount:
		b.serveModel(w, r, route)
	default:
		b.report("UnknownEndpoint", r.Method+" "+r.URL.Path, b.config.OnUnknown)
		refuse(w, route.dialect, http.StatusNotFound, "unknown endpoint: "+r.Method+" "+r.URL.Path)
	}
}

const (
	maxReports = 20 // of each kind
	maxReport  = 500
)

// report calls f with a text, unless it did so before for this kind or there are too many.
func (b *Bridge) report(kind, text string, f func(string)) {
	text = strings.ToValidUTF8(text[:min(len(text), maxReport)], "")
	b.mu.Lock()
	if b.seen[kind] == nil {
		b.seen[kind] = map[string]bool{}
	}
	isNew := !b.seen[kind][text] && len(b.seen[kind]) < maxReports
	if isNew {
		b.seen[kind][text] = true
	}
	b.mu.Unlock()
	if isNew && f != nil {
		f(text)
	}
}

// isAuthorized reports whether a request has the token, in any of the places where the
// dialects have their keys.
func (b *Bridge) isAuthorized(r *http.Request) bool {
	scheme, bearer, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		bearer = ""
	}
	for _, key := range []string{r.Header.Get("X-Api-Key"), bearer, r.Header.Get("X-Goog-Api-Key"), r.URL.Query().Get("key")} {
		if subtle.ConstantTimeCompare([]byte(strings.TrimSpace(key)), []byte(b.token)) == 1 {
			return true
		}
	}
	return false
}

// refuse answers with an error in the form of a dialect, which the agent must not retry.
func refuse(w http.ResponseWriter, d dialect.Dialect, status int, message string) {
	if d == nil {
		d = dialect.ByName("chat")
	}
	sendError(w, status, d.Problem(status, message))
}

func sendError(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Should-Retry", "false")
	w.WriteHeader(status)
	_, _ = w.Write(body) //nolint:gosec // JSON; the agent may be gone
}

// connListener is a net.Listener of connections that add gives to it.
type connListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// maxQueue bounds the connections that the server has not accepted yet. It accepts them at
// once, and more than the helper opens at a time wait only if the agent closes them again.
const maxQueue = 256

// add queues a connection. It closes it after Close, and if there are too many.
func (l *connListener) add(conn net.Conn) {
	select {
	case <-l.closed:
		_ = conn.Close() // unused
		return
	default:
	}
	select {
	case l.conns <- conn:
	default:
		_ = conn.Close() // unused
	}
}

// Accept implements net.Listener.
func (l *connListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *connListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *connListener) Addr() net.Addr { return &net.UnixAddr{Name: "bridge", Net: "unix"} }

// waits pauses the attempt's clock while all open requests wait for the provider.
type waits struct {
	begin func() (end func())

	mu            sync.Mutex
	open, waiting int
	end           func() // of the pause, if there is one
}

func (w *waits) add(open, waiting int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open, w.waiting = w.open+open, w.waiting+waiting
	switch paused := w.open > 0 && w.waiting >= w.open; {
	case paused && w.end == nil:
		w.end = w.begin()
	case !paused && w.end != nil:
		w.end()
		w.end = nil
	}
}

// track counts an open request until done is called. The waits of its model calls count
// until they end.
func (w *waits) track(ctx context.Context) (_ context.Context, done func()) {
	w.add(1, 0)
	return model.WithPause(ctx, func() func() {
		w.add(0, 1)
		return func() { w.add(0, -1) }
	}), func() { w.add(-1, 0) }
}
