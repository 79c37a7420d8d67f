package hub

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/minibench/mini/internal/lazyregexp"
)

// refusal turns an answer that is none into an error. The codes are those of
// the header X-Error-Code, as huggingface_hub reads them. The hub answers 401
// for what is private and for what does not exist, so that strangers learn
// nothing; a token that is wrong gets 401 for public datasets too.
func (h *Hub) refusal(resp *http.Response, ref Ref) error {
	code, message := resp.Header.Get("X-Error-Code"), resp.Header.Get("X-Error-Message")
	switch {
	case code == "RevisionNotFound":
		return &Error{
			kind: ErrRevision, Text: fmt.Sprintf("%s has no revision %q", ref.Repo, shown(ref.Revision)),
			Hint: "a revision is a branch, a tag, refs/convert/parquet, or a commit in full; none is main",
		}
	case code == "GatedRepo":
		return h.gated(ref)
	case resp.StatusCode == http.StatusUnauthorized && h.token && (ref.Repo == "" || strings.HasPrefix(message, "Invalid credentials")):
		return &Error{
			kind: ErrToken, Text: fmt.Sprintf("the hub at %s does not accept the token", shown(h.host)),
			Hint: "renew HF_TOKEN, or unset it: public datasets need none",
		}
	case resp.StatusCode == http.StatusUnauthorized && ref.Repo == "":
		return &Error{kind: ErrToken, Text: fmt.Sprintf("the hub at %s wants a token", shown(h.host)), Hint: "set HF_TOKEN"}
	case code == "EntryNotFound":
		return &Error{kind: ErrAnswer, Text: fmt.Sprintf("a file of %s is listed, but is not there", ref), Hint: "try again; the hub contradicts itself"}
	case ref.Repo != "" && (code == "RepoNotFound" || resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusNotFound):
		return h.notFound(ref)
	case resp.StatusCode == http.StatusForbidden:
		return &Error{kind: ErrNotFound, Text: fmt.Sprintf("the hub refuses access to %s%s", ref, said(message)), Hint: h.tokenHint()}
	case resp.StatusCode == http.StatusTooManyRequests:
		return h.limited(resp)
	case resp.StatusCode >= 500 || resp.StatusCode == http.StatusRequestTimeout:
		return &fault{err: h.answered(ErrUnreachable, resp), after: pauseOf(resp.Header)}
	}
	return h.answered(ErrAnswer, resp)
}

// elsewhere is a refusal by the host that keeps the files. Their URLs expire,
// so that it is worth asking the hub for a new one.
func (h *Hub) elsewhere(resp *http.Response) error {
	return &fault{after: pauseOf(resp.Header), err: &Error{
		kind: ErrUnreachable,
		Text: fmt.Sprintf("the hub's file store at %s answers %d", shown(resp.Request.URL.Host), resp.StatusCode),
		Hint: "try again; if it stays so, check proxies and HF_ENDPOINT",
	}}
}

func (h *Hub) notFound(ref Ref) *Error {
	return &Error{
		kind: ErrNotFound, Hint: h.tokenHint(),
		Text: fmt.Sprintf("%s is not a dataset at %s, or it is private", ref.Repo, shown(h.host)),
	}
}

func (h *Hub) tokenHint() string {
	if h.token {
		return "check the name; if it is right, the token in HF_TOKEN may lack access to it"
	}
	return "check the name; if it is private, set HF_TOKEN to a token that may read it"
}

func (h *Hub) gated(ref Ref) *Error {
	e := &Error{
		kind: ErrGated, Text: ref.Repo + " is only given to those who accepted its terms",
		Hint: fmt.Sprintf("accept them at %s/datasets/%s", h.endpoint, ref.Repo),
	}
	if h.token {
		e.Hint += ", with the account of HF_TOKEN"
	} else {
		e.Hint += ", then set HF_TOKEN to a token of that account"
	}
	return e
}

func (h *Hub) limited(resp *http.Response) error {
	after := pauseOf(resp.Header)
	e := &Error{
		kind: ErrRateLimited, Text: fmt.Sprintf("the hub at %s limits requests", shown(h.host)),
		Hint: "wait, then run it again, which goes on where it stopped",
	}
	if after > 0 {
		e.Text += " for another " + span(after)
	}
	if !h.token {
		e.Hint += "; with HF_TOKEN set, the limit is higher"
	}
	return &fault{err: e, after: after}
}

// span is a duration without the zeros that time.Duration writes.
func span(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func (h *Hub) answered(kind error, resp *http.Response) *Error {
	return &Error{
		kind: kind,
		Text: fmt.Sprintf("the hub at %s answers %d%s", shown(h.host), resp.StatusCode, said(resp.Header.Get("X-Error-Message"))),
		Hint: "try again; if it stays so, check proxies and HF_ENDPOINT",
	}
}

func said(message string) string {
	if message == "" {
		return ""
	}
	return ": " + shown(message)
}

// resetAfter finds t, the seconds to the next window, in a RateLimit header
// (draft-ietf-httpapi-ratelimit-headers, which the hub follows).
var resetAfter = lazyregexp.New(`;\s*t=(\d{1,9})`)

// pauseOf is how long the server asks to wait; 0 where it does not say.
func pauseOf(header http.Header) time.Duration {
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
