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
	"syscall"
	"time"

	"github.com/minibench/mini/agent/pictures"
)

// timeout bounds one fetch, redirections included.
const timeout = 30 * time.Second

// Fetcher implements pictures.Fetcher.
type Fetcher struct{ client *http.Client }

var _ pictures.Fetcher = (*Fetcher)(nil)

// New returns a fetcher. Addresses that are not public are refused, unless
// private is true.
func New(private bool) *Fetcher {
	d := &net.Dialer{Timeout: timeout}
	if !private {
		d.Control = publicOnly
	}
	return &Fetcher{&http.Client{
		Timeout:       timeout,
		Transport:     &http.Transport{DialContext: d.DialContext, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Second},
		CheckRedirect: redirect,
	}}
}

// Fetch implements pictures.Fetcher.
func (f *Fetcher) Fetch(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
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
	if err != nil {
		return errPrivate
	}
	ip := a.Addr().Unmap()
	if !ip.IsGlobalUnicast() || ip.IsPrivate() || shared.Contains(ip) {
		return errPrivate
	}
	return nil
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
