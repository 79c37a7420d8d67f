package agent

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// DefaultActionRegex finds fenced blocks marked bash (or mswea_bash_command,
// the mark that mini-swe-agent's prompts ask for).
const DefaultActionRegex = "```(?:bash|mswea_bash_command)[ \\t\\r]*\\n(.*?)\\n```"

// actionParser finds the commands in a reply.
type actionParser struct{ re *regexp.Regexp }

func newActionParser(pattern string) (actionParser, error) {
	if pattern == "" {
		pattern = DefaultActionRegex
	}
	re, err := regexp.Compile("(?s)" + pattern)
	if err != nil {
		return actionParser{}, errors.Unwrap(fmt.Errorf("%w", err))
	}
	if re.NumSubexp() != 1 {
		return actionParser{}, fmt.Errorf("the pattern has %d groups; it needs exactly one, which is the command", re.NumSubexp())
	}
	return actionParser{re}, nil
}

// parse returns every command of a reply, in order.
func (p actionParser) parse(reply string) []string {
	var commands []string
	for _, m := range p.re.FindAllStringSubmatch(reply, -1) {
		commands = append(commands, unixLines(m[1]))
	}
	return commands
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
