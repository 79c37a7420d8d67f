package protocol

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/model"
)

// textProtocol takes exactly one command from the text of a reply: a fenced block that is
// marked bash, or mswea_bash_command as in mini-swe-agent's prompts.
type textProtocol struct {
	re *regexp.Regexp // a pattern of the user's; nil for the blocks
}

// NewText returns the text protocol. If pattern is not empty, its only group matches the
// command in place of a block.
func NewText(pattern string) (Protocol, error) {
	if pattern == "" {
		return textProtocol{}, nil
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
	actions := func(text string) []Action { return p.actions(text, reply.FinishReason == model.FinishLength) }
	text := withoutThinking(reply.Message.Content, actions)
	return oneAction(reply, actions(text), p.startsCommand(text))
}

// actions returns the commands in a text. cut reports that the token limit cut it off.
func (p textProtocol) actions(text string, cut bool) []Action {
	var actions []Action
	if p.re == nil {
		for _, b := range findBlocks(text) {
			actions = append(actions, b.action(cut))
		}
		return actions
	}
	for _, m := range p.re.FindAllStringSubmatchIndex(text, maxCandidates) {
		actions = append(actions, matchedAction(text, m, cut))
	}
	return actions
}

// oneAction returns the result of parsing a reply that must have exactly one command.
// starts reports that the reply contains the start of a command.
func oneAction(reply model.Reply, actions []Action, starts bool) ParsedReply {
	parsed := ParsedReply{Message: dropCalls(reply.Message), Actions: actions}
	if len(actions) == 1 && actions[0].Problem == "" {
		return parsed
	}
	parsed.Truncated = reply.FinishReason == model.FinishLength
	parsed.Incomplete = len(actions) == 0 && starts
	if parsed.Problem = countProblem(len(actions), parsed.Truncated); len(actions) == 1 && !parsed.Truncated {
		parsed.Problem = actions[0].Problem
	}
	return parsed
}

// block is a fenced block with a command.
type block struct {
	fence string // the opening fence
	text  string // from the line after the fence on, to the end of the reply
	ends  []int  // the offsets in text where the command may end
	end   int    // the offset in text where it ends
	wrong string // what is wrong with the command, worded for the model
}

// openingFence matches the first line of a block.
var openingFence = lazyregexp.New("(`{3,}|~{3,})(?:bash|mswea_bash_command)[ \\t\\r]*\\n")

// findBlocks returns the blocks with commands. A block ends with the fence that opened it,
// or a longer one, so that a longer fence can enclose a block. Lines with fences that
// stand in a here-document or in quotes belong to the command.
func findBlocks(text string) []block {
	var blocks []block
	for range maxCandidates {
		m := openingFence.FindStringSubmatchIndex(text)
		if m == nil {
			break
		}
		if end := enclosedUntil(text, m[0]); end > 0 {
			text = text[end:]
			continue
		}
		b := block{fence: text[m[2]:m[3]], text: text[m[1]:]}
		text = b.text
		closers := closingFences(b.text, b.fence)
		if len(closers) == 0 {
			continue
		}
		if closers[0] == 0 { // nothing is in the block
			text = text[len(b.fence):]
			continue
		}
		for _, c := range closers {
			b.ends = append(b.ends, c-1) // before the line break
		}
		b.end, b.wrong = commandEnd(b.text, b.ends, b.fence)
		text = b.text[b.end+1:]
		text = strings.TrimLeft(text, b.fence[:1])
		blocks = append(blocks, b)
	}
	return blocks
}

// enclosedUntil returns the end of a block of another kind around the offset at, such as an example in the answer; 0 if
// there is none. The fence of such a block is longer than usual or of tildes, and it is closed: models forget to close
// ordinary ones.
func enclosedUntil(text string, at int) int {
	fence, offset := "", 0
	for line := range strings.Lines(text) {
		next := offset + len(line)
		switch m := fenceLine.FindStringSubmatch(line); {
		case fence != "" && isClosing(strings.TrimLeft(line, " "), fence):
			if offset > at {
				return next
			}
			fence = ""
		case fence == "" && next > at:
			return 0
		case fence == "" && m != nil && (len(m[1]) > 3 || m[1][0] == '~'):
			fence = m[1]
		}
		offset = next
	}
	return 0
}

// closingFences returns the offsets of the lines that may close a block: they start with
// the fence, and no name of a language follows it, as after the fence of an inner block.
func closingFences(text, fence string) []int {
	var found []int
	offset := 0
	for line := range strings.Lines(text) {
		if isClosing(line, fence) {
			found = append(found, offset)
		}
		if offset += len(line); len(found) == maxCandidates {
			break
		}
	}
	return found
}

func isClosing(line, fence string) bool {
	if !strings.HasPrefix(line, fence) {
		return false
	}
	rest := strings.TrimLeft(line, fence[:1])
	return rest == "" || !isWordByte(rest[0])
}

func isWordByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// action returns the command of a block, or its problem.
func (b block) action(cut bool) Action {
	if b.wrong != "" && (len(b.ends) > 1 || cut || strings.TrimSpace(strings.TrimLeft(b.text[b.end+1:], b.fence[:1])) != "" ||
		strings.Contains("\n"+b.text[:b.end], "\n"+b.fence)) {
		return Action{Problem: b.wrong + "; if lines of the command start with " + b.fence + ", use a longer fence around it"}
	}
	return Action{Command: normalizeNewlines(b.text[:b.end])}
}

// matchedAction returns the command that a user's pattern matches at m, or the problem of
// a command that does not end where the match does.
func matchedAction(text string, m []int, cut bool) Action {
	command := text[m[2]:m[3]]
	if strings.ContainsAny(text[m[3]:m[1]], "`~") && endsInFence(text, m[0], m[1]) {
		return Action{Problem: "your command contains the fence that ends it; write it without this fence"}
	}
	if wrong := incompleteness(command); wrong != "" && (cut || strings.TrimSpace(text[m[1]:]) != "") {
		return Action{Problem: wrong}
	}
	return Action{Command: normalizeNewlines(command)}
}

// fenceLine matches a line that opens a fenced block.
var fenceLine = lazyregexp.New("^ {0,3}(`{3,}|~{3,})")

// endsInFence reports whether a match from start to end ends in a fenced block that is
// open there and was opened in the line where the match starts, or later.
func endsInFence(text string, start, end int) bool {
	fence, opened, offset := "", 0, 0
	for line := range strings.Lines(text) {
		if offset >= end {
			break
		}
		trimmed := strings.TrimLeft(line, " ")
		if fence != "" && isClosing(trimmed, fence) {
			fence = ""
		} else if m := fenceLine.FindStringSubmatch(line); fence == "" && m != nil {
			fence, opened = m[1], offset+len(line)
		}
		offset += len(line)
	}
	return fence != "" && opened > start
}

// startOfBlock matches the start of a block, which may not be complete.
var startOfBlock = lazyregexp.New("(`{3,}|~{3,})(?:bash|mswea_bash_command)\\b")

// startsCommand reports whether a text without a command contains the start of
// one. For a custom pattern, the start is its literal prefix.
func (p textProtocol) startsCommand(content string) bool {
	if p.re == nil {
		for range maxCandidates {
			m := startOfBlock.FindStringIndex(content)
			if m == nil {
				return false
			}
			end := enclosedUntil(content, m[0])
			if end == 0 {
				return true
			}
			content = content[end:]
		}
		return true
	}
	prefix, _ := p.re.LiteralPrefix()
	return prefix != "" && prefix != "```" && strings.Contains(content, prefix) // a bare fence also starts other blocks
}

// withoutBlocks returns a reply's text without the blocks with commands.
func withoutBlocks(text string) string {
	for _, b := range findBlocks(text) {
		before := strings.TrimSuffix(text, b.text)
		before = before[:strings.LastIndex(before, b.fence)]
		text = before + strings.TrimLeft(b.text[b.end+1:], b.fence[:1])
	}
	return strings.TrimSpace(text)
}

// ResultMessage implements Protocol.
func (textProtocol) ResultMessage(_ Action, text string) model.Message {
	return model.Message{Role: model.User, Content: text}
}

// FormatReply implements Protocol. Several commands become the lines of one
// block, whose fence is longer than those in the commands.
func (textProtocol) FormatReply(thought string, commands ...string) model.Message {
	command := strings.Join(commands, "\n")
	fence := "```"
	for strings.Contains("\n"+command, "\n"+fence) {
		fence += "`"
	}
	return formatText(thought, fence+"bash\n"+command+"\n"+fence)
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
