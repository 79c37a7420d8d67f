// Package registry asks image registries about images, with the credentials of the
// Docker configuration file. It does not pull images.
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

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/minibench/mini/env/docker/imagestore"
)

// Client is a client of image registries. Its methods are safe for concurrent use.
type Client struct {
	http       *http.Transport
	agent      string
	querySizes bool

	mu     sync.Mutex
	puller *remote.Puller                    // caches tokens
	cache  map[string]imagestore.RemoteImage // by digest and platform
}

var _ imagestore.Registry = (*Client)(nil)

// timeout limits one Inspect. If a registry is slower, the engine may still reach it,
// for example through a mirror.
const timeout = 20 * time.Second

// maxRetryAfter limits the delay that a registry may ask for.
const maxRetryAfter = 24 * time.Hour

// New returns a client with the credentials of the user's Docker configuration
// (DOCKER_CONFIG, else ~/.docker/config.json), credential helpers included. agent is
// the User-Agent header. With querySizes, the client requests manifests even if the
// registry counts them as pulls, as long as enough pulls are left.
func New(agent string, querySizes bool) (*Client, error) {
	//nolint:errcheck // DefaultTransport is an *http.Transport
	transport := remote.DefaultTransport.(*http.Transport).Clone()
	c := &Client{agent: agent, querySizes: querySizes, cache: map[string]imagestore.RemoteImage{}, http: transport}
	if err := c.resetPuller(); err != nil {
		return nil, fmt.Errorf("set up registry client: %w", err)
	}
	return c, nil
}

// resetPuller replaces the puller and so drops its cached tokens.
func (c *Client) resetPuller() error {
	puller, err := remote.NewPuller(
		remote.WithAuthFromKeychain(keychain{}),
		remote.WithTransport(&headerTransport{c.http}),
		remote.WithUserAgent(c.agent),
		// The image store retries, once for all callers that wait for the image.
		remote.WithRetryBackoff(remote.Backoff{Steps: 1}),
		remote.WithRetryStatusCodes(),
	)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.puller = puller
	return err
}

// currentPuller returns the puller.
func (c *Client) currentPuller() *remote.Puller {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.puller
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Inspect implements imagestore.Registry.
//
// If a registry counts requests for manifests as pulls and reports the limit, Inspect
// requests only the digest, which is free; size and platforms then remain unknown. It
// requests the manifest anyway for a platform other than linux/amd64, or, in a client
// with querySizes, while more than half of the limit is left.
func (c *Client) Inspect(ctx context.Context, ref, platform string) (imagestore.RemoteImage, error) {
	parsed, err := name.ParseReference(ref)
	if err != nil {
		return imagestore.RemoteImage{}, fmt.Errorf("inspect %s in registry: %w", ref, err)
	}
	inspectCtx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	inspectCtx, limits := withLimits(inspectCtx)
	info, err := c.inspect(inspectCtx, parsed, platform, limits)
	if e, ok := errors.AsType[*transport.Error](err); ok && e.StatusCode == http.StatusUnauthorized && c.resetPuller() == nil {
		info, err = c.inspect(inspectCtx, parsed, platform, limits) // a cached token may have expired
	}
	if err == nil {
		return info, nil
	}
	if ctx.Err() != nil {
		return imagestore.RemoteImage{}, context.Cause(ctx)
	}
	regErr := &imagestore.RegistryError{Err: fmt.Errorf("inspect %s in registry: %w", ref, err)}
	if e, ok := errors.AsType[*transport.Error](err); ok {
		regErr.Status = e.StatusCode
		regErr.Err = fmt.Errorf("inspect %s in registry: %s", ref, errorText(e))
		regErr.RetryAfter = limits.get().retryAfter
	}
	return imagestore.RemoteImage{}, regErr
}

// errorText returns the status and the first error of a response, as text.
func errorText(e *transport.Error) string {
	text := fmt.Sprintf("%d %s", e.StatusCode, http.StatusText(e.StatusCode))
	if len(e.Errors) > 0 {
		text += ": " + e.Errors[0].String()
	}
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "..."
	}
	return text
}

// maxErrorText limits the length of an errorText, in bytes, without the final "...".
const maxErrorText = 300

// commonPlatform is the platform of nearly all benchmark images.
const commonPlatform = "linux/amd64"

func (c *Client) inspect(
	ctx context.Context, ref name.Reference, platform string, limits *responseLimits,
) (imagestore.RemoteImage, error) {
	head, err := c.currentPuller().Head(ctx, ref)
	if err != nil {
		return imagestore.RemoteImage{}, err
	}
	info := imagestore.RemoteImage{Digest: ref.Context().Name() + "@" + head.Digest.String()}
	key := head.Digest.String() + " " + platform
	c.mu.Lock()
	known, ok := c.cache[key]
	c.mu.Unlock()
	if ok {
		known.Digest = info.Digest
		return known, nil
	}
	if current := limits.get(); current.limited && platform == commonPlatform && (!c.querySizes || !current.hasPlenty()) {
		return info, nil
	}
	info, err = c.manifest(ctx, ref, platform, info)
	if err == nil && len(info.Layers)+len(info.Platforms) <= maxCachedLayers {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.cache[key] = info
	}
	return info, err
}

