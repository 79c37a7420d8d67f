// Package web fetches images over http and https. The URLs come from datasets
// and are untrusted: by default a fetch cannot reach private networks, and its
// size and time are limited.
package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/minibench/mini/agent/images"
)

// timeout bounds one fetch, including redirects.
const timeout = 30 * time.Second

// Fetcher implements images.Fetcher.
type Fetcher struct{ client *http.Client }

var _ images.Fetcher = (*Fetcher)(nil)

// New returns a Fetcher that uses the proxies of the environment (HTTP_PROXY
// and others). It rejects non-public addresses unless allowPrivate is true.
func New(allowPrivate bool) *Fetcher { return newFetcher(http.ProxyFromEnvironment, allowPrivate) }

// proxyFunc returns the proxy of a request; nil for none.
type proxyFunc func(*http.Request) (*url.URL, error)

func newFetcher(p proxyFunc, allowPrivate bool) *Fetcher {
	dialer := &net.Dialer{Timeout: timeout}
	if !allowPrivate {
		dialer.Control = checkPublicAddr
	}
	t := &transport{
		proxy: p, allowPrivate: allowPrivate,
		direct:  &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Second},
		proxied: &http.Transport{Proxy: p, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Second},
	}
	return &Fetcher{&http.Client{Timeout: timeout, Transport: t, CheckRedirect: checkRedirect}}
}

// transport sends each request, including redirects, directly or through its
// proxy. With a proxy it checks the host of the request, because the address of
// the proxy itself may be private.
type transport struct {
	proxy           proxyFunc
	allowPrivate    bool
	direct, proxied http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	switch proxy, err := t.proxy(req); {
	case err != nil:
		return nil, errors.New("invalid proxy address")
	case proxy == nil:
		return t.direct.RoundTrip(req)
	case !t.allowPrivate && !isPublicHost(req.Context(), req.URL.Hostname()):
		return nil, errPrivate
	}
	return t.proxied.RoundTrip(req)
}

// Fetch implements images.Fetcher.
func (f *Fetcher) Fetch(ctx context.Context, address string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil || req.URL.Scheme != "http" && req.URL.Scheme != "https" || req.URL.User != nil {
		return nil, errors.New("not an http or https URL, or one with credentials")
	}
	req.Header.Set("Accept", "image/png,image/jpeg,image/gif,image/webp")
	resp, err := f.client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("cannot be fetched: %w", rootCause(err))
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answers %d", resp.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, images.MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("cannot be fetched: %w", rootCause(err))
	}
	return data, nil
}

// checkRedirect allows up to 5 redirects to http and https URLs.
func checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) > 5 || req.URL.Scheme != "http" && req.URL.Scheme != "https" {
		return errors.New("too many redirects, or a redirect to another scheme")
	}
	return nil
}

// errPrivate means that an address is not public.
var errPrivate = errors.New("the address is not public")

// checkPublicAddr checks the resolved address of a connection, as
// net.Dialer.Control.
func checkPublicAddr(_, address string, _ syscall.RawConn) error {
	a, err := netip.ParseAddrPort(address)
	if err != nil || !isPublic(a.Addr()) {
		return errPrivate
	}
	return nil
}

// isPublicHost reports whether a proxy may be asked for a host. It allows names
// that this machine cannot resolve: behind a proxy, public names often cannot
// be resolved.
func isPublicHost(ctx context.Context, host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return isPublic(ip)
	}
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	tld := labels[len(labels)-1]
	if len(labels) < 2 || strings.EqualFold(tld, "localhost") || tld == "" || tld[0] >= '0' && tld[0] <= '9' {
		return false // local names, and numeric addresses in unusual forms
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	addresses, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	return !slices.ContainsFunc(addresses, func(ip netip.Addr) bool { return !isPublic(ip) })
}

func isPublic(ip netip.Addr) bool {
	ip = ip.Unmap()
	return ip.IsGlobalUnicast() && !ip.IsPrivate() && !sharedPrefix.Contains(ip)
}

// sharedPrefix is the shared address space (RFC 6598), which clouds also use
// for internal services.
var sharedPrefix = netip.MustParsePrefix("100.64.0.0/10")

// rootCause returns the innermost error, which does not contain the URL.
func rootCause(err error) error {
	if errors.Is(err, errPrivate) {
		return errPrivate
	}
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
