// Package hub downloads datasets from the Hugging Face hub, or a compatible server, into the
// cache that the hub's own tools use too. It verifies the checksum of each file and gives only
// complete files their final names. A cached dataset opens without a network.
//
// It does not read rows; see package datasets. It does not read environment variables; the
// caller passes them in Config.
//
//	h, err := hub.New(hub.Config{Dir: dir, Token: os.Getenv("HF_TOKEN")})
//	ref, err := hub.ParseRef("verified", "")
//	snapshot, err := h.Open(ctx, ref)
//	set, err := datasets.Load(ctx, []datasets.Source{snapshot.Source("verified")}, sel.Apply)
package hub

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minibench/mini/datasets"
)

// DefaultEndpoint is the public hub.
const DefaultEndpoint = "https://huggingface.co"

const (
	retryDelay   = time.Second // before the second try, if the server asks for no other
	stallTimeout = time.Minute // without data, a request is cancelled
	pingTimeout  = 5 * time.Second
)

// Config configures a Hub.
type Config struct {
	// Endpoint is the URL of the hub, as in HF_ENDPOINT; default DefaultEndpoint.
	Endpoint string
	// Token, as in HF_TOKEN, is sent to the endpoint and to no other host; empty for none.
	Token string `json:"-" yaml:"-"`
	// Dir is the directory of the cache, as in HF_HUB_CACHE; the first fetch creates it.
	Dir string
	// Offline forbids network requests, as HF_HUB_OFFLINE does.
	Offline bool
	// Transport is for tests; the default is a clone of http.DefaultTransport.
	Transport http.RoundTripper `json:"-" yaml:"-"`
	// Progress is called during a fetch, in the goroutine of the caller. It must return
	// quickly.
	Progress func(Progress) `json:"-" yaml:"-"`
}

// Hub is a client of the hub with a cache. It is safe for concurrent use. Several processes
// may share the cache: each locks a file during its download.
type Hub struct {
	endpoint string // without a trailing slash
	origin   string
	host     string // for messages
	dir      string
	token    bool
	offline  bool
	client   *http.Client
	progress func(Progress)

	retryDelay   time.Duration
	stallTimeout time.Duration
}

// New checks the configuration. It uses neither network nor disk.
func New(c Config) (*Hub, error) {
	endpoint := cmp.Or(strings.TrimRight(c.Endpoint, "/"), DefaultEndpoint)
	u, err := url.Parse(endpoint)
	switch {
	case err != nil, u.User != nil: // do not quote it: it may contain a password
		return nil, &Error{
			Text: "invalid address of the hub: not a URL, or it contains a user name",
			Hint: "set HF_ENDPOINT to a URL like " + DefaultEndpoint + "; put a key in HF_TOKEN",
		}
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.RawQuery != "", u.Fragment != "":
		return nil, &Error{
			Text: fmt.Sprintf("invalid address of the hub: %.100q", endpoint),
			Hint: "set HF_ENDPOINT to a URL like " + DefaultEndpoint,
		}
	case c.Dir == "":
		return nil, &Error{Text: "no directory for the cache", Hint: "set HF_HUB_CACHE"}
	}
	token := strings.TrimSpace(c.Token)
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return nil, &Error{Text: "the token contains invalid characters", Hint: "check HF_TOKEN"}
	}
	h := &Hub{
		endpoint: endpoint, origin: origin(u), host: u.Host, dir: c.Dir, token: token != "", offline: c.Offline,
		client: newClient(c.Transport, u, token), progress: c.Progress,
		retryDelay: retryDelay, stallTimeout: stallTimeout,
	}
	if h.progress == nil {
		h.progress = func(Progress) {}
	}
	return h, nil
}

// Close closes idle connections. The Hub remains usable.
func (h *Hub) Close() { h.client.CloseIdleConnections() }

// Open returns the cached snapshot of a reference, without a network request, or calls
// Fetch if there is none or its files are damaged.
func (h *Hub) Open(ctx context.Context, ref Ref) (Snapshot, error) {
	if snapshot, ok := h.Find(ref); ok {
		intact, err := snapshot.isIntact(ctx)
		if err != nil || intact {
			return snapshot, err
		}
	}
	return h.Fetch(ctx, ref)
}

