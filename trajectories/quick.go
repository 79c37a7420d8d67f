package trajectories

import (
	"bytes"
	"encoding/json"

	"github.com/minibench/mini/model"
)

// unmarshal reads the data of a message. Most of a journal's bytes are the texts
// of messages, and encoding/json goes through each of them several times.
func (m *Message) unmarshal(data []byte) error {
	var quick Message
	if quick.quick(data) {
		*m = quick
		return nil
	}
	return json.Unmarshal(data, m)
}

// quick reads a message as a Journal writes it; false leaves it to encoding/json.
func (m *Message) quick(data []byte) bool {
	return eachMember(data, func(key, value []byte) bool {
		var ok bool
		switch string(key) {
		case "role":
			m.Role, ok = quoted[model.Role](value)
		case "content":
			m.Content, ok = quoted[string](value)
		case "reasoning_content":
			m.Reasoning, ok = quoted[string](value)
		case "tool_call_id":
			m.CallID, ok = quoted[string](value)
		case "cause":
			m.Cause, ok = quoted[Cause](value)
		case "tool_calls":
			m.Calls, ok = list(value, toolCall)
		case "actions":
			m.Actions, ok = list(value, quoted[string])
		case "images":
			ok = json.Unmarshal(value, &m.Images) == nil
		case "kept":
			m.Kept = bytes.Clone(value)
			ok = json.Valid(value)
		default:
			return false
		}
		return ok
	})
}

// toolCall reads a call in OpenAI's form, as a Journal writes it.
func toolCall(data []byte) (c model.Call, ok bool) {
	ok = eachMember(data, func(key, value []byte) (ok bool) {
		switch string(key) {
		case "id":
			c.ID, ok = quoted[string](value)
		case "type":
			_, ok = quoted[string](value)
		case "function":
			ok = eachMember(value, func(key, value []byte) (ok bool) {
				switch string(key) {
				case "name":
					c.Name, ok = quoted[string](value)
				case "arguments":
					c.Arguments, ok = quoted[string](value)
				}
				return ok
			})
		}
		return ok
	})
	return c, ok
}

// unmarshal reads the data of a call. There is one for every reply.
func (c *Call) unmarshal(data []byte) error {
	var quick Call
	if quick.quick(data) {
		*c = quick
		return nil
	}
	return json.Unmarshal(data, c)
}

// quick reads a call of which nothing is out of the ordinary; false leaves it to
// encoding/json.
func (c *Call) quick(data []byte) bool {
	return eachMember(data, func(key, value []byte) (ok bool) {
		switch string(key) {
		case "usage":
			ok = quickUsage(&c.Usage, value)
		case "cost":
			c.Cost, ok = number[model.Cost](value)
		case "finish_reason":
			c.Finish, ok = quoted[model.Finish](value)
		case "model":
			c.Model, ok = quoted[string](value)
		case "start":
			ok = c.Start.UnmarshalJSON(value) == nil
		case "duration":
			ok = quickSeconds(&c.Duration, value)
		case "waited":
			ok = quickSeconds(&c.Waited, value)
		case "tries":
			c.Tries, ok = whole[int](value)
		case "raw":
			c.Raw = bytes.Clone(value)
			ok = json.Valid(value)
		case "tree":
			c.Tree, ok = quoted[string](value)
		}
		return ok
	})
}

func quickUsage(u *model.Usage, data []byte) bool {
	return eachMember(data, func(key, value []byte) (ok bool) {
		switch string(key) {
		case "prompt_tokens":
			u.Prompt, ok = whole[int64](value)
		case "completion_tokens":
			u.Completion, ok = whole[int64](value)
		case "cached_tokens":
			u.CacheRead, ok = whole[int64](value)
		case "cache_write_tokens":
			u.CacheWrite, ok = whole[int64](value)
		case "reasoning_tokens":
			u.Reasoning, ok = whole[int64](value)
		}
		return ok
	})
}

func quickSeconds(s *Seconds, data []byte) bool {
	n, ok := number[float64](data)
	*s = secondsOf(n)
	return ok
}

// Lean is the data of a call without what its provider said word by word, which
// is the bulk of it.
func Lean(call json.RawMessage) json.RawMessage {
	lean := make([]byte, 1, 512)
	lean[0] = '{'
	ok := eachMember(call, func(key, value []byte) bool {
		if string(key) == "raw" {
			return true
		}
		if len(lean) > 1 {
			lean = append(lean, ',')
		}
		lean = append(append(append(append(lean, '"'), key...), '"', ':'), value...)
		return true
	})
	if !ok {
		return call
	}
	return append(lean, '}')
}
