package anthropic

import (
	"crypto/tls"
	"errors"
	"net/http"

	"github.com/minibench/mini/model"
)

// unreachable is a request without an answer, or without all of one.
func unreachable(err error) error {
	e := &model.Error{
		Status: model.ProviderError, Retryable: true, Err: err,
		Hint: "check the base URL and that the server can be reached",
	}
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted {
		e.Retryable = false
		e.Hint = "this machine does not trust the server's certificate; check the base URL, or name a file with its authority in SSL_CERT_FILE"
	}
	if _, garbled := errors.AsType[tls.RecordHeaderError](err); garbled || errors.Is(err, http.ErrSchemeMismatch) {
		e.Retryable = false
		e.Hint = "the server does not speak TLS there; check the base URL: http:// instead of https://, or another port"
	}
	return e
}
