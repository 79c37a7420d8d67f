package fake

import (
	"net/http"
	"slices"
	"time"
)

// Fault is a way in which a provider fails.
type Fault struct {
	Name string `json:"name"`
	// About says what a client sees.
	About string `json:"about"`
	// Charged says that the reply is paid for, if it is sent to its end.
	Charged bool `json:"charged"`

	problem func(w wire, model string) problem // instead of a reply
	manner  manner                             // what is wrong with its sending
	usual   Rule                               // what zero values of a rule mean
}

// manner is how an answer is sent.
type manner int

const (
	whole manner = iota
	stallFirst
	stallMid
	resetFirst
	resetMid
	drop
	cut
	badJSON
	errorBody
	errorEvent
)

// breaks says that a stream has a good beginning, and then no end: it does not
// say itself that something failed, which would be charged by nobody.
func (m manner) breaks() bool {
	return m == resetMid || m == drop || m == cut || m == badJSON
}

// Faults are all there are, in the order in which they are listed.
func Faults() []Fault { return slices.Clone(faults) }

func faultNamed(name string) (Fault, bool) {
	i := slices.IndexFunc(faults, func(f Fault) bool { return f.Name == name })
	if i < 0 {
		return Fault{}, false
	}
	return faults[i], true
}

// Usual are the faults of an ordinary bad day, all of which pass when one tries
// again, at once or after a second.
func Usual() []string {
	return []string{"rate-limit", "overloaded", "server-error", "bad-gateway", "reset", "reset-mid", "drop", "cut", "bad-json", "error-event"}
}

var faults = []Fault{
	// Refusals that pass.
	{
		Name: "rate-limit", About: "429, with Retry-After: 1", usual: Rule{RetryAfter: time.Second},
		problem: func(w wire, model string) problem {
			return limited(w, &over{"requests", time.Second, "on requests per min (RPM): Limit 3, Used 3, Requested 1"}, model)
		},
	},
	{
		Name: "overloaded", About: "503, or Anthropic's 529 overloaded_error",
		problem: either(
			problem{status: 503, typ: "server_error", message: "The engine is currently overloaded, please try again later."},
			problem{status: 529, typ: "overloaded_error", message: "Overloaded"}),
	},
	{
		Name: "server-error", About: "500 with an error object",
		problem: either(
			problem{status: 500, typ: "server_error", message: "The server had an error while processing your request."},
			problem{status: 500, typ: "api_error", message: "Internal server error"}),
	},
	{Name: "bad-gateway", About: "502 with a page of HTML", problem: page(http.StatusBadGateway)},
	// Refusals that do not.
	{Name: "unauthorized", About: "401: the key is wrong", problem: func(w wire, _ string) problem { return badKey(w) }},
	{
		Name: "context", About: "400: the prompt is longer than the context window",
		problem: either(
			problem{
				status: 400, typ: "invalid_request_error", code: "context_length_exceeded", param: "messages",
				message: "This model's maximum context length is 128000 tokens. However, your messages resulted in 128017 tokens. Please reduce the length of the messages.",
			},
			problem{status: 400, typ: "invalid_request_error", message: "prompt is too long: 200017 tokens > 200000 maximum"}),
	},
	// Connections.
	{Name: "stall", About: "nothing for 30 s, then the reply", Charged: true, manner: stallFirst, usual: Rule{Wait: 30 * time.Second}},
	{Name: "stall-mid", About: "half the reply, nothing for 30 s, the rest", Charged: true, manner: stallMid, usual: Rule{Wait: 30 * time.Second}},
	{Name: "reset", About: "the connection is reset before a byte", manner: resetFirst},
	{Name: "reset-mid", About: "half the reply, then the connection is reset", manner: resetMid},
	{Name: "drop", About: "half the reply, then the connection is closed", manner: drop},
	{Name: "cut", About: "half the reply, then a good end (plain: closed)", manner: cut},
	// Answers that are none.
	{Name: "bad-json", About: "200, and JSON that breaks off within", manner: badJSON},
	{Name: "error-event", About: "half a stream, then an error event (plain: an error in place of the reply)", manner: errorEvent},
}

func same(p problem) func(wire, string) problem {
	return func(wire, string) problem { return p }
}

func either(o, a problem) func(wire, string) problem {
	return func(w wire, _ string) problem {
		if w == (anthropic{}) {
			return a
		}
		return o
	}
}

// page is what a proxy says for a server.
func page(status int) func(wire, string) problem {
	return same(problem{status: status, body: htmlOf(http.StatusText(status)), contentType: "text/html"})
}

func htmlOf(title string) string {
	return "<!DOCTYPE html>\n<html>\n<head><title>" + title + "</title></head>\n<body>\n<center><h1>" + title + "</h1></center>\n</body>\n</html>\n"
}
