// Package registry asks image registries what they have, with the credentials
// of the Docker configuration file, and pulls nothing.
package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/minibench/mini/env/docker/images"
)

// Client asks registries. Its methods are safe for concurrent use.
type Client struct {
	http  *http.Transport
	agent string
	sizes bool

	mu     sync.Mutex
	puller *remote.Puller              // keeps who it is logged in as
	logins map[string]authn.AuthConfig // by registry
	offers map[string]images.Offer     // by digest and platform
}

var _ images.Registry = (*Client)(nil)

// timeout bounds one question. A registry that does not answer in that time is
// left to the engine, which may have another way to it.
const timeout = 20 * time.Second

// maxRetryAfter bounds what a registry may ask for: beyond it is nonsense.
const maxRetryAfter = 24 * time.Hour

// New returns a client with the credentials of the user's Docker configuration
// (DOCKER_CONFIG, else ~/.docker/config.json), helpers for credentials
// included. With sizes it asks for manifests also where a registry counts that
// as a pull, as long as it says that there are plenty left.
func New(agent string, sizes bool) (*Client, error) {
	c := &Client{agent: agent, sizes: sizes, logins: map[string]authn.AuthConfig{}, offers: map[string]images.Offer{}, http: remote.DefaultTransport.(*http.Transport).Clone()} //nolint:errcheck // it is one
	puller, err := c.newPuller()
	if err != nil {
		return nil, fmt.Errorf("set up registry client: %w", err)
	}
	c.puller = puller
	return c, nil
}

func (c *Client) newPuller() (*remote.Puller, error) {
	return remote.NewPuller(
		remote.WithAuthFromKeychain(keychain{c}),
		remote.WithTransport(&listener{c.http}),
		remote.WithUserAgent(c.agent),
		// Trying again is the caller's: it knows who else waits.
		remote.WithRetryBackoff(remote.Backoff{Steps: 1}),
		remote.WithRetryStatusCodes(),
	)
}

// asker is the puller that counts now.
func (c *Client) asker() *remote.Puller {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.puller
}

// Close gives up the connections that are kept for later.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Ask implements images.Registry.
//
// Where a registry counts requests for manifests as pulls, and says so, only
// the digest is asked for, which is free: of what the image is made for and how
// large it is nothing is known then. The platform is still checked where it is
// not the common one; and all is asked, once for each digest, by a client that
// is to find out sizes while more than half of the limit is left.
func (c *Client) Ask(ctx context.Context, ref, platform string) (images.Offer, error) {
	parsed, err := name.ParseReference(ref)
	if err != nil {
		return images.Offer{}, fmt.Errorf("ask registry for %s: %w", ref, err)
	}
	asking, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	asking, heard := listen(asking)
	offer, err := c.ask(asking, parsed, platform, heard)
	if e, ok := errors.AsType[*transport.Error](err); ok && e.StatusCode == http.StatusUnauthorized && c.logOut(parsed.Context().RegistryStr()) {
		offer, err = c.ask(asking, parsed, platform, heard) // what was known is out of date, it may be
	}
	if err == nil {
		return offer, nil
	}
	if ctx.Err() != nil {
		return images.Offer{}, context.Cause(ctx)
	}
	refusal := &images.Refusal{Err: fmt.Errorf("ask registry for %s: %w", ref, err)}
	if e, ok := errors.AsType[*transport.Error](err); ok {
		refusal.Status = e.StatusCode
		refusal.Err = fmt.Errorf("ask registry for %s: %s", ref, said(e))
		refusal.RetryAfter = heard.now().after
	}
	return images.Offer{}, refusal
}

// said is what a registry answered, in short.
func said(e *transport.Error) string {
	text := fmt.Sprintf("%d %s", e.StatusCode, http.StatusText(e.StatusCode))
	if len(e.Errors) > 0 {
		text += ": " + e.Errors[0].String()
	}
	if len(text) > maxSaid {
		text = strings.ToValidUTF8(text[:maxSaid], "") + "..."
	}
	return text
}

// maxSaid bounds a registry's own words, in bytes.
const maxSaid = 300

// common is the platform of nearly all images of benchmarks.
const common = "linux/amd64"

func (c *Client) ask(ctx context.Context, ref name.Reference, platform string, heard *heard) (images.Offer, error) {
	head, err := c.asker().Head(ctx, ref)
	if err != nil {
		return images.Offer{}, err
	}
	offer := images.Offer{Digest: ref.Context().Name() + "@" + head.Digest.String()}
	k := head.Digest.String() + " " + platform
	c.mu.Lock()
	known, ok := c.offers[k]
	c.mu.Unlock()
	if ok {
		known.Digest = offer.Digest
		return known, nil
	}
	if now := heard.now(); now.limited && platform == common && (!c.sizes || !now.plenty()) {
		return offer, nil
	}
	offer, err = c.manifest(ctx, ref, platform, offer)
	if err == nil && len(offer.Layers)+len(offer.Platforms) <= maxKept {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.offers[k] = offer
	}
	return offer, err
}

