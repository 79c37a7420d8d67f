package fake

import (
	"net/http"
	"slices"
	"time"
)

// Fault is a way for a request to fail.
type Fault struct {
	Name string `json:"name"`
	// Description says what the client sees.
	Description string `json:"about"`
	// Charged reports that the reply is charged if it is sent completely.
	Charged bool `json:"charged"`

	problem  func(w wireFormat, model string) problem // the error to send instead of a reply; nil if none
	mode     deliveryMode                             // how the reply is sent
	defaults Rule                                     // defaults of a Rule
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
		Name: "rate-limit", Description: "429, with Retry-After: 1", defaults: Rule{RetryAfter: time.Second},
		problem: func(w wireFormat, model string) problem {
			return limited(w, &limitExceeded{"requests", time.Second, "on requests per min (RPM): Limit 3, Used 3, Requested 1"}, model)
		},
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
	{Name: "bad-gateway", Description: "502 with an HTML page", problem: proxyError(http.StatusBadGateway)},
	// Permanent errors.
	{Name: "unauthorized", Description: "401: the key is wrong", problem: func(w wireFormat, _ string) problem { return badKey(w) }},
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
	{Name: "stall", Description: "no data for 30 s, then the reply", Charged: true, mode: deliverStalled, defaults: Rule{Wait: 30 * time.Second}},
	{Name: "reset", Description: "the connection is reset before the first byte", mode: deliverReset},
	{Name: "cut", Description: "half the reply, then a clean end (not streamed: closed)", mode: deliverCut},
	// Unusable responses.
	{Name: "bad-json", Description: "200, with truncated JSON", mode: deliverBadJSON},
}

func byAPI(forOpenAI, forAnthropic problem) func(wireFormat, string) problem {
	return func(w wireFormat, _ string) problem {
		if w == (anthropic{}) {
			return forAnthropic
		}
		return forOpenAI
	}
}

// proxyError returns the error page of a proxy.
func proxyError(status int) func(wireFormat, string) problem {
	return func(wireFormat, string) problem {
		return problem{status: status, body: htmlPage(http.StatusText(status)), contentType: "text/html"}
	}
}

func htmlPage(title string) string {
	return "<!DOCTYPE html>\n<html>\n<head><title>" + title + "</title></head>\n<body>\n<center><h1>" + title + "</h1></center>\n</body>\n</html>\n"
}
