package export

import (
	"fmt"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// turn is a message with marks for its export.
type turn struct {
	model.Message
	record   int    // record ID; 0 if the message is not in the journal
	toolName string // of a tool message: the name of the tool that was called
	isReply  bool   // the model wrote the message; false for examples of replies in the prompt
	trained  bool   // trainers train on this reply
	omitted  bool   // rows do not contain the message, because of a format error or a rejection
}

// SkipReason is an error that explains why an attempt cannot be written in a format.
type SkipReason string

// Error implements error.
func (r SkipReason) Error() string { return string(r) }

func skipf(format string, args ...any) error { return SkipReason(fmt.Sprintf(format, args...)) }

// markedTurns returns the messages of an attempt, marked according to the options.
func markedTurns(t *trajectories.Attempt, o Options) []turn {
	turns := make([]turn, len(t.Entries))
	var calls []model.ToolCall // of the newest assistant message
	for start := 0; start < len(t.Entries); {
		end := start + 1
		for end < len(t.Entries) && t.Entries[end].Cause != trajectories.CauseReply {
			end++
		}
		for i := start; i < end; i++ {
			e := &t.Entries[i]
			turns[i] = turn{Message: e.Message.Message, record: e.Record}
			turns[i].Reasoning, turns[i].Content = splitReasoning(e.Message.Message, o.Reasoning)
			if e.Role == model.Assistant {
				calls = e.ToolCalls
			}
			if e.Role == model.Tool {
				turns[i].toolName = calledTool(calls, e.ToolCallID)
			}
		}
		if t.Entries[start].Cause == trajectories.CauseReply {
			last := end == len(t.Entries)
			markReply(turns[start:end], t.Entries[start:end], last && endsWithFormatError(t.Outcome), o.FormatErrors)
			// Inherited replies are exported as part of the original attempt.
			turns[start].trained = turns[start].trained && !t.Header.IsInherited(turns[start].record)
		}
		start = end
	}
	return turns
}

// splitReasoning returns the reasoning and the text of a message as rows contain them.
func splitReasoning(m model.Message, mode Reasoning) (reasoning, content string) {
	switch {
	case m.Reasoning == "" || mode == ReasoningDrop:
		return "", m.Content
	case mode == ReasoningInline:
		return "", thinkBlock(m.Reasoning) + m.Content
	}
	return m.Reasoning, m.Content
}

// thinkBlock formats reasoning as part of a message's text. Models of Qwen and DeepSeek
// write this format, and LLaMA-Factory expects it.
func thinkBlock(reasoning string) string { return "<think>\n" + reasoning + "\n</think>\n\n" }

// endsWithFormatError reports whether a format error of the last reply ended the
// attempt, so that no message rejects the reply.
func endsWithFormatError(o *trajectories.Outcome) bool {
	return o != nil && o.ExitStatus == "RepeatedFormatError"
}

// markReply sets the marks of a reply and of the messages up to the next reply. turns[0]
// and entries[0] are the reply. formatError is set if the reply has a format error that
// no message reports.
func markReply(turns []turn, entries []trajectories.Entry, formatError bool, mode FormatErrors) {
	reply := &turns[0]
	reply.isReply, reply.trained = true, true
	executed, rejected := len(entries[0].Executions) > 0, formatError
	for i := 1; i < len(entries); i++ {
		switch entries[i].Cause {
		case trajectories.CauseObservation, trajectories.CauseMalformedPatch:
			executed = true
		case trajectories.CauseFormatError, trajectories.CauseRejection:
			rejected = true
		}
	}
	if !rejected || mode == FormatErrorsKeep {
		return
	}
	if executed { // the reply must stay, since later replies depend on the commands that ran
		for i, e := range entries {
			if e.Cause == trajectories.CauseFormatError {
				// The file of mini-swe-agent omits the reply that this message rejects.
				turns[i].omitted = mode == FormatErrorsDrop
			}
			if e.Cause == trajectories.CauseRejection {
				reply.trained = false
			}
		}
		return
	}
	reply.trained = false
	if mode == FormatErrorsDrop {
		for i := range turns {
			turns[i].omitted = true
		}
	}
}

// calledTool returns the name of the tool in the call with the given ID, or "".
func calledTool(calls []model.ToolCall, id string) string {
	for _, c := range calls {
		if c.ID == id {
			return c.Name
		}
	}
	return ""
}

// conversation returns the turns of an attempt for one row. It removes omitted turns and
// turns after the last trained reply, and joins adjacent user messages. It fails if there
// is no trained reply, or if checkRoles fails.
func conversation(turns []turn) ([]turn, error) {
	turns = withoutOmitted(turns, true)
	end := 0
	for i, t := range turns {
		if t.trained {
			end = i + 1
		}
	}
	turns = turns[:end]
	if len(turns) == 0 {
		return nil, SkipReason("no reply to train on")
	}
	return turns, checkRoles(turns)
}

// withoutOmitted removes omitted turns. If join is set, it joins adjacent user messages.
func withoutOmitted(turns []turn, join bool) []turn {
	var result []turn
	for _, t := range turns {
		n := len(result)
		switch {
		case t.omitted:
		case join && t.Role == model.User && n > 0 && result[n-1].Role == model.User:
			result[n-1].Message = trajectories.JoinMessages(result[n-1].Message, t.Message)
		default:
			result = append(result, t)
		}
	}
	return result
}

// checkRoles checks the order of roles: an optional system message, then user and
// assistant messages alternately, with tool messages after tool calls.
func checkRoles(turns []turn) error {
	if turns[0].Role == model.System {
		turns = turns[1:]
	}
	var previous *turn
	for i := range turns {
		t := &turns[i]
		switch {
		case t.Role == model.System:
			return skipf("a system message in the middle of the conversation")
		case i == 0 && t.Role != model.User:
			return skipf("the conversation starts with a message of the role %s", t.Role)
		case t.Role == model.Assistant && previous.Role == model.Assistant:
			return skipf("two replies in a row")
		case t.Role == model.Tool && t.toolName == "":
			return skipf("a tool result without a call")
		case t.Role != model.User && t.Role != model.Assistant && t.Role != model.Tool:
			return skipf("a message of unknown role %.40q", t.Role)
		case t.Role == model.Tool && previous.Role == model.User:
			return skipf("a tool result after a user message")
		}
		previous = t
	}
	return nil
}

// step is a trained reply with its prompt.
type step struct {
	number     int // of the reply in the conversation, from 1
	prompt     []turn
	completion []turn
}

// trainedSteps returns the trained replies of an attempt. A prompt has the messages that
// the call sent. With FormatErrorsDrop, rejected replies and the messages that reject
// them are removed from prompts too, and roles must alternate.
func trainedSteps(item *Item, o Options) ([]step, error) {
	turns := markedTurns(item.Attempt, o)
	records := make([]int, len(turns))
	for i, t := range turns {
		records[i] = t.record
	}
	var steps []step
	number := 0
	for i, t := range turns {
		if !t.isReply {
			continue
		}
		number++
		if !t.trained || t.omitted {
			continue
		}
		prompt := turns[:i]
		if c := item.Entries[i].Context; c != nil {
			prompt = nil
			indexes, messages := c.Resolve(records[:i])
			for _, n := range indexes {
				if n >= 0 {
					prompt = append(prompt, turns[n])
					continue
				}
				prompt, messages = append(prompt, turn{Message: messages[0]}), messages[1:]
			}
		}
		steps = append(steps, step{number, withoutOmitted(prompt, o.FormatErrors == FormatErrorsDrop), turns[i : i+1]})
	}
	if len(steps) == 0 {
		return nil, SkipReason("no reply to train on")
	}
	for _, s := range steps {
		if len(s.prompt) == 0 {
			return nil, SkipReason("a reply without a prompt")
		}
		if o.FormatErrors != FormatErrorsDrop {
			continue
		}
		if err := checkRoles(s.prompt); err != nil {
			return nil, err
		}
		if last := s.prompt[len(s.prompt)-1].Role; last != model.User && last != model.Tool {
			return nil, skipf("a reply after a message of the role %s", last)
		}
	}
	return steps, nil
}
