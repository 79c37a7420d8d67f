package fake

import (
	"bytes"
	"io"
	"net/http"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/fake/vllm"
)

// newTokenServer returns a server that answers chat completions with the replies of a script, as vLLM does. The value
// of the header X-Conversation is the instance.
func newTokenServer(c Config) *vllm.Server {
	return &vllm.Server{Reply: func(instance string, messages []model.Message) string {
		step := 0
		for _, m := range messages {
			if m.Role == model.Assistant {
				step++
			}
		}
		reply, _, err := c.Script.Reply(instance, step)
		if err != nil { // answerWithTokens has refused the request
			return err.Error()
		}
		return newMessage(reply, &request{}, 0).text
	}}
}

// answerWithTokens handles a request for a chat completion with Config.Tokens. It has neither faults nor cost.
func (s *Server) answerWithTokens(w http.ResponseWriter, r *http.Request) {
	var body bytes.Buffer
	read := r.Clone(r.Context())
	read.Body = io.NopCloser(io.TeeReader(r.Body, &body))
	x := s.startExchange(w, read, openAI{})
	defer x.end()
	req, p := x.read()
	if p == nil {
		_, _, p = x.findReply(req)
	}
	if p != nil {
		x.refuse(*p)
		return
	}
	read.Body = io.NopCloser(&body)
	read.Header.Set("X-Conversation", x.record.Instance)
	s.tokens.ServeHTTP(w, read)
	x.settle(Charged)
}
