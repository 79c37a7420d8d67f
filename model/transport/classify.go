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
	maxErrorBody = 64 << 10 // bytes read of an error response's body
	maxMessage   = 1000     // bytes of the message in an error response
)

// ErrorDetail holds the common fields of the providers' error objects.
type ErrorDetail struct {
	Message string
	Code    string // a word, or a number as text; may be empty
}

func (c *Client) statusError(resp *http.Response) *model.Error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // a partial body is enough
	body = c.Redact.Bytes(body)
	if c.OnError != nil {
		c.OnError(resp.StatusCode, body)
	}
	d := ParseErrorDetail(body)
	e := Classify(resp.StatusCode, d)
	e.RetryAfter = retryAfter(resp.Header, time.Now())
	return e
}

// ParseErrorDetail reads the body of an error response: {"error": {"message",
// "code", "type"}}, {"error": "..."}, {"message"}, {"detail"}, or text. HTML is
// ignored.
func ParseErrorDetail(body []byte) ErrorDetail {
	var object map[string]json.RawMessage
	if json.Unmarshal(body, &object) != nil {
		message := strings.TrimSpace(string(body))
		if strings.HasPrefix(message, "<") {
			message = ""
		}
		return ErrorDetail{Message: text.Clip(message, maxMessage)}
	}
	inner := object
	if raw, ok := object["error"]; ok && bytes.HasPrefix(raw, []byte("{")) {
		inner = nil
		_ = json.Unmarshal(raw, &inner) // cannot fail: raw is a part of valid JSON
	}
	d := ErrorDetail{Code: asText(inner["code"])}
	if d.Code == "" {
		d.Code = asText(inner["type"])
	}
	for _, name := range []string{"message", "error", "detail"} {
		if d.Message = text.Clip(asText(inner[name]), maxMessage); d.Message != "" {
			break
		}
	}
	return d
}

// asText returns the text of a JSON string, "" for null, and other JSON as it is.
func asText(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// Classify returns the error for an HTTP status and error detail. status is 0, or
// 200, if the error was in a stream or a successful response; then a numeric
// d.Code replaces status.
func Classify(status int, d ErrorDetail) *model.Error {
	if n, err := strconv.Atoi(d.Code); err == nil && (status == 0 || status == http.StatusOK) {
		status = n
	}
	e := &model.Error{HTTPStatus: status, Err: errors.New(describe(status, d))}
	lower := strings.ToLower(d.Code + " " + d.Message)
	switch {
	case status == http.StatusUnauthorized || status == http.StatusPaymentRequired,
		status == http.StatusForbidden && !containsAny(lower, contentRefused):
		e.Status = model.AuthenticationError
		e.Hint = "check the key, its rights and the account's credit"
	case containsAny(lower, noCredit):
		e.Status, e.Hint = model.AuthenticationError, "the account has no credit left"
	case status == http.StatusTooManyRequests && containsAny(lower, tooLarge), status == http.StatusRequestEntityTooLarge:
		e.Status = model.ContextWindowExceeded // waiting does not help
	case status == http.StatusTooManyRequests:
		e.Status, e.Retryable = model.RateLimited, true
		e.Hint = "ask with fewer workers (-w), or set model.requests_per_minute to what the provider allows"
	case containsAny(lower, tooLong):
		e.Status = model.ContextWindowExceeded
	case containsAny(lower, contentRefused):
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

func describe(status int, d ErrorDetail) string {
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

// Texts in the providers' error messages: providers share no error codes.
var (
	tooLong = []string{
		"context_length", "context length", "context window", "context size", "maximum context", "prompt is too long",
		"input is too long", "input length and", "exceeds the maximum number of tokens", "reduce the length",
		"`max_new_tokens` must be", "request_too_large",
	}
	// tooLarge matches requests with more tokens than allowed per minute.
	tooLarge       = []string{"request too large"}
	contentRefused = []string{"content_filter", "content_policy", "content policy", "content management policy", "content filtering policy", "responsibleaipolicy", "flagged"}
	noCredit       = []string{"insufficient_quota", "credit balance is too low", "api usage limits"}
)

func containsAny(s string, parts []string) bool {
	for _, part := range parts {
		if strings.Contains(s, part) {
			return true
		}
	}
	return false
}

// retryAfter returns how long the provider asks to wait: from Retry-After-Ms, or
// from Retry-After in seconds or as a date. It returns 0 if neither is valid.
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
