package trajectories

import "github.com/minibench/mini/model"

// Compaction replaces messages of the conversation by shorter ones from here on. The
// original messages stay in the journal. A later compaction may replace the
// replacements.
type Compaction struct {
	// Policy is "elide" or "summarize".
	Policy string `json:"policy"`
	// TokensBefore and TokensAfter are estimates of the prompt's length;
	// MessagesBefore and MessagesAfter count its messages.
	TokensBefore   int64 `json:"tokens_before"`
	TokensAfter    int64 `json:"tokens_after"`
	MessagesBefore int   `json:"messages_before"`
	MessagesAfter  int   `json:"messages_after"`
	// Replaced are the replacements, in order and without overlaps.
	Replaced []Replacement `json:"replaced"`
	// Fallback says why messages were truncated instead of summarized.
	Fallback string `json:"fallback,omitempty"`
}

// Replacement is a message that replaces the records From to To, inclusive.
type Replacement struct {
	From    int           `json:"from"`
	To      int           `json:"to"`
	Message model.Message `json:"message"`
	// Join joins the message with the adjacent user messages that existed at the
	// compaction, separated by an empty line. This keeps user and assistant messages
	// alternating.
	Join bool `json:"join,omitempty"`
}

// RecordedCompaction is a compaction with its record ID.
type RecordedCompaction struct {
	Record int
	Compaction
}
