package transport

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/model"
)

const (
	maxRefusal = 64 << 10 // bytes of a refusal's body that are read
	maxMessage = 1000     // bytes of its message that are kept
)

// Detail is what the providers' error objects have in common.
type Detail struct {
	Message string
	Code    string // a word, or a number as text; may be empty
}

func (x *Exchange) refusal(resp *http.Response) *model.Error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // what came says more than why the rest did not
	d := ParseDetail(x.Redact.Bytes(body))
	e := Classify(resp.StatusCode, d)
	e.RetryAfter = retryAfter(resp.Header, time.Now())
	return e
}

// ParseDetail reads an error's body in any of the usual forms: {"error":
// {"message", "code", "type"}}, {"error": "..."}, {"message"}, {"detail"}, or
// text. Of a page of HTML nothing is taken.
func ParseDetail(body []byte) Detail {
	var object map[string]json.RawMessage
	if json.Unmarshal(body, &object) != nil {
		said := strings.TrimSpace(string(body))
		if strings.HasPrefix(said, "<") {
			said = ""
		}
		return Detail{Message: text.Clip(said, maxMessage)}
	}
	inner := object
	if raw, ok := object["error"]; ok && bytes.HasPrefix(raw, []byte("{")) {
		inner = nil
		_ = json.Unmarshal(raw, &inner) // it is an object: it was valid within one
	}
	d := Detail{Code: word(inner["code"])}
	if d.Code == "" {
		d.Code = word(inner["type"])
	}
	for _, name := range []string{"message", "error", "detail"} {
		if d.Message = text.Clip(word(inner[name]), maxMessage); d.Message != "" {
			break
		}
	}
	return d
}

// word is a JSON string's text, or the JSON itself.
func word(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// Classify makes the error of an HTTP status and what the provider said. The
// status is 0 where the error came inside a stream or a good answer; then a
// numeric code takes its place.
func Classify(status int, d Detail) *model.Error {
	if n, err := strconv.Atoi(d.Code); err == nil && (status == 0 || status == http.StatusOK) {
		status = n
	}
	e := &model.Error{Code: status, Err: errors.New(describe(status, d))}
	said := strings.ToLower(d.Code + " " + d.Message)
	switch {
	case status == http.StatusUnauthorized || status == http.StatusPaymentRequired,
		status == http.StatusForbidden && !contains(said, refused):
		e.Status = model.AuthenticationError
		e.Hint = "check the key, its rights and the account's credit"
	case contains(said, exhausted):
		e.Status, e.Hint = model.AuthenticationError, "the account has no credit left"
	case status == http.StatusTooManyRequests && contains(said, tooLarge), status == http.StatusRequestEntityTooLarge:
		e.Status = model.ContextWindowExceeded // no waiting makes it smaller
	case status == http.StatusTooManyRequests:
		e.Status, e.Retryable = model.RateLimited, true
		e.Hint = "ask with fewer workers (-w), or set model.requests_per_minute to what the provider allows"
	case contains(said, tooLong):
		e.Status = model.ContextWindowExceeded
	case contains(said, refused):
		e.Status = model.ContentRefused
	case status == http.StatusRequestTimeout || status == http.StatusTooEarly || status == http.StatusConflict:
		e.Status, e.Retryable = model.ProviderError, true
	case status >= 400 && status < 500:
		e.Status = model.BadRequest
		if status == http.StatusNotFound || status == http.StatusMethodNotAllowed {
			e.Hint = "check the model's name and the base URL (model.base_url)"
		}
	default:
		e.Status, e.Retryable = model.ProviderError, true
	}
	return e
}

func describe(status int, d Detail) string {
	var parts []string
	if status != 0 {
		parts = append(parts, strings.TrimSpace(fmt.Sprintf("%d %s", status, http.StatusText(status))))
	}
	if d.Message != "" {
		parts = append(parts, d.Message)
	}
	if len(parts) == 0 {
		return "the provider reported an error and did not say which"
	}
	return strings.Join(parts, ": ")
}

// How providers put it; there is no common code.
var (
	tooLong = []string{
		"context_length", "context length", "context window", "context size", "maximum context", "prompt is too long",
		"input is too long", "input length and", "exceeds the maximum number of tokens", "reduce the length",
		"`max_new_tokens` must be", "request_too_large",
	}
	// tooLarge is a request that has more tokens than a minute may have.
	tooLarge  = []string{"request too large"}
	refused   = []string{"content_filter", "content_policy", "content policy", "content management policy", "content filtering policy", "responsibleaipolicy", "flagged"}
	exhausted = []string{"insufficient_quota", "credit balance is too low", "api usage limits"}
)

func contains(s string, any []string) bool {
	for _, part := range any {
		if strings.Contains(s, part) {
			return true
		}
	}
	return false
}

// retryAfter reads how long the provider asks to wait: milliseconds in the
// header some have, or the standard one's seconds or date; 0 when it does not
// say, or says something else.
func retryAfter(h http.Header, now time.Time) time.Duration {
	for _, field := range []struct {
		name string
		unit time.Duration
	}{{"Retry-After-Ms", time.Millisecond}, {"Retry-After", time.Second}} {
		text := strings.TrimSpace(h.Get(field.name))
		if n, err := strconv.ParseFloat(text, 64); err == nil && n >= 0 && n < 1e9 {
			return time.Duration(n * float64(field.unit))
		}
		if date, err := http.ParseTime(text); err == nil {
			return max(date.Sub(now), 0)
		}
	}
	return 0
}