// maxKept bounds the layers and platforms of an image that is remembered.
const maxKept = 500

// manifest adds what an image is made for and of.
func (c *Client) manifest(ctx context.Context, ref name.Reference, platform string, offer images.Offer) (images.Offer, error) {
	found, err := c.asker().Get(ctx, ref)
	if err != nil {
		return images.Offer{}, err
	}
	if !found.MediaType.IsIndex() {
		img, err := found.Image()
		if err != nil {
			return images.Offer{}, err
		}
		return c.layers(offer, img)
	}
	index, err := found.ImageIndex()
	if err != nil {
		return images.Offer{}, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return images.Offer{}, err
	}
	want, err := v1.ParsePlatform(platform)
	if err != nil {
		return images.Offer{}, err
	}
	for _, m := range manifest.Manifests {
		if m.Platform == nil || m.Platform.OS == "unknown" || !m.MediaType.IsImage() {
			continue // signatures and the like
		}
		offer.Platforms = append(offer.Platforms, m.Platform.String())
		if len(offer.Layers) == 0 && m.Platform.OS == want.OS && m.Platform.Architecture == want.Architecture &&
			(want.Variant == "" || m.Platform.Variant == "" || m.Platform.Variant == want.Variant) {
			img, err := index.Image(m.Digest)
			if err != nil {
				return images.Offer{}, err
			}
			one, err := c.layers(images.Offer{}, img)
			if err != nil {
				return images.Offer{}, err
			}
			offer.Layers = one.Layers
		}
	}
	return offer, nil
}

// layers adds what an image is made for and of.
func (c *Client) layers(offer images.Offer, img v1.Image) (images.Offer, error) {
	manifest, err := img.Manifest()
	if err != nil {
		return images.Offer{}, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return images.Offer{}, err
	}
	if p := config.Platform(); p != nil {
		offer.Platforms = []string{p.String()}
	}
	for i, l := range manifest.Layers {
		layer := images.Layer{Content: l.Digest.String(), Bytes: max(l.Size, 0)}
		if i < len(config.RootFS.DiffIDs) {
			layer.Content = config.RootFS.DiffIDs[i].String()
		}
		offer.Layers = append(offer.Layers, layer)
	}
	return offer, nil
}

// listener hears what registries say beside their answers.
type listener struct{ next http.RoundTripper }

// heard is what was said while one question was asked.
type heard struct {
	mu   sync.Mutex
	said limits
}

type limits struct {
	after   time.Duration
	limited bool // a limit on pulls was named
	limit   int  // that many pulls; 0 where it is not understood
	left    int  // of them
}

// plenty says that a question may be spent on what is good to know.
func (l limits) plenty() bool { return l.left > l.limit/2 }

func (h *heard) now() limits {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.said
}

type heardKey struct{}

func listen(ctx context.Context) (context.Context, *heard) {
	h := &heard{}
	return context.WithValue(ctx, heardKey{}, h), h
}

// RoundTrip implements http.RoundTripper.
func (l *listener) RoundTrip(q *http.Request) (*http.Response, error) {
	resp, err := l.next.RoundTrip(q)
	if err == nil {
		resp.Body = &bounded{ReadCloser: resp.Body, left: maxAnswer}
	}
	h, ok := q.Context().Value(heardKey{}).(*heard)
	if err != nil || !ok {
		return resp, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if resp.Header.Get("RateLimit-Limit") != "" {
		h.said.limited = true
		h.said.limit, h.said.left = pulls(resp.Header.Get("RateLimit-Limit")), pulls(resp.Header.Get("RateLimit-Remaining"))
	}
	if slices.Contains([]int{http.StatusTooManyRequests, http.StatusServiceUnavailable}, resp.StatusCode) {
		h.said.after = max(h.said.after, retryAfter(resp.Header.Get("Retry-After"), time.Now()))
	}
	return resp, nil
}

// maxAnswer bounds an answer, in bytes: manifests and configurations are a few
// kilobytes, and the library reads as much as a registry sends.
const maxAnswer = 16 << 20

var errLong = errors.New("the registry's answer is longer than 16 MiB")

// bounded is an answer that ends in an error when it is too long.
type bounded struct {
	io.ReadCloser
	left int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errLong
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// pulls reads a number as 100;w=21600 has it, for so many in six hours.
func pulls(value string) int {
	number, _, _ := strings.Cut(value, ";")
	n, err := strconv.Atoi(strings.TrimSpace(number))
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// retryAfter reads the header: seconds, or a date; Docker Hub sends seconds
// since 1970 too.
func retryAfter(value string, now time.Time) time.Duration {
	var d time.Duration
	if n, err := strconv.ParseInt(value, 10, 64); err == nil {
		switch {
		case n > now.Unix()/2:
			d = time.Unix(n, 0).Sub(now)
		default:
			d = time.Duration(min(n, int64(maxRetryAfter/time.Second))) * time.Second
		}
	} else if at, err := http.ParseTime(value); err == nil {
		d = at.Sub(now)
	}
	return min(max(d, 0), maxRetryAfter)
}
