package serve

import (
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/minibench/mini/cmd/mini/internal/bench"
	"github.com/minibench/mini/internal/rootdir"
	"github.com/minibench/mini/internal/version"
)

//go:embed openapi.json
var openAPI []byte

// server answers the requests.
type server struct {
	ctx     context.Context //nolint:containedctx // of the jobs
	service *bench.Service
	root    *rootdir.Dir // the folder of the service
	options *Options
	clients map[[sha256.Size]byte]string // names by hash of the token
	mux     *http.ServeMux
	// room limits the rollouts whose run folders are open: enough that no worker waits for one whose
	// evaluation goes on, and few enough for the memory and the open files.
	room *semaphore.Weighted
	// turn limits the requests that are prepared at the same time: each takes a processor for some
	// milliseconds, for which /health and the rollouts would wait.
	turn  *semaphore.Weighted
	polls chan struct{} // as many as may wait at the same time
	wait  sync.WaitGroup

	metrics metrics

	mu        sync.Mutex // guards what follows
	rollouts  map[string]*rollout
	perClient map[string]int           // number of rollouts
	verified  map[string]*verification // those in progress, by their folder
}

// Limits of requests that wait.
const (
	maxWait  = time.Minute
	maxPolls = 1024
)

func newServer(ctx context.Context, service *bench.Service, root *rootdir.Dir, o *Options, tokens map[string]string) *server {
	attempts, evaluations := service.Workers()
	s := &server{
		ctx: ctx, service: service, root: root, options: o, clients: map[[sha256.Size]byte]string{}, mux: http.NewServeMux(),
		room: semaphore.NewWeighted(int64(2*attempts + evaluations)), turn: semaphore.NewWeighted(1), polls: make(chan struct{}, maxPolls),
		rollouts: map[string]*rollout{}, perClient: map[string]int{}, verified: map[string]*verification{}, metrics: newMetrics(),
	}
	for token, name := range tokens {
		s.clients[sha256.Sum256([]byte(token))] = name
	}
	for pattern, h := range map[string]func(http.ResponseWriter, *http.Request, string) error{
		"POST /rollouts":         s.postRollout,
		"GET /rollouts":          s.listRollouts,
		"GET /rollouts/{id}":     s.getRollout,
		"DELETE /rollouts/{id}":  s.deleteRollout,
		"PUT /rollouts/{id}/key": s.putKey,
		"POST /verify":           s.postVerify,
		"POST /run":              s.postRun,
		"GET /metrics":           s.getMetrics,
		"GET /openapi.json":      s.getOpenAPI,
	} {
		s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			client, _ := s.client(r)
			if err := h(w, r, client); err != nil {
				writeError(w, err)
			}
		})
	}
	s.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		writeError(w, &httpError{http.StatusNotFound, "there is no such path or method; GET /openapi.json lists them"})
	})
	return s
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	counted := &statusWriter{ResponseWriter: w, status: http.StatusOK}
	_, isKnown := s.client(r)
	switch site := r.Header.Get("Sec-Fetch-Site"); {
	case r.Header.Get("Origin") != "", site != "" && site != "none":
		writeError(counted, &httpError{http.StatusForbidden, "pages of a browser may not use this service"})
	case r.Method == http.MethodGet && r.URL.Path == "/health":
		writeJSON(counted, http.StatusOK, map[string]string{"status": "ok", "version": version.Version})
	case !isKnown:
		h.Set("WWW-Authenticate", `Bearer realm="mini serve"`)
		writeError(counted, &httpError{http.StatusUnauthorized, "send the header Authorization: Bearer TOKEN, with the token of this service"})
	default:
		s.mux.ServeHTTP(counted, r)
	}
	s.metrics.addRequest(counted.status)
}

// client returns the name of the client whose token a request has.
func (s *server) client(r *http.Request) (name string, ok bool) {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return "", false
	}
	name, ok = s.clients[sha256.Sum256([]byte(strings.TrimSpace(token)))]
	return name, ok
}

// statusWriter keeps the status of a response.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// mayTakeLong removes the limits of time of a request that waits for tests.
func mayTakeLong(w http.ResponseWriter) {
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Time{}) // all connections of net/http have it
	_ = c.SetWriteDeadline(time.Time{})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout)) // likewise
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may have gone
}

// retryAfter is the Retry-After of a client that has reached a limit, in seconds.
const retryAfter = 10

