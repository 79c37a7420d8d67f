package trajectories

import "github.com/minibench/mini/model"

// Compaction says that the model is shown less of the conversation from here on:
// in place of some messages it gets others. The messages stay in the journal; a
// later compaction may replace them anew, with what stood for them.
type Compaction struct {
	// Policy is how it was done: "elide" or "summarize".
	Policy string `json:"policy"`
	// TokensBefore and TokensAfter are about what the next prompt had, and has;
	// MessagesBefore and MessagesAfter count its messages.
	TokensBefore   int64 `json:"tokens_before"`
	TokensAfter    int64 `json:"tokens_after"`
	MessagesBefore int   `json:"messages_before"`
	MessagesAfter  int   `json:"messages_after"`
	// Replaced are in the order of the messages, and do not overlap.
	Replaced []Replacement `json:"replaced"`
	// Fallback says why extracts stand where summaries were wanted.
	Fallback string `json:"fallback,omitempty"`
}

// Replacement is one message that stands for those of the records From to To,
// both included.
type Replacement struct {
	From    int           `json:"from"`
	To      int           `json:"to"`
	Message model.Message `json:"message"`
	// Join puts it together with the user's messages beside it, those that were
	// there at the compaction: an empty line parts them. So roles take turns where
	// they did before.
	Join bool `json:"join,omitempty"`
}

// Compacted is a compaction with its record.
type Compacted struct {
	Record int
	Compaction
}
