package fake

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"
)

// problem is an error response of either API.
type problem struct {
	status      int
	typ         string
	code, param string // OpenAI only
	message     string
	// body replaces the error object; contentType defaults to JSON.
	body, contentType string
	retryAfter        time.Duration
}

// setRetry sets Retry-After in seconds, rounded up.
func (p problem) setRetry(h http.Header) {
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64(math.Ceil(p.retryAfter.Seconds())), 10))
	}
}

func invalid(message string) *problem { return invalidParam("", message) }

func invalidParam(param, message string) *problem {
	return &problem{status: http.StatusBadRequest, typ: "invalid_request_error", param: param, message: message}
}

func badKey(w wireFormat) problem {
	p := problem{status: http.StatusUnauthorized, typ: "invalid_request_error", code: "invalid_api_key", message: "Incorrect API key provided."}
	if w == (anthropic{}) {
		p.typ, p.message = "authentication_error", "invalid x-api-key"
	}
	return p
}

func noModel(w wireFormat, name string) problem {
	if w == (anthropic{}) {
		return problem{status: http.StatusNotFound, typ: "not_found_error", message: "model: " + name}
	}
	return problem{
		status: http.StatusNotFound, typ: "invalid_request_error", code: "model_not_found",
		message: fmt.Sprintf("The model `%s` does not exist or you do not have access to it.", name),
	}
}