func writeError(w http.ResponseWriter, err error) {
	e, ok := errors.AsType[*httpError](err)
	if !ok {
		e = &httpError{http.StatusInternalServerError, err.Error()}
	}
	if e.status == http.StatusTooManyRequests || e.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
	}
	writeJSON(w, e.status, map[string]any{"error": map[string]any{"status": e.status, "message": e.message}})
}

func (s *server) postRollout(w http.ResponseWriter, r *http.Request, client string) error {
	q := request{K: 1}
	if err := readBody(w, r, true, &q); err != nil {
		return err
	}
	key := r.Header.Get("Idempotency-Key")
	if len(key) > maxField {
		return badRequest("Idempotency-Key: want at most %d bytes", maxField)
	}
	rec, isNew, err := s.accept(r.Context(), client, key, q)
	if err != nil {
		return err
	}
	status := http.StatusAccepted
	if !isNew && rec.State.isOver() {
		status = http.StatusOK
	}
	w.Header().Set("Location", "/rollouts/"+rec.ID)
	writeJSON(w, status, newAnswer(rec))
	return nil
}

func (s *server) listRollouts(w http.ResponseWriter, _ *http.Request, client string) error {
	list := []answer{}
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.rollouts))
	s.mu.Unlock()
	for _, r := range all {
		if r.client == client {
			list = append(list, newAnswer(r.now()))
		}
	}
	slices.SortFunc(list, func(a, b answer) int { return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.ID, b.ID)) })
	writeJSON(w, http.StatusOK, map[string]any{"rollouts": list})
	return nil
}

// own returns the record of the rollout in the path, which must be the client's.
func (s *server) own(r *http.Request, client string) (record, error) {
	rec, err := s.find(r.PathValue("id"))
	if err == nil && rec.Client != client {
		err = &httpError{http.StatusNotFound, "there is no such rollout"}
	}
	return rec, err
}

// waitTime returns the time of a long poll, in seconds in the parameter wait.
func waitTime(r *http.Request) (time.Duration, error) {
	value := r.URL.Query().Get("wait")
	if value == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 {
		return 0, badRequest("wait: want a number of seconds, at most %d", int(maxWait.Seconds()))
	}
	return min(time.Duration(n)*time.Second, maxWait), nil
}

// poll lets a request wait, unless too many do.
func (s *server) poll(work func() error) error {
	select {
	case s.polls <- struct{}{}:
		defer func() { <-s.polls }()
		return work()
	default:
		return &httpError{http.StatusTooManyRequests, "too many requests wait; ask without wait"}
	}
}

func (s *server) getRollout(w http.ResponseWriter, r *http.Request, client string) error {
	rec, err := s.own(r, client)
	if err != nil {
		return err
	}
	for name := range r.URL.Query() {
		if name != "wait" && name != "tokens" {
			return badRequest("there is no parameter %.100q; there are wait and tokens", name)
		}
	}
	limit, err := waitTime(r)
	if err != nil {
		return err
	}
	tokens, err := tokenMode(r.URL.Query().Get("tokens"))
	if err != nil {
		return err
	}
	if limit > 0 && !rec.State.isOver() && rec.State != needsKey { // for a key the client itself is waited for
		err = s.poll(func() (err error) {
			rec, err = s.await(r.Context(), rec.ID, limit)
			return err
		})
		if err != nil {
			return err
		}
	}
	writeJSON(w, http.StatusOK, s.result(rec, tokens))
	return nil
}

func (s *server) deleteRollout(w http.ResponseWriter, r *http.Request, client string) error {
	rec, err := s.own(r, client)
	if err != nil {
		return err
	}
	return s.poll(func() error {
		if rec, err = s.delete(r.Context(), rec.ID); err == nil {
			writeJSON(w, http.StatusOK, newAnswer(rec))
		}
		return err
	})
}

func (s *server) putKey(w http.ResponseWriter, r *http.Request, client string) error {
	rec, err := s.own(r, client)
	var body struct {
		APIKey string `json:"api_key"`
	}
	if err == nil {
		err = readBody(w, r, true, &body)
	}
	if err == nil {
		err = s.setKey(rec.ID, body.APIKey)
	}
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

func (s *server) getOpenAPI(w http.ResponseWriter, _ *http.Request, _ string) error {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(openAPI)
	return nil
}