// Fetch asks the hub for the current commit of the revision, downloads missing and damaged
// files, and records the snapshot. Offline it returns the cached snapshot and verifies its
// files.
func (h *Hub) Fetch(ctx context.Context, ref Ref) (Snapshot, error) {
	ref = ref.withRevision()
	if h.offline {
		return h.fetchOffline(ctx, ref)
	}
	h.progress(Progress{Stage: Resolving, Repo: ref.Repo})
	commit, err := h.commit(ctx, ref)
	if err != nil {
		return Snapshot{}, err
	}
	snapshot, ok := h.findCommit(ref, commit)
	if ok {
		if ok, err = snapshot.isIntact(ctx); err != nil {
			return Snapshot{}, err
		}
	}
	if !ok {
		if err := h.download(ctx, ref, commit); err != nil {
			return Snapshot{}, err
		}
	}
	if err := h.writeRef(ref, commit); err != nil {
		return Snapshot{}, err
	}
	if snapshot, ok = h.findCommit(ref, commit); !ok {
		return Snapshot{}, &Error{Text: fmt.Sprintf("files of %s disappeared from the cache: %s", ref, printable(h.dir)), Hint: "run it again"}
	}
	return snapshot, nil
}

func (h *Hub) fetchOffline(ctx context.Context, ref Ref) (Snapshot, error) {
	snapshot, ok := h.Find(ref)
	if !ok {
		description := ref.String()
		if ref.Split != "" {
			description += ", split " + ref.Split + ","
		}
		return Snapshot{}, &Error{
			Text: description + " is not in the cache, and the network is not to be used",
			Hint: "unset HF_HUB_OFFLINE to download it, or use a file: --subset FILE",
		}
	}
	intact, err := snapshot.isIntact(ctx)
	if err == nil && !intact {
		err = &Error{
			Text: ref.String() + " is damaged in the cache, and the network is not to be used",
			Hint: "unset HF_HUB_OFFLINE to download it again",
		}
	}
	return snapshot, err
}

// download downloads the files of the wanted split, and the card.
func (h *Hub) download(ctx context.Context, ref Ref, commit string) error {
	entries, err := h.list(ctx, ref, commit)
	if err != nil {
		return err
	}
	m := &progressMeter{notify: h.progress, repo: ref.Repo}
	var names []string
	byName := map[string]entry{}
	for _, e := range entries {
		byName[e.Path] = e
		if e.Path != cardName {
			names = append(names, e.Path)
			continue
		}
		if err := h.downloadFile(ctx, ref, commit, e, m); err != nil {
			return err
		}
	}
	splits := splitFiles(names, h.card(ref.Repo, commit))
	split, err := datasets.PickSplit(splits, ref.Split)
	if err == nil {
		err = datasets.CheckShards(splits[split])
	}
	if err != nil {
		e := &Error{Text: fmt.Sprintf("%s: %v", ref, err), Hint: "choose one with --split"}
		if len(splits) == 0 {
			e.Hint = "try " + ref.Repo + "@refs/convert/parquet, the hub's conversion, or use a file: --subset FILE"
		}
		return e
	}
	if err := h.writeListing(ref.Repo, commit, names); err != nil {
		return err
	}
	m.done, m.total = 0, 0
	for _, name := range splits[split] {
		m.total += byName[name].size()
	}
	for _, name := range splits[split] {
		if err := h.downloadFile(ctx, ref, commit, byName[name], m); err != nil {
			return err
		}
	}
	return nil
}

// Ping checks, within seconds and without retries, that the hub answers and accepts the
// token.
func (h *Hub) Ping(ctx context.Context) error {
	if h.offline {
		return &Error{Text: "offline: no request is sent to the hub", Hint: "unset HF_HUB_OFFLINE to use the network"}
	}
	inner, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	err := h.try(inner, Ref{}, h.endpoint+"/api/datasets?limit=1", func(*http.Response) error { return nil })
	if inner.Err() != nil && ctx.Err() == nil {
		return unreachable("the hub at "+printable(h.host), fmt.Errorf("no answer within %s", pingTimeout))
	}
	return err
}
