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
// closed, because the command would be ambiguous. A closing tag that stands in a
// here-document or in quotes belongs to the command.
func (p xmlProtocol) Parse(reply model.Reply, _ int) ParsedReply {
	actions := func(text string) []Action { return p.actions(text, reply.FinishReason == model.FinishLength) }
	text := withoutThinking(reply.Message.Content, actions)
	return oneAction(reply, actions(text), strings.Contains(text, p.openTag))
}

// actions returns the commands in a text. cut reports that the token limit cut it off.
func (p xmlProtocol) actions(text string, cut bool) []Action {
	var actions []Action
	for range maxCandidates {
		_, after, opened := strings.Cut(text, p.openTag)
		if !opened {
			break
		}
		ends := indexes(after, p.closeTag)
		if len(ends) == 0 {
			break
		}
		end, wrong := commandEnd(after, ends, "")
		text = after[end+len(p.closeTag):]
		command := trimNewlines(after[:end])
		switch {
		case strings.Contains(command, p.openTag):
			wrong = p.openTag + " stands in your reply twice before " + p.closeTag + ", so that it is not clear what to run"
		case len(ends) == 1 && !cut && strings.TrimSpace(text) == "":
			wrong = "" // the command has no other part
		}
		if wrong != "" {
			actions = append(actions, Action{Problem: wrong})
		} else {
			actions = append(actions, Action{Command: normalizeNewlines(command)})
		}
	}
	return actions
}

// indexes returns the first offsets of a substring that is not empty.
func indexes(text, substring string) []int {
	var found []int
	for offset := 0; len(found) < maxCandidates; {
		i := strings.Index(text[offset:], substring)
		if i < 0 {
			break
		}
		found = append(found, offset+i)
		offset += i + len(substring)
	}
	return found
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
