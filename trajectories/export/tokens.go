package export

import (
	"reflect"
	"slices"

	"github.com/parquet-go/parquet-go"

	"github.com/minibench/mini/trajectories"
)

// tokenRow has the tokens of a reply, or with Options.Segments those of several replies whose prompts continue the
// tokens before. Reinforcement learning trains on the tokens of Response whose Mask is 1, which the model sampled;
// the others are context. Logprobs is 0 for context, and null if the server sent none.
type tokenRow struct {
	// Run is the name of the run, which is unique in the export; null for a file. That of a rollout of
	// mini serve is its id.
	Run        *string `json:"run"`
	InstanceID string  `json:"instance_id"` // the group of attempts, of one run
	Attempt    int64   `json:"attempt"`
	Sample     int64   `json:"sample"`
	// Session is the name of the attempt for gateways; null in journals of older versions.
	Session *string `json:"session"`
	// Subagent is the number of the subagent; 0 for the conversation of the attempt.
	Subagent int64  `json:"subagent"`
	Model    string `json:"model"`
	// Turn is the number of the first reply, from 1, Turns the number of replies. Last is set in the last row of a
	// conversation.
	Turn     int64     `json:"turn"`
	Turns    int64     `json:"turns"`
	Last     bool      `json:"last"`
	Prompt   []int64   `json:"prompt_ids"`
	Response []int64   `json:"response_ids"`
	Mask     []int64   `json:"mask"`
	Logprobs []float64 `json:"logprobs"`
	// FormatError is set if a reply of the row has a format error, or the user rejected it, so that nothing of it ran.
	FormatError bool `json:"format_error"`
	// Reward is 1 if the attempt resolves the instance and 0 if it does not, or the reward of a Harbor task. It is
	// null if there is no verdict; Class then says why.
	Reward  *float  `json:"reward"`
	Verdict *string `json:"verdict"`
	Class   string  `json:"class"`
	Status  string  `json:"exit_status"`
	Finish  string  `json:"finish_reason"`
	SHA256  string  `json:"journal_sha256"`
}

const (
	skipNoTokens     = "no token ids: run with --tokens, and a server that returns them" //nolint:gosec // no credential
	skipNoReply      = "no reply"
	skipFormatErrors = "no reply without a format error"
	noteLostTokens   = "replies without token ids, which no row has"
	noteFormatErrors = "replies with a format error, which no row has"
)

// tokens returns the rows of an attempt and its subagents.
func (w *writer) tokens(items []*Item) ([]any, error) {
	item := items[0]
	row := tokenRow{
		Run: orNull(item.source.Run), InstanceID: item.InstanceID, Attempt: int64(item.Number), Sample: int64(item.Repetition), Session: orNull(item.Header.Session),
		Model: item.Header.ModelName, Reward: (*float)(item.reward()), Verdict: orNull(item.Verdict), SHA256: item.SHA256,
	}
	if item.Outcome != nil {
		row.Class, row.Status = string(item.Outcome.Class), item.Outcome.ExitStatus
	}
	rows := w.conversationTokens(item.Attempt, row)
	switch {
	case item.Steps() == 0:
		return nil, SkipReason(skipNoReply)
	case len(rows) == 0 && w.losses[noteFormatErrors] > 0:
		return nil, SkipReason(skipFormatErrors)
	case len(rows) == 0:
		return nil, SkipReason(skipNoTokens)
	}
	for i, child := range item.Children {
		row.Subagent = int64(i + 1)
		if child.Header.Parent != nil {
			row.Subagent = int64(child.Header.Parent.Child)
		}
		rows = append(rows, w.conversationTokens(child, row)...)
	}
	return rows, nil
}

// reward returns the reward of an attempt; nil if it has no verdict.
func (item *Item) reward() *float64 {
	if item.Reward != nil {
		return item.Reward
	}
	isResolved, valid := verdictLabel(item.Verdict)
	if !valid {
		return nil
	}
	reward := 0.0
	if isResolved {
		reward = 1
	}
	return &reward
}

// conversationTokens returns the rows of the replies of a conversation.
func (w *writer) conversationTokens(a *trajectories.Attempt, about tokenRow) (rows []any) {
	var open []*tokenRow            // the rows, of which the last may be continued
	var before *trajectories.Tokens // of the reply before; nil if they are not known
	turns, turn := markedTurns(a, Options{FormatErrors: FormatErrorsDrop}), int64(0)
	for i, e := range a.Entries {
		if e.Cause != trajectories.CauseReply {
			continue
		}
		turn++
		if e.Call == nil || e.Call.Tokens == nil {
			w.losses[noteLostTokens]++
			before = nil
			continue
		}
		mask, isError := int64(1), turns[i].omitted
		switch {
		case isError && w.opts.FormatErrors == FormatErrorsDrop:
			w.losses[noteFormatErrors]++
			before = nil
			continue
		case isError && w.opts.FormatErrors == FormatErrorsMask:
			mask = 0
		}
		t := e.Call.Tokens
		prompt := t.Prompt()
		var row *tokenRow
		if n, all := t.Continues(before); w.opts.Segments && all {
			row = open[len(open)-1]
			row.add(prompt[n:], 0, make([]float64, len(prompt)-n))
		} else {
			next := about
			next.Turn, next.Prompt = turn, widen(prompt)
			row = &next
			open = append(open, row)
		}
		row.add(t.Completion, mask, t.Logprobs)
		row.Turns, row.Finish, row.FormatError = row.Turns+1, string(e.Call.Finish), row.FormatError || isError
		before = t
	}
	for i, row := range open {
		row.Last = i == len(open)-1
		rows = append(rows, *row)
	}
	return rows
}

// add appends tokens to the response. Their log probabilities are nil if unknown.
func (r *tokenRow) add(ids []int32, mask int64, logprobs []float64) {
	known := r.Logprobs != nil || len(r.Response) == 0
	r.Response = append(r.Response, widen(ids)...)
	r.Mask = append(r.Mask, slices.Repeat([]int64{mask}, len(ids))...)
	switch {
	case !known:
	case logprobs == nil:
		r.Logprobs = nil
	default:
		r.Logprobs = append(r.Logprobs, logprobs...)
	}
}

// widen returns ids in the type of columns.
func widen(ids []int32) []int64 {
	wide := make([]int64, len(ids))
	for i, id := range ids {
		wide[i] = int64(id)
	}
	return wide
}

// tokenColumns returns the columns of a parquet file.
func tokenColumns() parquet.Node { return rowNode(reflect.TypeFor[tokenRow](), nil) }

// TokenRows returns the rows of the format tokens for an attempt, as values to encode as JSON; nil if it has no tokens.
// With segments, a row has the replies whose prompts continue the tokens before.
func (item *Item) TokenRows(segments bool) []any {
	w := &writer{opts: Options{Segments: segments}, losses: losses{}}
	rows, err := w.tokens([]*Item{item})
	if err != nil { // there are none
		return nil
	}
	return rows
}

// VerdictReward returns 1 for an attempt that resolves its instance, 0 for one that does not, or the reward of a
// Harbor task. It returns nil without a verdict.
func (item *Item) VerdictReward() *float64 { return item.reward() }
