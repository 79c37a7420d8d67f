package trajectories

import "github.com/minibench/mini/model"

// Compaction replaces messages of the conversation by shorter ones in later prompts.
// The original messages stay in the journal. A later compaction may replace the
// shorter messages too.
type Compaction struct {
	// Policy is "elide" or "summarize".
	Policy string `json:"policy"`
	// TokensBefore and TokensAfter are estimates of the length of the prompt before
	// and after the compaction; MessagesBefore and MessagesAfter count its messages.
	TokensBefore   int64 `json:"tokens_before"`
	TokensAfter    int64 `json:"tokens_after"`
	MessagesBefore int   `json:"messages_before"`
	MessagesAfter  int   `json:"messages_after"`
	// Replaced are the replacements, sorted by From and without overlaps.
	Replaced []Replacement `json:"replaced"`
	// Fallback explains why the policy "summarize" replaced messages without a
	// summary; empty if it did not.
	Fallback string `json:"fallback,omitempty"`
}

// Replacement is a message that replaces the messages of the records From to To,
// inclusive.
type Replacement struct {
	From    int           `json:"from"`
	To      int           `json:"to"`
	Message model.Message `json:"message"`
	// Join is set if prompts contain the message and the user messages beside it as
	// one message, so that user and assistant messages alternate. An empty line
	// separates the texts. User messages added after the compaction are not joined
	// until the next compaction.
	Join bool `json:"join,omitempty"`
}

// RecordedCompaction is a compaction with its record ID.
type RecordedCompaction struct {
	Record int
	Compaction
}
