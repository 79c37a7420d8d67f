package fake

import (
	"net/http"
	"slices"
	"time"
)

// Fault is a way for a request to fail.
type Fault struct {
	Name string
	// Description says what the client sees.
	Description string
	// Charged reports that the reply is charged if it is sent completely.
	Charged bool

	problem func(w wireFormat) problem // the error to send instead of a reply; nil if none
	mode    deliveryMode               // how the reply is sent
}

// deliveryMode is how a response is sent.
type deliveryMode int

const (
	deliverWhole deliveryMode = iota
	deliverStalled
	deliverReset
	deliverCut
	deliverBadJSON
)

// Faults returns all faults, grouped by kind.
func Faults() []Fault { return slices.Clone(faults) }

func findFault(name string) (Fault, bool) {
	i := slices.IndexFunc(faults, func(f Fault) bool { return f.Name == name })
	if i < 0 {
		return Fault{}, false
	}
	return faults[i], true
}

// TransientFaults returns the names of common faults after which a retry succeeds, at
// once or after a second.
func TransientFaults() []string {
	return []string{"rate-limit", "overloaded", "server-error", "bad-gateway", "reset", "cut", "bad-json"}
}

var faults = []Fault{
	// Temporary errors.
	{
		Name: "rate-limit", Description: "429, with Retry-After: 1",
		problem: byAPI(
			problem{
				status: 429, typ: "requests", code: "rate_limit_exceeded", retryAfter: time.Second,
				message: "Rate limit reached for requests: Limit 3, Used 3, Requested 1. Please try again in 1s.",
			},
			problem{status: 429, typ: "rate_limit_error", retryAfter: time.Second, message: "This request would exceed your organization's rate limit."}),
	},
	{
		Name: "overloaded", Description: "503, or Anthropic's 529 overloaded_error",
		problem: byAPI(
			problem{status: 503, typ: "server_error", message: "The engine is currently overloaded, please try again later."},
			problem{status: 529, typ: "overloaded_error", message: "Overloaded"}),
	},
	{
		Name: "server-error", Description: "500 with an error object",
		problem: byAPI(
			problem{status: 500, typ: "server_error", message: "The server had an error while processing your request."},
			problem{status: 500, typ: "api_error", message: "Internal server error"}),
	},
	{Name: "bad-gateway", Description: "502 with an HTML page", problem: func(wireFormat) problem {
		return problem{status: http.StatusBadGateway, body: "<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head></html>\n", contentType: "text/html"}
	}},
	// Permanent errors.
	{Name: "unauthorized", Description: "401: the key is wrong", problem: badKey},
	{
		Name: "context", Description: "400: the prompt is longer than the context window",
		problem: byAPI(
			problem{
				status: 400, typ: "invalid_request_error", code: "context_length_exceeded", param: "messages",
				message: "This model's maximum context length is 128000 tokens. However, your messages resulted in 128017 tokens. Please reduce the length of the messages.",
			},
			problem{status: 400, typ: "invalid_request_error", message: "prompt is too long: 200017 tokens > 200000 maximum"}),
	},
	// Connections.
	{Name: "stall", Description: "no data for 30 s, then the reply", Charged: true, mode: deliverStalled},
	{Name: "reset", Description: "the connection is reset before the first byte", mode: deliverReset},
	{Name: "cut", Description: "half the reply, then a clean end (not streamed: closed)", mode: deliverCut},
	// Unusable responses.
	{Name: "bad-json", Description: "200, with truncated JSON", mode: deliverBadJSON},
}

func byAPI(forOpenAI, forAnthropic problem) func(wireFormat) problem {
	return func(w wireFormat) problem {
		if w == (anthropic{}) {
			return forAnthropic
		}
		return forOpenAI
	}
}
