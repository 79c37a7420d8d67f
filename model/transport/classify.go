package transport

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/minibench/mini/internal/lazyregexp"
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
	Type    string // empty if it is the code
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
// "code", "type"}}, {"error": "..."}, {"message"}, {"detail"}, a list with one of these
// (Gemini), or text. HTML is ignored. The message of a provider behind OpenRouter follows
// OpenRouter's own.
func ParseErrorDetail(body []byte) ErrorDetail {
	var object map[string]json.RawMessage
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) == 1 && bytes.HasPrefix(list[0], []byte("{")) {
		body = list[0]
	}
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
	d := ErrorDetail{Code: asText(inner["code"]), Type: asText(inner["type"])}
	if d.Code == "" {
		d.Code, d.Type = d.Type, ""
	}
	for _, name := range []string{"message", "error", "detail"} {
		if d.Message = text.Clip(asText(inner[name]), maxMessage); d.Message != "" {
			break
		}
	}
	var metadata struct{ Raw Text }
	if json.Unmarshal(inner["metadata"], &metadata) == nil && metadata.Raw != "" {
		d.Message = text.Clip(d.Message+": "+string(metadata.Raw), maxMessage)
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
	lower := strings.ToLower(d.Code + " " + d.Type + " " + d.Message)
	if (status == 0 || status == http.StatusOK) && strings.Contains(lower, "rate_limit") {
		status = http.StatusTooManyRequests
	}
	e := &model.Error{HTTPStatus: status, Err: errors.New(describe(status, d))}
	switch {
	case status == http.StatusUnauthorized || status == http.StatusPaymentRequired,
		status == http.StatusForbidden && !contentRefused.MatchString(lower),
		status >= 400 && status < 500 && status != http.StatusTooManyRequests && badKey.MatchString(lower):
		e.Status = model.AuthenticationError
		e.Hint = "check the key, its rights and the account's credit"
	case noCredit.MatchString(lower):
		e.Status, e.Hint = model.AuthenticationError, "the account has no credit left"
	case status == http.StatusTooManyRequests && isTooLargeForRate(lower):
		e.Status = model.ContextWindowExceeded // waiting does not help
	case status == http.StatusTooManyRequests:
		e.Status, e.Retryable = model.RateLimited, true
		e.Hint = "ask with fewer workers (-w), or set model.requests_per_minute or model.max_concurrent to what the provider allows"
	case malformedCall.MatchString(lower) && !requestPart.MatchString(lower):
		e.Status = model.MalformedCall
	case isTooLong(status, d):
		e.Status = model.ContextWindowExceeded
		e.PromptTokens, e.ContextTokens = contextNumbers(lower)
	case contentRefused.MatchString(lower):
		e.Status = model.ContentRefused
	case overloaded.MatchString(lower), status == http.StatusRequestTimeout || status == http.StatusTooEarly || status == http.StatusConflict:
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
		"context_length", "context length", "context window", "contextwindow", "context size", "maximum context", "prompt is too long",
		"input is too long", "input length and", "exceeds the maximum number of tokens", "reduce the length",
		"`max_new_tokens` must be", "request_too_large",
	}
	contentRefused = lazyregexp.New(`content[ _](filter|policy|management policy|filtering)|responsibleaipolicy|flagged|data_?inspection|` +
		`(content|prompt|input|output)[^.]*(violat|unsafe|sensitive|inappropriate)|(violat|unsafe|sensitive|inappropriate)[^.]*(content|guideline|polic)`)
	noCredit = lazyregexp.New(`insufficient[ _](quota|balance|funds|credit)|credit balance|exceeded_current_quota|arrear|budget_?(has been )? ?exceeded|api usage limits`)
	badKey   = lazyregexp.New(`(invalid|incorrect|missing|expired)[^.]*api[ _-]?key|api[ _-]?key[^.]*(invalid|incorrect|missing|expired|not valid)`)
	// overloaded matches codes of servers that use another status for it.
	overloaded = lazyregexp.New(`capacity_exceeded|overloaded`)
)

// malformedCall matches the errors of servers that could not read a call that the model
// wrote. requestPart matches the errors about a part of the request.
var (
	malformedCall = lazyregexp.New(`tool_use_failed|output_parse_failed|(malformed|invalid|failed?)_(tool|function)_call|(tool|function)_call_\w*(fail|malformed|pars)|` +
		`(fail|error|unable|could not|cannot|malformed|invalid)[^.]*pars[^.]*(tool|function)[ _-]?call|(malformed|invalid) (tool|function)[ _-]?call|` +
		`(tool|function)[ _-]?call[^.]*(malformed|not valid json|invalid json|pars\w+ (error|fail)|fail\w* to parse|not be parsed)`)
	requestPart = lazyregexp.New(`(messages|input)(\[|\.\d)`)
)

// isTooLargeForRate reports whether a request has more tokens than may be sent in a minute
// or a day. The text is that of a response with status 429.
func isTooLargeForRate(lower string) bool {
	if strings.Contains(lower, "request too large") {
		return true
	}
	m := limitAndRequested.FindStringSubmatch(lower)
	return m != nil && tokens(m[2]) > tokens(m[1])
}

