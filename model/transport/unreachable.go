package transport

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/minibench/mini/model"
)

// transportError returns the error of a request without a complete response;
// started reports whether a part of the response arrived. The error is retryable
// unless waiting cannot help. If nothing arrived, the address may be wrong.
func transportError(err error, started bool) *model.Error {
	e := &model.Error{
		Status: model.ProviderError, Retryable: true, Err: err,
		Hint: "check the base URL (model.base_url) and that the server can be reached",
	}
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	_, notTLS := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case untrusted:
		e.Retryable = false
		e.Hint = "this machine does not trust the server's certificate; check the base URL (model.base_url), or name a file with its authority in SSL_CERT_FILE"
	case notTLS, errors.Is(err, http.ErrSchemeMismatch):
		e.Retryable = false
		e.Hint = "the server does not speak TLS there; check the base URL (model.base_url): http:// instead of https://, or another port"
	default:
		e.MaybeMisconfigured = !started
	}
	return e
}

// timeoutError returns the error of a request that exceeded the timeout. It does
// not suggest a wrong address: models may be slow.
func timeoutError(limit time.Duration) *model.Error {
	return &model.Error{
		Status: model.ProviderError, Retryable: true, Err: fmt.Errorf("no complete answer within %v", limit),
		Hint: "raise model.timeout for a model that takes longer, and check that the server works",
	}
}

// webPageError returns the error of a response that is HTML.
func webPageError(status int) *model.Error {
	return &model.Error{
		Status: model.ProviderError, HTTPStatus: status, Retryable: true, MaybeMisconfigured: true,
		Err:  errors.New(describe(status, ErrorDetail{Message: "a web page came instead of an answer"})),
		Hint: "check the base URL (model.base_url); that of most servers ends with /v1",
	}
}

// rateLimits reads the limits that the provider reports. Some providers report limits per
// day in the same headers; as limits per minute these are too large to matter.
func rateLimits(h http.Header) model.RateLimits {
	first := func(names ...string) int64 {
		for _, name := range names {
			if n, err := strconv.ParseInt(strings.TrimSpace(h.Get(name)), 10, 64); err == nil && n > 0 {
				return n
			}
		}
		return 0
	}
	return model.RateLimits{
		RequestsPerMinute: first("X-Ratelimit-Limit-Requests", "Anthropic-Ratelimit-Requests-Limit"),
		TokensPerMinute:   first("X-Ratelimit-Limit-Tokens", "Anthropic-Ratelimit-Tokens-Limit"),
	}
}
