package protocol

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/model"
)

// DefaultRegex finds fenced blocks marked bash (or mswea_bash_command, the mark
// that mini-swe-agent's prompts ask for).
const DefaultRegex = "```(?:bash|mswea_bash_command)[ \\t\\r]*\\n(.*?)\\n```"

// text takes the command from the reply's text; exactly one.
type text struct{ re *regexp.Regexp }

var defaultText = sync.OnceValue(func() text { return text{regexp.MustCompile("(?s)" + DefaultRegex)} })

// NewText is the protocol of commands in the reply's text. The pattern's only
// group is the command; an empty pattern is DefaultRegex.
func NewText(pattern string) (Protocol, error) {
	if pattern == "" {
		return defaultText(), nil
	}
	re, err := regexp.Compile("(?s)" + pattern)
	if err != nil {
		return nil, errors.Unwrap(fmt.Errorf("%w", err))
	}
	if re.NumSubexp() != 1 {
		return nil, fmt.Errorf("the pattern has %d groups; it needs exactly one, which is the command", re.NumSubexp())
	}
	return text{re}, nil
}

// Tools implements Protocol.
func (text) Tools() []model.Definition { return nil }

// Read implements Protocol.
func (p text) Read(reply model.Reply, _ int) Reading {
	r := Reading{Message: withoutCalls(reply.Message)}
	for _, m := range p.re.FindAllStringSubmatch(reply.Message.Content, -1) {
		r.Actions = append(r.Actions, Action{Command: unixLines(m[1])})
	}
	if len(r.Actions) != 1 {
		r.Cut = reply.Finish == model.FinishLength
		r.Wrong = wrongCount(len(r.Actions), r.Cut)
		r.Torn = len(r.Actions) == 0 && p.begins(reply.Message.Content)
	}
	return r
}

// defaultMark is what blocks of the default pattern begin with.
var defaultMark = lazyregexp.New("```(?:bash|mswea_bash_command)\\b")

// begins says whether a text without a command has the beginning of one, as far
// as the pattern shows what that is.
func (p text) begins(content string) bool {
	if p == defaultText() {
		return defaultMark.MatchString(content)
	}
	mark, _ := p.re.LiteralPrefix()
	return mark != "" && mark != "```" && strings.Contains(content, mark) // other blocks have the fence, too
}

// Answer implements Protocol.
func (text) Answer(_ Action, text string) model.Message {
	return model.Message{Role: model.User, Content: text}
}

// Write implements Protocol. Several commands become the lines of one block.
func (text) Write(thought string, commands ...string) model.Message {
	return written(thought, "```bash\n"+strings.Join(commands, "\n")+"\n```")
}

func written(thought, block string) model.Message {
	if thought != "" {
		block = thought + "\n\n" + block
	}
	return model.Message{Role: model.Assistant, Content: block}
}

// unixLines undoes the line ends of a reply that arrived with CRLF throughout;
// a lone CR inside a command is the author's own and stays.
func unixLines(command string) string {
	trimmed, ok := strings.CutSuffix(command, "\r")
	if !ok {
		return command
	}
	return strings.ReplaceAll(trimmed, "\r\n", "\n")
}