var limitAndRequested = lazyregexp.New(`limit:? ([\d,]+).*requested:? ([\d,]+)`)

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

// Providers report a full context window in many ways: by a code, by two numbers, or only
// in words. These patterns match lower-case text.
var (
	tooLongCode = lazyregexp.New(`(context|prompt|input|token)\w*(exceed|too_?long|too_?large|reached)|exceed\w*(context|prompt|input|token)|` +
		`context_?(length|window|size)|request_too_large|string_above_max_length`)
	// A sentence with one of each says of a prompt that its length is over a limit, unless
	// it is about something else.
	promptWord = lazyregexp.New(`\b(context|prompt|inputs?|tokens?|messages?|sequence|conversation|payload)\b`)
	excessWord = lazyregexp.New(`exceed|too (long|large)|(long|larg|great)er than|(more|less|fewer) than|<=|\bover\b|overflow|maximum|\bmax\b|limit|range|at most|up to|reduce`)
	lengthWord = lazyregexp.New(`\b(length|tokens?|window|size|context|limit|long)\b`)
	noPrompt   = lazyregexp.New(`deadline|input should|per (minute|hour|day)|timeout|\bmax(imum)? tokens|output|completion`)

	// What contextNumbers reads: numbers, and what the texts before and after them say.
	numbersOf      = lazyregexp.New(`\d[\d,]*`)
	sumOfTokens    = lazyregexp.New(`([\d,]+) \+ ([\d,]+) > ([\d,]+)`)
	countOfPrompt  = lazyregexp.New(`^\W*(tokens? )?((in|from|of) )?(the |your )?(input|prompt|messages)`)
	settingOfReply = lazyregexp.New(`max_\w*tokens`)
	replyBefore    = lazyregexp.New("(max_(new_|completion_|output_)?tokens|completion|output)")
	replyAfter     = lazyregexp.New(`^[^.;()\d]*\b(completion|output)\b`)
	limitBefore    = lazyregexp.New(`(max|limit|range|at most|up to|only|<=|>|(less|fewer) than|window|available|context|support|exceeds?|n_ctx)`)
	promptBefore   = lazyregexp.New(`(prompt|input|messages?|contains|request|conversation|got|has|received|n_prompt_tokens)`)
)

// minWindow is the smallest number that may be that of a context window, in tokens.
const minWindow = 256

// isTooLong reports whether a failed request was too long for the model's context window.
// Servers that fail for another reason speak of contexts, too, so from status 500 on only
// a code, numbers or a known phrase count.
func isTooLong(status int, d ErrorDetail) bool {
	lower := strings.ToLower(d.Message)
	code := strings.ToLower(d.Code + " " + d.Type)
	prompt, window := contextNumbers(lower)
	switch {
	case status == http.StatusRequestEntityTooLarge, tooLongCode.MatchString(code) && maySpeakOfPrompt(code),
		window > 0 && prompt > window, containsAny(lower, tooLong):
		return true
	case status >= http.StatusInternalServerError:
		return false
	}
	words := strings.ReplaceAll(lower, "_", " ") // names of parameters are words, too
	sentences := strings.FieldsFunc(words, func(r rune) bool { return strings.ContainsRune(".;\n", r) })
	return slices.ContainsFunc(sentences, func(s string) bool {
		return promptWord.MatchString(s) && excessWord.MatchString(s) && lengthWord.MatchString(s) && maySpeakOfPrompt(s)
	})
}

// maySpeakOfPrompt reports whether a text may speak of a prompt's length. An image may be
// too large, but images also have tokens.
func maySpeakOfPrompt(lower string) bool {
	return !noPrompt.MatchString(lower) && (!strings.Contains(lower, "image") || strings.Contains(lower, "tokens"))
}

// contextNumbers returns the tokens of the prompt and of the context window that an error
// message names; 0 for what it does not name.
func contextNumbers(lower string) (prompt, window int64) {
	if m := sumOfTokens.FindStringSubmatch(lower); m != nil {
		return tokens(m[1]), tokens(m[3])
	}
	stated, total, speaksOfReply, last := int64(0), int64(0), settingOfReply.MatchString(lower), 0
	for _, at := range numbersOf.FindAllStringIndex(lower, 40) {
		n := tokens(lower[at[0]:at[1]])
		before, after := lower[last:at[0]], lower[at[1]:min(len(lower), at[1]+80)]
		if n < minWindow {
			continue
		}
		last = at[1]
		switch {
		case replyBefore.MatchString(before) || replyAfter.MatchString(after):
			speaksOfReply = true
		case countOfPrompt.MatchString(after):
			stated = n
		case limitBefore.MatchString(before):
			if window == 0 {
				window = n
			}
		case promptBefore.MatchString(before):
			total = max(total, n)
		}
	}
	if stated == 0 && !speaksOfReply {
		stated = total
	}
	return stated, window
}

// tokens returns the value of a number with or without commas.
func tokens(s string) int64 {
	n, err := strconv.ParseInt(strings.ReplaceAll(s, ",", ""), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

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
	case errors.Is(err, ErrResponseTooLarge):
		e.Retryable, e.Hint = false, ""
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
