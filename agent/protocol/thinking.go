package protocol

import (
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
)

// Tags around thinking, as the templates of many models have them.
const (
	thinkingName = `(?:\w+:)?(?:think|thinking|thoughts?|reasoning)`
	openTag      = `(?:(?i:<` + thinkingName + `\s*>|<\|start_thinking\|>|◁think▷)|\[THINK\])`
	closeTag     = `(?:(?i:</` + thinkingName + `\s*>|<\|end_thinking\|>|◁/think▷)|\[/THINK\])`
)

var (
	// thinkingStart matches thinking at the beginning of a reply, or after lines that
	// contain no fence and no tag but special tokens.
	thinkingStart = lazyregexp.New("^(?:(?:[^`~<]|<\\|)*\n)??\\s*" + openTag)
	thinkingOpen  = lazyregexp.New(openTag)
	thinkingEnd   = lazyregexp.New(closeTag)
	// closedThinking matches thinking whose opening tag is a part of the prompt, as in the
	// templates of some models: a closing tag that starts or ends a line, or follows a block.
	closedThinking = lazyregexp.New("(?m)(?:^|>|```|~~~)[ \\t]*" + closeTag + "|" + closeTag + `[ \t\r]*$`)
)

// WithoutThinking returns the text of a reply without the thinking that it begins with.
// Servers without a parser for the model's thinking send it as a part of the text.
func WithoutThinking(text string) string {
	return withoutThinking(text, func(string) []Action { return nil })
}

// withoutThinking is WithoutThinking for a text with commands, which may contain tags.
func withoutThinking(text string, commands func(text string) []Action) string {
	for {
		start, end := thinkingStart.FindStringIndex(text), thinkingEnd.FindStringIndex(text)
		switch {
		case end == nil && start == nil:
			return text
		case end == nil:
			return ""
		case start == nil:
			masked := text
			for _, a := range commands(text) {
				if a.Problem == "" && parse(a.Command) == nil {
					masked = strings.Replace(masked, a.Command, strings.Repeat(" ", len(a.Command)), 1)
				}
			}
			end = closedThinking.FindStringIndex(masked)
			if end == nil || thinkingOpen.MatchString(masked[:end[0]]) {
				return text
			}
		}
		text = strings.TrimLeft(text[end[1]:], "\r\n")
	}
}
