package model

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Conversation identifies the attempt whose calls a request belongs to, for gateways that keep the calls of each
// attempt apart. Addresses and headers can have {instance}, {attempt} and {session}.
type Conversation struct {
	Instance string
	Attempt  int
	// Session is unique for each attempt, and no secret. A resumed attempt keeps it.
	Session string
}

type conversationKey struct{}

// WithConversation returns a context for the calls of an attempt.
func WithConversation(ctx context.Context, c Conversation) context.Context {
	return context.WithValue(ctx, conversationKey{}, c)
}

// ConversationOf returns the conversation of WithConversation, or that of a call outside of an attempt.
func ConversationOf(ctx context.Context) Conversation {
	if c, ok := ctx.Value(conversationKey{}).(Conversation); ok {
		return c
	}
	return Conversation{Instance: "none", Session: "none"}
}

// Expand replaces the placeholders in a template by their values, which escape makes safe for their place.
func (c Conversation) Expand(template string, escape func(string) string) string {
	if !strings.Contains(template, "{") {
		return template
	}
	return strings.NewReplacer(
		"{instance}", escape(c.Instance), "{attempt}", strconv.Itoa(c.Attempt), "{session}", escape(c.Session),
	).Replace(template)
}

var placeholder = regexp.MustCompile(`\{[^{}]*\}?`)

// CheckPlaceholders returns an error for a placeholder that Expand does not know.
func CheckPlaceholders(template string) error {
	for _, p := range placeholder.FindAllString(template, -1) {
		switch p {
		case "{instance}", "{attempt}", "{session}":
		default:
			return fmt.Errorf("%.40s: the placeholders are {instance}, {attempt} and {session}", p)
		}
	}
	return nil
}
