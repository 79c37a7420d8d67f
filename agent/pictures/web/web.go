// Package web fetches images over http and https, for those who allow it. What
// is asked for is named by datasets, so that a fetch must not reach into the
// network that mini runs in, and what comes is bounded.
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

	"github.com/minibench/mini/agent/pictures"
)

// timeout bounds one fetch, redirections included.
const timeout = 30 * time.Second

// Fetcher implements pictures.Fetcher.
type Fetcher struct{ client *http.Client }

var _ pictures.Fetcher = (*Fetcher)(nil)

// New returns a fetcher, which goes through the proxies that the environment
// names. Addresses that are not public are refused, unless private is true.
func New(private bool) *Fetcher { return behind(http.ProxyFromEnvironment, private) }

// proxies says which proxy a request goes through; nil for none.
type proxies func(*http.Request) (*url.URL, error)

func behind(p proxies, private bool) *Fetcher {
	direct := &net.Dialer{Timeout: timeout}
	if !private {
		direct.Control = publicOnly
	}
	road := &roads{
		proxy: p, private: private,
		direct:  &http.Transport{DialContext: direct.DialContext, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Second},
		proxied: &http.Transport{Proxy: p, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Second},
	}
	return &Fetcher{&http.Client{Timeout: timeout, Transport: road, CheckRedirect: redirect}}
}

// roads sends each request, those of redirections too, directly or through its
// proxy. A proxy is the user's, and may well be in the network of this machine;
// where it may go for a dataset is asked of the name.
type roads struct {
	proxy           proxies
	private         bool
	direct, proxied http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (r *roads) RoundTrip(req *http.Request) (*http.Response, error) {
	switch through, err := r.proxy(req); {
	case err != nil:
		return nil, errors.New("the proxy's address cannot be read")
	case through == nil:
		return r.direct.RoundTrip(req)
	case !r.private && !publicName(req.Context(), req.URL.Hostname()):
		return nil, errPrivate
	}
	return r.proxied.RoundTrip(req)
}

// Fetch implements pictures.Fetcher.
func (f *Fetcher) Fetch(ctx context.Context, address string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil || req.URL.Scheme != "http" && req.URL.Scheme != "https" || req.URL.User != nil {
		return nil, errors.New("it is not a plain http or https URL")
	}
	req.Header.Set("Accept", "image/png,image/jpeg,image/gif,image/webp")
	resp, err := f.client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("it cannot be fetched: %w", reason(err))
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answers %d", resp.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, pictures.MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("it cannot be fetched: %w", reason(err))
	}
	return data, nil
}

// redirect keeps to the schemes, and to few hops.
func redirect(req *http.Request, via []*http.Request) error {
	if len(via) > 5 || req.URL.Scheme != "http" && req.URL.Scheme != "https" {
		return errors.New("it is redirected too often, or elsewhere")
	}
	return nil
}

// errPrivate is that an address is of no public network.
var errPrivate = errors.New("its address is not public")

// publicOnly looks at the address itself, whatever name led to it.
func publicOnly(_, address string, _ syscall.RawConn) error {
	a, err := netip.ParseAddrPort(address)
	if err != nil || !public(a.Addr()) {
		return errPrivate
	}
	return nil
}

// publicName says whether a proxy may be asked for a host, as far as can be told
// from here: behind a proxy there often is nobody who knows public names.
func publicName(ctx context.Context, host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return public(ip)
	}
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	top := labels[len(labels)-1]
	if len(labels) < 2 || strings.EqualFold(top, "localhost") || top == "" || top[0] >= '0' && top[0] <= '9' {
		return false // names of this machine or of its network, and numbers in odd forms
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	addresses, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	return !slices.ContainsFunc(addresses, func(ip netip.Addr) bool { return !public(ip) })
}

func public(ip netip.Addr) bool {
	ip = ip.Unmap()
	return ip.IsGlobalUnicast() && !ip.IsPrivate() && !shared.Contains(ip)
}

// shared are the addresses behind the NAT of a provider, where clouds have
// services of their own too.
var shared = netip.MustParsePrefix("100.64.0.0/10")

// reason is what is wrong, without the URL that everybody knows already.
func reason(err error) error {
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
