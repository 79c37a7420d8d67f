package protocol

import (
	"fmt"
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/model"
)

// DefaultTag is the default name of the tag around a command.
const DefaultTag = "bash"

// xmlProtocol takes exactly one command from a reply: the text between an
// opening and a closing tag. The text is not parsed as XML, because shell
// commands often contain < and &.
type xmlProtocol struct{ openTag, closeTag string }

var tagName = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_.-]{0,63}$`)

// NewXML returns the xml protocol with the given tag name; an empty name means
// DefaultTag.
func NewXML(tag string) (Protocol, error) {
	if tag == "" {
		tag = DefaultTag
	}
	if !tagName.MatchString(tag) {
		return nil, fmt.Errorf("%.80q is not a tag name: use a letter, then letters, digits or _.-, at most 64 characters", tag)
	}
	return xmlProtocol{"<" + tag + ">", "</" + tag + ">"}, nil
}

// Tools implements Protocol.
func (xmlProtocol) Tools() []model.ToolDefinition { return nil }

// Parse implements Protocol. It rejects a tag that is opened twice before it is
// closed, because the command would be ambiguous.
func (p xmlProtocol) Parse(reply model.Reply, _ int) ParsedReply {
	parsed := ParsedReply{Message: dropCalls(reply.Message)}
	nested := false
	for remaining := reply.Message.Content; ; {
		_, after, opened := strings.Cut(remaining, p.openTag)
		command, next, closed := strings.Cut(after, p.closeTag)
		if !opened || !closed {
			break
		}
		nested = nested || strings.Contains(command, p.openTag)
		parsed.Actions = append(parsed.Actions, Action{Command: normalizeNewlines(trimNewlines(command))})
		remaining = next
	}
	if len(parsed.Actions) != 1 {
		parsed.Truncated = reply.FinishReason == model.FinishLength
		parsed.Problem = countProblem(len(parsed.Actions), parsed.Truncated)
		parsed.Incomplete = len(parsed.Actions) == 0 && strings.Contains(reply.Message.Content, p.openTag)
	} else if nested {
		parsed.Problem = p.openTag + " stands in your reply twice before " + p.closeTag + ", so that it is not clear what to run"
	}
	return parsed
}

// trimNewlines removes \n or \r\n at the start, and \n at the end.
func trimNewlines(command string) string {
	if rest, ok := strings.CutPrefix(command, "\r\n"); ok {
		command = rest
	} else {
		command = strings.TrimPrefix(command, "\n")
	}
	return strings.TrimSuffix(command, "\n")
}

// ResultMessage implements Protocol.
func (xmlProtocol) ResultMessage(_ Action, text string) model.Message {
	return model.Message{Role: model.User, Content: text}
}

// FormatReply implements Protocol. Several commands become the lines of one
// command.
func (p xmlProtocol) FormatReply(thought string, commands ...string) model.Message {
	return formatText(thought, p.openTag+"\n"+strings.Join(commands, "\n")+"\n"+p.closeTag)
}
