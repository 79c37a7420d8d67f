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
func (h *Hub) statusError(resp *http.Response, ref Ref) *Error {
	if at := resp.Request.URL; origin(at) != h.origin {
		return &Error{ // may pass: the URLs of the store expire, and the next try gets a new one from the hub
			Text: fmt.Sprintf("the hub's file store at %s answers %d", printable(at.Host), resp.StatusCode),
			Hint: "try again; if it fails again, check proxies and HF_ENDPOINT", retry: true, after: retryAfter(resp.Header),
		}
	}
	code, message := resp.Header.Get("X-Error-Code"), resp.Header.Get("X-Error-Message")
	switch {
	case code == "RevisionNotFound":
		return &Error{
			Text: fmt.Sprintf("%s has no revision %q", ref.Repo, printable(ref.Revision)),
			Hint: "use a branch, a tag, refs/convert/parquet, or a full commit id; the default is main",
		}
	case code == "GatedRepo":
		return h.gatedError(ref)
	case resp.StatusCode == http.StatusUnauthorized && h.token && (ref.Repo == "" || strings.HasPrefix(message, "Invalid credentials")):
		return &Error{
			Text: fmt.Sprintf("the hub at %s rejects the token", printable(h.host)),
			Hint: "renew HF_TOKEN, or unset it: public datasets do not need one",
		}
	case resp.StatusCode == http.StatusUnauthorized && ref.Repo == "":
		return &Error{Text: fmt.Sprintf("the hub at %s requires a token", printable(h.host)), Hint: "set HF_TOKEN"}
	case code == "EntryNotFound":
		return &Error{Text: fmt.Sprintf("the hub lists a file of %s that does not exist", ref), Hint: "try again later"}
	case ref.Repo != "" && (code == "RepoNotFound" || resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusNotFound):
		return &Error{Text: fmt.Sprintf("%s is not a dataset at %s, or it is private", ref.Repo, printable(h.host)), Hint: h.tokenHint()}
	case resp.StatusCode == http.StatusForbidden:
		return &Error{Text: fmt.Sprintf("the hub denies access to %s%s", ref, withDetail(message)), Hint: h.tokenHint()}
	case resp.StatusCode == http.StatusTooManyRequests:
		return h.rateLimitError(resp)
	}
	return h.unexpectedStatus(resp)
}

func (h *Hub) tokenHint() string {
	if h.token {
		return "check the name; if it is right, the token in HF_TOKEN may lack access"
	}
	return "check the name; if the dataset is private, set HF_TOKEN to a token with access"
}

func (h *Hub) gatedError(ref Ref) *Error {
	e := &Error{
		Text: "access to " + ref.Repo + " requires accepting its terms",
		Hint: fmt.Sprintf("accept them at %s/datasets/%s", h.endpoint, ref.Repo),
	}
	if h.token {
		e.Hint += ", with the account of HF_TOKEN"
	} else {
		e.Hint += ", then set HF_TOKEN to a token of that account"
	}
	return e
}

func (h *Hub) rateLimitError(resp *http.Response) *Error {
	e := &Error{
		Text: fmt.Sprintf("the hub at %s limits requests", printable(h.host)),
		Hint: "wait, then run it again", retry: true, after: retryAfter(resp.Header),
	}
	if e.after > 0 {
		e.Text += " for another " + e.after.String()
	}
	if !h.token {
		e.Hint += "; the limit is higher with HF_TOKEN"
	}
	return e
}

func (h *Hub) unexpectedStatus(resp *http.Response) *Error {
	return &Error{
		Text:  fmt.Sprintf("the hub at %s answers %d%s", printable(h.host), resp.StatusCode, withDetail(resp.Header.Get("X-Error-Message"))),
		Hint:  "try again; if it fails again, check proxies and HF_ENDPOINT",
		retry: resp.StatusCode >= 500 || resp.StatusCode == http.StatusRequestTimeout, after: retryAfter(resp.Header),
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
