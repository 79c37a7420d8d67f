package anthropic

import (
	"encoding/json"
	"io"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/transport"
)

// ParseReply and Receive are for fuzzing without a network: the goroutines of a
// network would look like new coverage.
var ParseReply = parseReply

// Receive assembles a stream.
func Receive(body io.Reader) (json.RawMessage, error) {
	raw, _, err := receive(transport.Events(body), nil)
	return raw, err
}

// Body returns the body of a request.
func (m *Model) Body(messages []model.Message) ([]byte, error) {
	request, err := m.request(messages)
	if err != nil {
		return nil, err
	}
	return json.Marshal(request)
}