// maxCachedLayers limits the sum of layers and platforms of an image; images with more
// are not cached.
const maxCachedLayers = 500

// manifest returns info with the platforms and layers from the image's manifest.
func (c *Client) manifest(ctx context.Context, ref name.Reference, platform string, info imagestore.RemoteImage) (imagestore.RemoteImage, error) {
	found, err := c.currentPuller().Get(ctx, ref)
	if err != nil {
		return imagestore.RemoteImage{}, err
	}
	if !found.MediaType.IsIndex() {
		img, err := found.Image()
		if err != nil {
			return imagestore.RemoteImage{}, err
		}
		return c.layers(info, img)
	}
	index, err := found.ImageIndex()
	if err != nil {
		return imagestore.RemoteImage{}, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return imagestore.RemoteImage{}, err
	}
	want, err := v1.ParsePlatform(platform)
	if err != nil {
		return imagestore.RemoteImage{}, err
	}
	for _, m := range manifest.Manifests {
		if m.Platform == nil || m.Platform.OS == "unknown" || !m.MediaType.IsImage() {
			continue // signatures and the like
		}
		info.Platforms = append(info.Platforms, m.Platform.String())
		if len(info.Layers) == 0 && m.Platform.OS == want.OS && m.Platform.Architecture == want.Architecture &&
			(want.Variant == "" || m.Platform.Variant == "" || m.Platform.Variant == want.Variant) {
			img, err := index.Image(m.Digest)
			if err != nil {
				return imagestore.RemoteImage{}, err
			}
			platformImage, err := c.layers(imagestore.RemoteImage{}, img)
			if err != nil {
				return imagestore.RemoteImage{}, err
			}
			info.Layers = platformImage.Layers
		}
	}
	return info, nil
}

// layers returns info with the platform and layers of a single-platform image.
func (c *Client) layers(info imagestore.RemoteImage, img v1.Image) (imagestore.RemoteImage, error) {
	manifest, err := img.Manifest()
	if err != nil {
		return imagestore.RemoteImage{}, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return imagestore.RemoteImage{}, err
	}
	if p := config.Platform(); p != nil {
		info.Platforms = []string{p.String()}
	}
	for i, l := range manifest.Layers {
		layer := imagestore.Layer{DiffID: l.Digest.String(), Bytes: max(l.Size, 0)}
		if i < len(config.RootFS.DiffIDs) {
			layer.DiffID = config.RootFS.DiffIDs[i].String()
		}
		info.Layers = append(info.Layers, layer)
	}
	return info, nil
}

// headerTransport reads the rate limits from the headers of responses, and limits the
// size of responses.
type headerTransport struct{ next http.RoundTripper }

// responseLimits are the limits reported by the responses of one Inspect.
type responseLimits struct {
	mu     sync.Mutex
	limits limits
}

type limits struct {
	retryAfter time.Duration
	limited    bool // the registry reports a limit on pulls
	limit      int  // number of pulls; 0 if unknown
	left       int  // remaining pulls
}

// hasPlenty reports whether enough pulls are left to spend one on an optional request.
func (l limits) hasPlenty() bool { return l.left > l.limit/2 }

func (r *responseLimits) get() limits {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.limits
}

type limitsKey struct{}

func withLimits(ctx context.Context) (context.Context, *responseLimits) {
	r := &responseLimits{}
	return context.WithValue(ctx, limitsKey{}, r), r
}

// RoundTrip implements http.RoundTripper.
func (t *headerTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if err == nil {
		resp.Body = &limitedBody{ReadCloser: resp.Body, left: maxResponse}
	}
	r, ok := req.Context().Value(limitsKey{}).(*responseLimits)
	if err != nil || !ok {
		return resp, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if resp.Header.Get("RateLimit-Limit") != "" {
		r.limits.limited = true
		r.limits.limit = parsePulls(resp.Header.Get("RateLimit-Limit"))
		r.limits.left = parsePulls(resp.Header.Get("RateLimit-Remaining"))
	}
	if slices.Contains([]int{http.StatusTooManyRequests, http.StatusServiceUnavailable}, resp.StatusCode) {
		r.limits.retryAfter = max(r.limits.retryAfter, parseRetryAfter(resp.Header.Get("Retry-After"), time.Now()))
	}
	return resp, nil
}

// maxResponse limits a response, in bytes. Manifests and configurations take a few
// kilobytes, and the library itself has no limit.
const maxResponse = 16 << 20

var errTooLong = errors.New("the registry's response is longer than 16 MiB")

// limitedBody is a response body that returns errTooLong after maxResponse bytes.
type limitedBody struct {
	io.ReadCloser
	left int64
}

// Read implements io.Reader.
func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// parsePulls parses a limit like 100;w=21600: 100 pulls in six hours. It returns the
// number of pulls, or 0 if the value is invalid.
func parsePulls(value string) int {
	number, _, _ := strings.Cut(value, ";")
	n, err := strconv.Atoi(strings.TrimSpace(number))
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// parseRetryAfter parses the header: a number of seconds or a date. Docker Hub also
// sends a Unix time. The result is at most maxRetryAfter, and 0 if the value is invalid.
func parseRetryAfter(value string, now time.Time) time.Duration {
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
