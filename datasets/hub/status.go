package hub

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/minibench/mini/internal/lazyregexp"
)

// statusError converts an unexpected status to an error. The header X-Error-Code has the
// codes, see huggingface_hub/errors.py. The hub answers 401 for private and for missing
// datasets, to hide which exist. With a wrong token, it answers 401 for public datasets too.
func (h *Hub) statusError(resp *http.Response, ref Ref) error {
	code, message := resp.Header.Get("X-Error-Code"), resp.Header.Get("X-Error-Message")
	switch {
	case code == "RevisionNotFound":
		return &Error{
			kind: ErrRevision, Text: fmt.Sprintf("%s has no revision %q", ref.Repo, printable(ref.Revision)),
			Hint: "use a branch, a tag, refs/convert/parquet, or a full commit id; the default is main",
		}
	case code == "GatedRepo":
		return h.gatedError(ref)
	case resp.StatusCode == http.StatusUnauthorized && h.token && (ref.Repo == "" || strings.HasPrefix(message, "Invalid credentials")):
		return &Error{
			kind: ErrToken, Text: fmt.Sprintf("the hub at %s rejects the token", printable(h.host)),
			Hint: "renew HF_TOKEN, or unset it: public datasets do not need one",
		}
	case resp.StatusCode == http.StatusUnauthorized && ref.Repo == "":
		return &Error{kind: ErrToken, Text: fmt.Sprintf("the hub at %s requires a token", printable(h.host)), Hint: "set HF_TOKEN"}
	case code == "EntryNotFound":
		return &Error{kind: ErrResponse, Text: fmt.Sprintf("the hub lists a file of %s that does not exist", ref), Hint: "try again later"}
	case ref.Repo != "" && (code == "RepoNotFound" || resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusNotFound):
		return h.notFound(ref)
	case resp.StatusCode == http.StatusForbidden:
		return &Error{kind: ErrNotFound, Text: fmt.Sprintf("the hub denies access to %s%s", ref, withDetail(message)), Hint: h.tokenHint()}
	case resp.StatusCode == http.StatusTooManyRequests:
		return h.rateLimitError(resp)
	case resp.StatusCode >= 500 || resp.StatusCode == http.StatusRequestTimeout:
		return &transientError{err: h.unexpectedStatus(ErrUnreachable, resp), after: retryAfter(resp.Header)}
	}
	return h.unexpectedStatus(ErrResponse, resp)
}

// storeError converts an error status of the file store. The error is transient: the URLs
// of the store expire, and a retry gets a new one from the hub.
func (h *Hub) storeError(resp *http.Response) error {
	return &transientError{after: retryAfter(resp.Header), err: &Error{
		kind: ErrUnreachable,
		Text: fmt.Sprintf("the hub's file store at %s answers %d", printable(resp.Request.URL.Host), resp.StatusCode),
		Hint: "try again; if it fails again, check proxies and HF_ENDPOINT",
	}}
}

func (h *Hub) notFound(ref Ref) *Error {
	return &Error{
		kind: ErrNotFound, Hint: h.tokenHint(),
		Text: fmt.Sprintf("%s is not a dataset at %s, or it is private", ref.Repo, printable(h.host)),
	}
}

func (h *Hub) tokenHint() string {
	if h.token {
		return "check the name; if it is right, the token in HF_TOKEN may lack access"
	}
	return "check the name; if the dataset is private, set HF_TOKEN to a token with access"
}

func (h *Hub) gatedError(ref Ref) *Error {
	e := &Error{
		kind: ErrGated, Text: "access to " + ref.Repo + " requires accepting its terms",
		Hint: fmt.Sprintf("accept them at %s/datasets/%s", h.endpoint, ref.Repo),
	}
	if h.token {
		e.Hint += ", with the account of HF_TOKEN"
	} else {
		e.Hint += ", then set HF_TOKEN to a token of that account"
	}
	return e
}

func (h *Hub) rateLimitError(resp *http.Response) error {
	after := retryAfter(resp.Header)
	e := &Error{
		kind: ErrRateLimited, Text: fmt.Sprintf("the hub at %s limits requests", printable(h.host)),
		Hint: "wait, then run it again, which resumes the download",
	}
	if after > 0 {
		e.Text += " for another " + formatDuration(after)
	}
	if !h.token {
		e.Hint += "; the limit is higher with HF_TOKEN"
	}
	return &transientError{err: e, after: after}
}

// formatDuration formats a duration without the trailing zero units of time.Duration.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func (h *Hub) unexpectedStatus(kind error, resp *http.Response) *Error {
	return &Error{
		kind: kind,
		Text: fmt.Sprintf("the hub at %s answers %d%s", printable(h.host), resp.StatusCode, withDetail(resp.Header.Get("X-Error-Message"))),
		Hint: "try again; if it fails again, check proxies and HF_ENDPOINT",
	}
}

func withDetail(message string) string {
	if message == "" {
		return ""
	}
	return ": " + printable(message)
}

// resetAfter matches t, the seconds until the limit resets, in a RateLimit header
// (draft-ietf-httpapi-ratelimit-headers).
var resetAfter = lazyregexp.New(`;\s*t=(\d{1,9})`)

// retryAfter returns the delay that the server asks for; 0 if none.
func retryAfter(header http.Header) time.Duration {
	after := header.Get("Retry-After")
	if n, err := strconv.ParseUint(after, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	if t, err := http.ParseTime(after); err == nil {
		return max(0, time.Until(t).Round(time.Second))
	}
	if m := resetAfter.FindStringSubmatch(header.Get("RateLimit")); m != nil {
		if n, err := strconv.ParseUint(m[1], 10, 31); err == nil {
			return time.Duration(n) * time.Second
		}
	}
	return 0
}
