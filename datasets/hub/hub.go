// Package hub brings datasets from the Hugging Face hub, or a server that
// speaks like it, into a cache of files: each file once, checked against the
// hub's checksum, and never half a file under its own name. What was fetched
// opens again without a network.
//
// It does not read rows; that is package datasets. It knows no environment
// variables; whoever makes a Hub passes them.
//
//	h, err := hub.New(hub.Config{Dir: dir, Token: os.Getenv("HF_TOKEN")})
//	ref, err := hub.ParseRef("verified", "")
//	edition, err := h.Open(ctx, ref)
//	set, err := datasets.Load(ctx, []datasets.Source{edition.Source("verified")}, sel)
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
	firstPause  = 500 * time.Millisecond // between the first two tries
	stallAfter  = time.Minute            // without a byte, a request is given up
	pingTimeout = 5 * time.Second
)

// Config says where the hub is, and where its files are kept. Printed in any
// way, it says only whether there is a token.
type Config struct {
	// Endpoint is the hub's address; default DefaultEndpoint. HF_ENDPOINT.
	Endpoint string
	// Token is sent to the endpoint, and to no other host; empty for none.
	// HF_TOKEN.
	Token string `json:"-" yaml:"-"`
	// Dir is the cache. It is made when something is fetched.
	Dir string
	// Offline refuses to use the network. HF_HUB_OFFLINE.
	Offline bool
	// Transport is for tests; default http.DefaultTransport.
	Transport http.RoundTripper `json:"-" yaml:"-"`
	// Progress is called while a Hub works, from the goroutine that called it.
	// It must return soon.
	Progress func(Progress) `json:"-" yaml:"-"`
}

// Format implements fmt.Formatter, for every verb: the token is never printed.
func (c Config) Format(f fmt.State, _ rune) {
	token := "none"
	if c.Token != "" {
		token = "set"
	}
	_, _ = fmt.Fprintf(f, "{cache %s, token %s, offline %t}", c.Dir, token, c.Offline)
}

// Hub is a client of the hub with a cache. It is safe for concurrent use, by
// processes too: they take turns at a repository.
type Hub struct {
	endpoint string // without a slash at the end
	origin   string
	host     string // for messages
	dir      string
	token    bool
	offline  bool
	client   *http.Client
	progress func(Progress)
	pause    time.Duration
	stall    time.Duration
	reached  atomic.Bool // the hub has answered before
}

// New checks the configuration. It touches neither network nor disk.
func New(c Config) (*Hub, error) {
	endpoint := cmp.Or(strings.TrimRight(c.Endpoint, "/"), DefaultEndpoint)
	u, err := url.Parse(endpoint)
	switch {
	case err != nil, u.User != nil: // neither may be quoted: there may be a password in it
		return nil, &Error{
			kind: ErrConfig, Text: "the hub's address cannot be used: it is not a URL, or has a user in it",
			Hint: "HF_ENDPOINT is like " + DefaultEndpoint + "; a key belongs into HF_TOKEN",
		}
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.RawQuery != "", u.Fragment != "":
		return nil, &Error{
			kind: ErrConfig, Text: fmt.Sprintf("the hub's address cannot be used: %.100q", endpoint),
			Hint: "HF_ENDPOINT is like " + DefaultEndpoint,
		}
	case c.Dir == "":
		return nil, &Error{kind: ErrConfig, Text: "there is no folder for the cache", Hint: "set HOME or XDG_CACHE_HOME"}
	}
	token := strings.TrimSpace(c.Token)
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return nil, &Error{kind: ErrToken, Text: "the token has characters in it that no token has", Hint: "look at HF_TOKEN"}
	}
	h := &Hub{
		endpoint: endpoint, origin: origin(u), host: u.Host, dir: c.Dir, token: token != "", offline: c.Offline,
		client: newClient(c.Transport, u, token), progress: c.Progress, pause: firstPause, stall: stallAfter,
	}
	if h.progress == nil {
		h.progress = func(Progress) {}
	}
	return h, nil
}

// Endpoint is the hub's address, without a slash at its end.
func (h *Hub) Endpoint() string { return h.endpoint }

// Close lets go of idle connections. The Hub can be used on.
func (h *Hub) Close() { h.client.CloseIdleConnections() }

// Open returns the cached edition, without a network, when a complete one of
// this reference is there; else it is Fetch.
func (h *Hub) Open(ctx context.Context, ref Ref) (Edition, error) {
	ref = ref.orMain()
	if e, ok := h.find(ref); ok {
		return e, nil
	}
	return h.fetch(ctx, ref, true)
}

// Fetch asks the hub what the revision is today, downloads what of it is
// missing or damaged, and records the edition. Offline it is Open, and checks
// that the files are right.
func (h *Hub) Fetch(ctx context.Context, ref Ref) (Edition, error) {
	return h.fetch(ctx, ref.orMain(), false)
}

// Ping says whether the hub answers and takes the token, within seconds. It
// tries once.
func (h *Hub) Ping(ctx context.Context) error {
	if h.offline {
		return &Error{kind: ErrOffline, Text: "offline: the hub is not asked", Hint: "unset HF_HUB_OFFLINE to use the network"}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, pingTimeout, fmt.Errorf("no answer within %s", pingTimeout))
	defer cancel()
	q := request{url: h.endpoint + "/api/datasets?limit=1", from: api}
	if h.token { // the one call that says whether a token is valid; not every mirror has it
		q.url, q.accept = h.endpoint+"/api/whoami-v2", []int{http.StatusNotFound}
	}
	resp, err := h.get(ctx, q)
	if err != nil {
		if ctx.Err() != nil {
			return h.unreachable(context.Cause(ctx))
		}
		return plain(err)
	}
	return resp.Body.Close()
}
