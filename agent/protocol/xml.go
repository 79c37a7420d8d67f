package protocol

import (
	"fmt"
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/model"
)

// DefaultTag is the name of the tag around a command.
const DefaultTag = "bash"

// xml takes the command from between two tags; exactly one. It is no XML
// beyond that: what stands between them is the command as it is, since shell
// commands are full of < and &.
type xml struct{ begin, end string }

var tagName = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_.-]{0,63}$`)

// NewXML is the protocol of commands between tags; an empty name is DefaultTag.
func NewXML(tag string) (Protocol, error) {
	if tag == "" {
		tag = DefaultTag
	}
	if !tagName.MatchString(tag) {
		return nil, fmt.Errorf("%.80q is no name of a tag: a letter, then letters, digits, and any of _.-, 64 in all", tag)
	}
	return xml{"<" + tag + ">", "</" + tag + ">"}, nil
}

// Tools implements Protocol.
func (xml) Tools() []model.Definition { return nil }

// Read implements Protocol. A tag that is opened twice before it is closed is
// refused: of the ways to read that, the wrong one runs what nobody meant.
func (p xml) Read(reply model.Reply, _ int) Reading {
	r := Reading{Message: withoutCalls(reply.Message)}
	nested := false
	for rest := reply.Message.Content; ; {
		_, after, opened := strings.Cut(rest, p.begin)
		command, next, closed := strings.Cut(after, p.end)
		if !opened || !closed {
			break
		}
		nested = nested || strings.Contains(command, p.begin)
		r.Actions = append(r.Actions, Action{Command: unixLines(inner(command))})
		rest = next
	}
	if len(r.Actions) != 1 {
		r.Cut = reply.Finish == model.FinishLength
		r.Wrong = wrongCount(len(r.Actions), r.Cut)
		r.Torn = len(r.Actions) == 0 && strings.Contains(reply.Message.Content, p.begin)
	} else if nested {
		r.Wrong = p.begin + " stands in your reply twice before " + p.end + ", so that it is not clear what to run"
	}
	return r
}

// inner is what stands between the tags without the line ends beside them.
func inner(command string) string {
	if rest, ok := strings.CutPrefix(command, "\r\n"); ok {
		command = rest
	} else {
		command = strings.TrimPrefix(command, "\n")
	}
	return strings.TrimSuffix(command, "\n")
}

// Answer implements Protocol.
func (xml) Answer(_ Action, text string) model.Message {
	return model.Message{Role: model.User, Content: text}
}

// Write implements Protocol. Several commands become lines of one.
func (p xml) Write(thought string, commands ...string) model.Message {
	return written(thought, p.begin+"\n"+strings.Join(commands, "\n")+"\n"+p.end)
}
