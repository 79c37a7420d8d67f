// Package hub downloads datasets from the Hugging Face hub, or a compatible server, into a
// cache. It verifies the checksum of each file and gives only complete files their final
// names. A cached dataset opens without a network.
//
// It does not read rows; see package datasets. It does not read environment variables; the
// caller passes them in Config.
//
//	h, err := hub.New(hub.Config{Dir: dir, Token: os.Getenv("HF_TOKEN")})
//	ref, err := hub.ParseRef("verified", "")
//	snapshot, err := h.Open(ctx, ref)
//	set, err := datasets.Load(ctx, []datasets.Source{snapshot.Source("verified")}, sel)
package hub

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// DefaultEndpoint is the public hub.
const DefaultEndpoint = "https://huggingface.co"

const (
	firstBackoff = 500 * time.Millisecond // wait after the first failure
	stallTimeout = time.Minute            // without data, a request is cancelled
	pingTimeout  = 5 * time.Second
)

// Config configures a Hub. Its printed form shows whether there is a token, but not the token.
type Config struct {
	// Endpoint is the URL of the hub, as in HF_ENDPOINT; default DefaultEndpoint.
	Endpoint string
	// Token, as in HF_TOKEN, is sent to the endpoint and to no other host; empty for none.
	Token string `json:"-" yaml:"-"`
	// Dir is the directory of the cache; the first fetch creates it.
	Dir string
	// Offline forbids network requests, as HF_HUB_OFFLINE does.
	Offline bool
	// Transport is for tests; the default is a clone of http.DefaultTransport.
	Transport http.RoundTripper `json:"-" yaml:"-"`
	// Progress is called during a fetch, in the goroutine of the caller. It must return
	// quickly.
	Progress func(Progress) `json:"-" yaml:"-"`
}

// Format implements fmt.Formatter for every verb, so that the token is never printed.
func (c Config) Format(f fmt.State, _ rune) {
	token := "none"
	if c.Token != "" {
		token = "set"
	}
	_, _ = fmt.Fprintf(f, "{cache %s, token %s, offline %t}", c.Dir, token, c.Offline)
}

// Hub is a client of the hub with a cache. It is safe for concurrent use. Several processes
// may share the cache: each locks a repository during a fetch.
type Hub struct {
	endpoint string // without a trailing slash
	origin   string
	host     string // for messages
	dir      string
	token    bool
	offline  bool
	client   *http.Client
	progress func(Progress)
	reached  atomic.Bool // the hub has answered at least once

	firstBackoff time.Duration
	stallTimeout time.Duration
}

// New checks the configuration. It uses neither network nor disk.
func New(c Config) (*Hub, error) {
	endpoint := cmp.Or(strings.TrimRight(c.Endpoint, "/"), DefaultEndpoint)
	u, err := url.Parse(endpoint)
	switch {
	case err != nil, u.User != nil: // do not quote it: it may contain a password
		return nil, &Error{
			kind: ErrConfig, Text: "invalid address of the hub: not a URL, or it contains a user name",
			Hint: "set HF_ENDPOINT to a URL like " + DefaultEndpoint + "; put a key in HF_TOKEN",
		}
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.RawQuery != "", u.Fragment != "":
		return nil, &Error{
			kind: ErrConfig, Text: fmt.Sprintf("invalid address of the hub: %.100q", endpoint),
			Hint: "set HF_ENDPOINT to a URL like " + DefaultEndpoint,
		}
	case c.Dir == "":
		return nil, &Error{kind: ErrConfig, Text: "no directory for the cache", Hint: "set HOME or XDG_CACHE_HOME"}
	}
	token := strings.TrimSpace(c.Token)
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return nil, &Error{kind: ErrToken, Text: "the token contains invalid characters", Hint: "check HF_TOKEN"}
	}
	h := &Hub{
		endpoint: endpoint, origin: origin(u), host: u.Host, dir: c.Dir, token: token != "", offline: c.Offline,
		client: newClient(c.Transport, u, token), progress: c.Progress,
		firstBackoff: firstBackoff, stallTimeout: stallTimeout,
	}
	if h.progress == nil {
		h.progress = func(Progress) {}
	}
	return h, nil
}

// Endpoint returns the URL of the hub, without a trailing slash.
func (h *Hub) Endpoint() string { return h.endpoint }

// Close closes idle connections. The Hub remains usable.
func (h *Hub) Close() { h.client.CloseIdleConnections() }

// Open returns the cached snapshot of a reference, without a network request, or calls
// Fetch if there is none.
func (h *Hub) Open(ctx context.Context, ref Ref) (Snapshot, error) {
	ref = ref.withRevision()
	if snapshot, ok := h.find(ref); ok {
		return snapshot, nil
	}
	return h.fetch(ctx, ref, true)
}

// Fetch asks the hub for the current commit of the revision, downloads missing and damaged
// files, and records the snapshot. Offline it returns the cached snapshot and verifies its
// files.
func (h *Hub) Fetch(ctx context.Context, ref Ref) (Snapshot, error) {
	return h.fetch(ctx, ref.withRevision(), false)
}

// Ping checks, within seconds and without retries, that the hub answers and accepts the
// token.
func (h *Hub) Ping(ctx context.Context) error {
	if h.offline {
		return &Error{kind: ErrOffline, Text: "offline: no request is sent to the hub", Hint: "unset HF_HUB_OFFLINE to use the network"}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, pingTimeout, fmt.Errorf("no answer within %s", pingTimeout))
	defer cancel()
	q := request{url: h.endpoint + "/api/datasets?limit=1", from: api}
	if h.token { // whoami checks the token; some mirrors do not have it
		q.url, q.accept = h.endpoint+"/api/whoami-v2", []int{http.StatusNotFound}
	}
	resp, err := h.get(ctx, q)
	if err != nil {
		if ctx.Err() != nil {
			return h.unreachable(context.Cause(ctx))
		}
		return permanentError(err)
	}
	return resp.Body.Close()
}
