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

// DefaultRegex matches fenced blocks marked bash, or mswea_bash_command as in
// mini-swe-agent's prompts.
const DefaultRegex = "```(?:bash|mswea_bash_command)[ \\t\\r]*\\n(.*?)\\n```"

// textProtocol takes exactly one command from the text of a reply.
type textProtocol struct{ re *regexp.Regexp }

var defaultText = sync.OnceValue(func() textProtocol { return textProtocol{regexp.MustCompile("(?s)" + DefaultRegex)} })

// NewText returns the text protocol. The pattern's only group matches the
// command; an empty pattern means DefaultRegex.
func NewText(pattern string) (Protocol, error) {
	if pattern == "" {
		return defaultText(), nil
	}
	re, err := regexp.Compile("(?s)" + pattern)
	if err != nil {
		return nil, errors.Unwrap(fmt.Errorf("%w", err))
	}
	if re.NumSubexp() != 1 {
		return nil, fmt.Errorf("the pattern has %d groups; it needs exactly one, for the command", re.NumSubexp())
	}
	return textProtocol{re}, nil
}

// Tools implements Protocol.
func (textProtocol) Tools() []model.ToolDefinition { return nil }

// Parse implements Protocol.
func (p textProtocol) Parse(reply model.Reply, _ int) ParsedReply {
	parsed := ParsedReply{Message: dropCalls(reply.Message)}
	for _, m := range p.re.FindAllStringSubmatch(reply.Message.Content, -1) {
		parsed.Actions = append(parsed.Actions, Action{Command: normalizeNewlines(m[1])})
	}
	if len(parsed.Actions) != 1 {
		parsed.Truncated = reply.FinishReason == model.FinishLength
		parsed.Problem = countProblem(len(parsed.Actions), parsed.Truncated)
		parsed.Incomplete = len(parsed.Actions) == 0 && p.startsCommand(reply.Message.Content)
	}
	return parsed
}

// defaultStart matches the start of a block of the default pattern.
var defaultStart = lazyregexp.New("```(?:bash|mswea_bash_command)\\b")

// startsCommand reports whether a text without a command contains the start of
// one. For a custom pattern, the start is its literal prefix.
func (p textProtocol) startsCommand(content string) bool {
	if p == defaultText() {
		return defaultStart.MatchString(content)
	}
	prefix, _ := p.re.LiteralPrefix()
	return prefix != "" && prefix != "```" && strings.Contains(content, prefix) // a bare fence also starts other blocks
}

// ResultMessage implements Protocol.
func (textProtocol) ResultMessage(_ Action, text string) model.Message {
	return model.Message{Role: model.User, Content: text}
}

// FormatReply implements Protocol. Several commands become the lines of one
// block.
func (textProtocol) FormatReply(thought string, commands ...string) model.Message {
	return formatText(thought, "```bash\n"+strings.Join(commands, "\n")+"\n```")
}

func formatText(thought, block string) model.Message {
	if thought != "" {
		block = thought + "\n\n" + block
	}
	return model.Message{Role: model.Assistant, Content: block}
}

// normalizeNewlines removes the CR at the end of a command and converts the CRLF
// line ends in the command to LF. It changes only a command that ends with a CR,
// as every command in a reply with CRLF line ends does.
func normalizeNewlines(command string) string {
	trimmed, ok := strings.CutSuffix(command, "\r")
	if !ok {
		return command
	}
	return strings.ReplaceAll(trimmed, "\r\n", "\n")
}
