package anthropic

import (
	"encoding/json"

	"github.com/minibench/mini/model"
)

// What fuzzing needs without a network, whose goroutines look like new code.
var (
	Receive    = receive
	ParseReply = parseReply
)

// Body is that of a request.
func (m *Model) Body(messages []model.Message) ([]byte, error) {
	request, err := m.request(messages)
	if err != nil {
		return nil, err
	}
	return json.Marshal(request)
}
