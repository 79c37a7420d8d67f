package fake

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/model"
)

// Fault is a way in which a provider fails.
type Fault struct {
	Name string `json:"name"`
	// About says what a client sees.
	About string `json:"about"`
	// Charged says that the reply is paid for, if it is sent to its end.
	Charged bool `json:"charged"`

	problem func(w wire, s situation) problem // instead of a reply
	alter   func(m *message)                  // what is wrong with the reply
	manner  manner                            // what is wrong with its sending
	usual   Rule                              // what zero values of a rule mean
}

// situation is what a problem may quote.
type situation struct{ model, key string }

// manner is how an answer is sent.
type manner int

const (
	whole manner = iota
	stallFirst
	stallMid
	slow
	resetFirst
	resetMid
	drop
	cut
	badJSON
	htmlPage
	nothing
	errorBody
	errorEvent
	huge
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
		Name: "rate-limit", About: "429, with Retry-After: 1", usual: Rule{RetryAfter: Duration(time.Second)},
		problem: func(w wire, s situation) problem {
			return limited(w, &over{"requests", time.Second, "on requests per min (RPM): Limit 3, Used 3, Requested 1"}, s.model)
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
	{
		Name: "unavailable", About: "503 with a line of text",
		problem: same(problem{status: 503, body: "upstream connect error or disconnect/reset before headers\n", contentType: "text/plain"}),
	},
	{Name: "gateway-timeout", About: "504 with a page of HTML", problem: page(http.StatusGatewayTimeout)},
	{
		Name: "request-timeout", About: "408 with an error object",
		problem: same(problem{status: 408, typ: "timeout", anthropicType: "timeout_error", message: "Request timed out."}),
	},
	// Refusals that do not.
	{
		Name: "bad-request", About: "400 with an error object",
		problem: same(problem{status: 400, typ: "invalid_request_error", param: "messages", message: "Invalid value for 'messages'."}),
	},
	{Name: "unauthorized", About: "401: the key is wrong", problem: func(w wire, _ situation) problem { return badKey(w) }},
	{
		Name: "key-echo", About: "401 that says the key again, as some proxies do",
		problem: func(_ wire, s situation) problem {
			return problem{status: 401, typ: "authentication_error", code: "invalid_api_key", message: "Incorrect API key provided: " + s.key}
		},
	},
	{
		Name: "no-credit", About: "429 insufficient_quota, or Anthropic's 400",
		problem: either(
			problem{status: 429, typ: "insufficient_quota", code: "insufficient_quota", message: "You exceeded your current quota, please check your plan and billing details."},
			problem{status: 400, typ: "invalid_request_error", message: "Your credit balance is too low to access the Anthropic API."}),
	},
	{
		Name: "forbidden", About: "403: the key has no right to it",
		problem: either(
			problem{status: 403, typ: "invalid_request_error", code: "unsupported_country_region_territory", message: "Country, region, or territory not supported"},
			problem{status: 403, typ: "permission_error", message: "Your API key does not have permission to use the specified resource."}),
	},
	{Name: "not-found", About: "404: there is no such model", problem: func(w wire, s situation) problem { return noModel(w, s.model) }},
	{
		Name: "too-large", About: "413 with an error object",
		problem: same(problem{status: 413, typ: "invalid_request_error", anthropicType: "request_too_large", message: "Request exceeds the maximum size"}),
	},
	{
		Name: "context", About: "400: the prompt is longer than the context window",
		problem: either(
			problem{
				status: 400, typ: "invalid_request_error", code: "context_length_exceeded", param: "messages",
				message: "This model's maximum context length is 128000 tokens. However, your messages resulted in 128017 tokens. Please reduce the length of the messages.",
			},
			problem{status: 400, typ: "invalid_request_error", message: "prompt is too long: 200017 tokens > 200000 maximum"}),
	},
	{
		Name: "refused-request", About: "400: a content filter stopped the prompt",
		problem: either(
			problem{status: 400, body: `{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",` +
				`"type":null,"param":"prompt","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation",` +
				`"content_filter_result":{"violence":{"filtered":true,"severity":"high"}}}}}`},
			problem{status: 400, typ: "invalid_request_error", message: "Output blocked by content filtering policy"}),
	},
	{Name: "status", About: "the rule's status and body", problem: same(problem{})},
	// Connections.
	{Name: "stall", About: "nothing for 30 s (wait), then the reply", Charged: true, manner: stallFirst, usual: Rule{Wait: Duration(30 * time.Second)}},
	{Name: "stall-mid", About: "half the reply, nothing for 30 s (wait), the rest", Charged: true, manner: stallMid, usual: Rule{Wait: Duration(30 * time.Second)}},
	{Name: "slow", About: "0.2 s (wait) between the pieces of the reply", Charged: true, manner: slow, usual: Rule{Wait: Duration(200 * time.Millisecond)}},
	{Name: "reset", About: "the connection is reset before a byte", manner: resetFirst},
	{Name: "reset-mid", About: "half the reply, then the connection is reset", manner: resetMid},
	{Name: "drop", About: "half the reply, then the connection is closed", manner: drop},
	{Name: "cut", About: "half the reply, then a good end (plain: closed)", manner: cut},
	// Answers that are none.
	{Name: "bad-json", About: "200, and JSON that breaks off within", manner: badJSON},
	{Name: "html", About: "200 with a page of HTML", manner: htmlPage},
	{Name: "empty-body", About: "200 with nothing", manner: nothing},
	{Name: "error-body", About: "200 with an error object in place of the reply", manner: errorBody},
	{Name: "error-event", About: "half a stream, then an error event (plain: error-body)", manner: errorEvent},
	{Name: "empty-choices", About: "a reply without choices, or content blocks", alter: func(m *message) { m.empty = true }},
	{Name: "no-finish", About: "a reply without finish_reason, or stop_reason", alter: func(m *message) { m.finish = "" }},
	{Name: "huge", About: "a reply of 100 MB (size)", Charged: true, manner: huge, usual: Rule{Size: 100 << 20}},
	// Replies that are not what one hopes for.
	{Name: "length", About: "half a reply, cut by the token limit", Charged: true, alter: cutByLimit},
	{Name: "context-finish", About: "the window was full (Anthropic; else as length)", Charged: true, alter: fullWindow},
	{Name: "refused", About: "finish_reason content_filter, stop_reason refusal", Charged: true, alter: refuse},
	{Name: "refused-text", About: "OpenAI's refusal in place of content", Charged: true, alter: refuseInWords},
	{Name: "tool-unknown", About: "a call of a tool that there is not", Charged: true, alter: eachCall(func(c *toolCall) { c.name = "browser" })},
	{Name: "tool-bad-json", About: "a call whose arguments are no JSON", Charged: true, alter: eachCall(func(c *toolCall) { c.arguments = strings.TrimSuffix(c.arguments, "}") })},
	{Name: "tool-no-command", About: "a call without a command", Charged: true, alter: eachCall(func(c *toolCall) { c.arguments = "{}" })},
	// Usage that is wrong: the books have the right one.
	{Name: "usage-absent", About: "a reply without usage", Charged: true, alter: func(m *message) { m.usage = nil }},
	{Name: "usage-zero", About: "a usage of no tokens", Charged: true, alter: func(m *message) { m.usage = &model.Usage{} }},
	{Name: "usage-negative", About: "a usage below zero", Charged: true, alter: func(m *message) { m.usage = &model.Usage{Prompt: -100, Completion: -20} }},
	{Name: "usage-huge", About: "a usage of 10^15 tokens", Charged: true, alter: func(m *message) { m.usage = &model.Usage{Prompt: 1e15, Completion: 1e15} }},
}

func same(p problem) func(wire, situation) problem {
	return func(wire, situation) problem { return p }
}

func either(o, a problem) func(wire, situation) problem {
	return func(w wire, _ situation) problem {
		if w == (anthropic{}) {
			return a
		}
		return o
	}
}

// page is what a proxy says for a server.
func page(status int) func(wire, situation) problem {
	return same(problem{status: status, body: htmlOf(http.StatusText(status)), contentType: "text/html"})
}

func htmlOf(title string) string {
	return "<!DOCTYPE html>\n<html>\n<head><title>" + title + "</title></head>\n<body>\n<center><h1>" + title + "</h1></center>\n</body>\n</html>\n"
}

func cutByLimit(m *message) {
	m.finish = model.FinishLength
	half := []rune(m.text)
	m.text = string(half[:len(half)/2])
	if len(m.calls) > 0 {
		last := &m.calls[len(m.calls)-1]
		last.arguments = last.arguments[:len(last.arguments)/2]
	}
}

func fullWindow(m *message) {
	cutByLimit(m)
	m.full = true
}

func refuse(m *message) {
	m.text, m.calls, m.finish = "", nil, model.FinishFilter
}

func refuseInWords(m *message) {
	m.text, m.calls, m.finish, m.refusal = "", nil, model.FinishStop, "I'm sorry, but I can't help with that."
}

func eachCall(change func(*toolCall)) func(*message) {
	return func(m *message) {
		for i := range m.calls {
			change(&m.calls[i])
		}
	}
}
