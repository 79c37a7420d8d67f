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

// Failed makes the error of a request that got no answer, or not all of one.
// Only what no waiting mends is not to be tried again. Where nothing came at
// all, however fast, there may be nobody: another address would look the same.
func (x *Exchange) Failed(err error) *model.Error {
	e := &model.Error{
		Status: model.ProviderError, Retryable: true, Err: err,
		Hint: "check the base URL (model.base_url) and that the server can be reached",
	}
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	_, garbled := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case untrusted:
		e.Retryable = false
		e.Hint = "this machine does not trust the server's certificate; check the base URL (model.base_url), or name a file with its authority in SSL_CERT_FILE"
	case garbled, errors.Is(err, http.ErrSchemeMismatch):
		e.Retryable = false
		e.Hint = "the server does not speak TLS there; check the base URL (model.base_url): http:// instead of https://, or another port"
	default:
		e.Suspect = !x.answered
	}
	return e
}

// Late makes the error of a request that took longer than its limit. It says
// nothing of the address: models may take their time.
func Late(limit time.Duration) *model.Error {
	return &model.Error{
		Status: model.ProviderError, Retryable: true, Err: fmt.Errorf("no complete answer within %v", limit),
		Hint: "raise model.timeout for a model that takes longer, and check that the server works",
	}
}

// page is what a web server answers that is no API.
func page(status int) *model.Error {
	return &model.Error{
		Status: model.ProviderError, Code: status, Retryable: true, Suspect: true,
		Err:  errors.New(describe(status, Detail{Message: "a web page came instead of an answer"})),
		Hint: "check the base URL (model.base_url); that of most servers ends with /v1",
	}
}

// limits reads what the provider says it allows. Where it means a day by it,
// the number is too large for a minute, which does no harm.
func limits(h http.Header) model.Limits {
	first := func(names ...string) int64 {
		for _, name := range names {
			if n, err := strconv.ParseInt(strings.TrimSpace(h.Get(name)), 10, 64); err == nil && n > 0 {
				return n
			}
		}
		return 0
	}
	return model.Limits{
		Requests: first("X-Ratelimit-Limit-Requests", "Anthropic-Ratelimit-Requests-Limit"),
		Tokens:   first("X-Ratelimit-Limit-Tokens", "Anthropic-Ratelimit-Tokens-Limit"),
	}
}
