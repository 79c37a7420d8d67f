package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// Values of Config.Compaction.
const (
	CompactionOff       = "off"
	CompactionElide     = "elide"
	CompactionSummarize = "summarize"
)

// Defaults of the compaction settings.
const (
	DefaultCompactionTokens = 80_000
	DefaultCompactionKeep   = 10
	DefaultSummaryMaxChars  = 6000
)

// Thresholds, as shares of the token limit. A compaction must save at least
// minSaved, because it invalidates the provider's cache, and a summary costs
// money. If more than elideStepsAbove is left after outputs are elided, the
// oldest steps are elided until at most elideStepsTo is left.
const (
	minSaved        = 0.1
	elideStepsAbove = 0.75
	elideStepsTo    = 0.5
)

// minRejected is the share of the token limit from which a prompt that the provider
// rejects without a known reason may be too long.
const minRejected = 0.25

// requestedKeep is the number of newest messages that a compaction keeps which the
// user wants, or which follows a rejected prompt.
const requestedKeep = 2

func (c Config) compacts() bool { return c.Compaction != "" && c.Compaction != CompactionOff }

func (c Config) compactionTokens() int64 { return cmp.Or(c.CompactionTokens, DefaultCompactionTokens) }

func (c Config) validateCompaction() error {
	if c.Compaction != "" && !slices.Contains([]string{CompactionOff, CompactionElide, CompactionSummarize}, c.Compaction) {
		return fieldErrorf("compaction",
			"%.60q is not one of %s, %s, %s", c.Compaction, CompactionOff, CompactionElide, CompactionSummarize)
	}
	for _, n := range []struct {
		field      string
		value, max int64
	}{
		{"compaction_tokens", c.CompactionTokens, math.MaxInt32},
		{"compaction_keep", int64(c.CompactionKeep), 10_000},
		{"summary_max_chars", int64(c.SummaryMaxChars), 200_000},
	} {
		if n.value < 0 || n.value > n.max {
			return fieldErrorf(n.field, "%d is not a number up to %d; 0 means the default", n.value, n.max)
		}
	}
	if c.Compaction == CompactionSummarize && c.SummaryTemplate == "" {
		return fieldErrorf("summary_template", "it is empty; set it if agent.compaction is %s", CompactionSummarize)
	}
	return nil
}

// compact shortens the conversation if the next prompt would exceed the token
// limit, or if the user wants it. If that is not worthwhile or the prompt is
// still too long, the prompt is sent anyway and the outcome has a warning.
func (r *run) compact(ctx context.Context) error {
	request := take(r.Inbox, func(b *Inbox) **compactionRequest { return &b.compaction })
	if request == nil && !r.cfg.compacts() {
		return nil
	}
	return r.compactFor(ctx, request)
}

// compactRejected shortens the conversation after the provider has rejected a prompt,
// because it was too long or for a reason that mini does not know, so that the call is
// made again. It returns the error of the call if it was made again already, or if
// nothing can be shortened.
func (r *run) compactRejected(ctx context.Context, failed *model.Error) error {
	unknown := failed.Status == model.BadRequest && failed.HTTPStatus == http.StatusBadRequest &&
		r.promptTokens() > int64(minRejected*float64(r.cfg.compactionTokens()))
	if !r.cfg.compacts() || r.attempt.Replies() == r.rejectedAt || failed.Status != model.ContextWindowExceeded && !unknown {
		return failed
	}
	r.rejectedAt = r.attempt.Replies()
	var err error
	return errors.Join(r.compactFor(ctx, &compactionRequest{empty: func() { err = failed }, rejected: true}), err)
}

// compactFor is compact with a request, which may be nil.
func (r *run) compactFor(ctx context.Context, request *compactionRequest) error {
	limit, before := r.cfg.compactionTokens(), r.promptTokens()
	if request == nil && before <= limit {
		return nil
	}
	c := trajectories.Compaction{Policy: r.cfg.Compaction, TokensBefore: before, MessagesBefore: len(r.attempt.Conversation().Messages())}
	keep := cmp.Or(r.cfg.CompactionKeep, DefaultCompactionKeep)
	if request != nil {
		keep = min(keep, requestedKeep)
		switch {
		case request.rejected:
		case r.cfg.SummaryTemplate == "":
			c.Policy = CompactionElide
		default:
			c.Policy = CompactionSummarize
		}
	}
	compactor := r.newCompactor(keep)
	segments := compactor.segments()
	switch {
	case c.Policy == CompactionElide:
		c.Replaced = compactor.elideOutputs()
	case request != nil && len(newSegments(segments)) > 0:
		compactor.hint = request.hint
		fallthrough
	case request == nil && compactor.isWorthwhile(segments):
		var err error
		if c.Replaced, c.Fallback, err = r.summarize(ctx, compactor, segments); err != nil {
			return err
		}
	}
	if request != nil && len(c.Replaced) == 0 {
		request.empty()
		return nil
	}
	conversation := r.attempt.Conversation()
	preview := *conversation
	preview.Compact(c)
	c.TokensAfter, c.MessagesAfter = compactor.tokens(preview.Messages()), len(preview.Messages())
	saved := compactor.tokens(conversation.Messages()) - c.TokensAfter
	if len(c.Replaced) == 0 || request == nil && c.Policy == CompactionElide && float64(saved) < minSaved*float64(limit) {
		r.warnOfLength(before)
		return nil
	}
	if c.TokensAfter > limit {
		r.warnOfLength(c.TokensAfter)
	}
	if _, err := r.record(trajectories.TypeCompaction, c); err != nil {
		return err
	}
	r.counted, r.scale = tokenCount{}, compactor.scale
	return r.checkLimits(r.CheckBudget)
}

// warnOfLength warns, once per session, that a prompt exceeds the limit because
// some messages are always kept.
func (r *run) warnOfLength(tokens int64) {
	if r.warnedLength {
		return
	}
	r.warnedLength = true
	r.warnings = append(r.warnings, fmt.Sprintf(
		"a prompt had about %d tokens, more than agent.compaction_tokens (%d), "+
			"because the task, the user's messages and the last %d messages are always kept",
		tokens, r.cfg.compactionTokens(), cmp.Or(r.cfg.CompactionKeep, DefaultCompactionKeep)))
}

// promptTokens estimates the length of the next prompt in tokens: the
// provider's count, plus an estimate for the messages added since then. Without
// a count it estimates the whole prompt.
func (r *run) promptTokens() int64 {
	messages := r.attempt.Conversation().Messages()
	if n := r.counted.tokens(messages); n > 0 {
		rest := float64(model.EstimateTokens(messages[r.counted.messages:]))
		return n + int64(rest*max(1, r.tokenScale()))
	}
	whole := model.EstimateTokens(messages) + model.EstimateTextTokens(r.lastTail)
	return int64(float64(whole) * r.tokenScale())
}

// tokenScale returns how many tokens the provider counts per estimated token,
// as of its newest count. It returns 1 before the first count.
func (r *run) tokenScale() float64 {
	messages := r.attempt.Conversation().Messages()
	if n := r.counted.tokens(messages); n > 0 {
		r.scale = float64(n) / float64(max(1, model.EstimateTokens(messages[:r.counted.messages])))
	}
	return cmp.Or(r.scale, 1)
}

// compactor is the state of one compaction: which blocks are kept, and which
// may be replaced.
type compactor struct {
	run      *run
	blocks   []trajectories.Block
	keepFrom int         // index of the first of the newest blocks, which are kept
	scale    float64     // provider tokens per estimated token
	stepOf   map[int]int // record ID of a message -> number of its step
	hint     string      // what the user wants summaries to keep; may be empty
}

// turn is a reply with the messages that answer it, or a block that already
// replaces steps.
type turn []trajectories.Block

// newCompactor returns a compactor that keeps the newest messages: keep of them,
// and those that belong to the same reply.
func (r *run) newCompactor(keep int) *compactor {
	c := &compactor{run: r, blocks: r.attempt.Conversation().Blocks(), scale: r.tokenScale(), stepOf: map[int]int{}}
	replies := 0
	for _, e := range r.attempt.Entries {
		if e.Cause == trajectories.CauseReply {
			replies++
		}
		c.stepOf[e.Record] = replies
	}
	// A reply is not separated from the messages that answer it.
	c.keepFrom = max(0, len(c.blocks)-keep)
	for c.keepFrom > 0 && c.isAnswer(c.blocks[c.keepFrom]) {
		c.keepFrom--
	}
	return c
}

func (c *compactor) tokens(messages []model.Message) int64 {
	return int64(c.scale * float64(model.EstimateTokens(messages)))
}

// cause returns the cause of the message that a block stands for; empty if the
// block stands for several.
func (c *compactor) cause(b trajectories.Block) trajectories.Cause {
	entries := c.run.attempt.Entries
	i, ok := slices.BinarySearchFunc(entries, b.From, func(e trajectories.Entry, record int) int { return e.Record - record })
	if !ok || b.From != b.To {
		return ""
	}
	return entries[i].Cause
}

// isAnswer reports whether a block belongs to the reply before it.
func (c *compactor) isAnswer(b trajectories.Block) bool {
	switch c.cause(b) {
	case trajectories.CauseObservation, trajectories.CauseFormatError, trajectories.CauseRejection,
		trajectories.CauseNotRun, trajectories.CauseMalformedPatch:
		return true
	}
	return b.Role == model.Tool
}

// isPinned reports whether a block is always kept: a prompt, a message of the
// user, or a rejected command with the user's reason.
func (c *compactor) isPinned(b trajectories.Block) bool {
	if b.IsReplacement {
		return false
	}
	switch c.cause(b) {
	case trajectories.CausePrompt, trajectories.CauseInterruption, trajectories.CauseSteer,
		trajectories.CauseFollowUp, trajectories.CauseUserCommand:
		return true
	case "": // imported from another agent: the cause is unknown
		return b.Role == model.User || b.Role == model.System
	case trajectories.CauseRejection:
		return strings.HasPrefix(b.Content, userRejection)
	}
	return b.Role == model.System
}

// segments returns the turns before keepFrom, split at the turns with a pinned
// block, which are left out.
func (c *compactor) segments() [][]turn {
	var segments [][]turn
	joinLast := false // the next turn belongs to the last segment
	for i := 0; i < c.keepFrom; {
		end := i + 1
		for end < c.keepFrom && c.isAnswer(c.blocks[end]) {
			end++
		}
		t := turn(c.blocks[i:end])
		i = end
		if slices.ContainsFunc(t, c.isPinned) {
			joinLast = false
			continue
		}
		if !joinLast {
			segments = append(segments, nil)
		}
		n := len(segments) - 1
		segments[n], joinLast = append(segments[n], t), true
	}
	return segments
}

// isReplaced reports whether a segment consists only of the replacement made by
// an earlier compaction.
func isReplaced(segment []turn) bool {
	return len(segment) == 1 && len(segment[0]) == 1 && segment[0][0].IsReplacement
}

// recordRange returns the first and the last record of a segment.
func recordRange(segment []turn) (from, to int) {
	last := segment[len(segment)-1]
	return segment[0][0].From, last[len(last)-1].To
}

// stepRange returns the first and the last step of a segment, from 1.
func (c *compactor) stepRange(segment []turn) (first, last int) {
	from, to := recordRange(segment)
	first, last = c.stepOf[from], c.stepOf[to]
	return max(1, min(first, last)), max(1, last)
}

// isWorthwhile reports whether summaries would save enough tokens. It estimates
// the length of a summary as a quarter of the summarized text, at most the
// maximum length. If the last compaction left more than the limit, there must
// be at least as many messages without a summary as messages from keepFrom on,
// so that not every step makes a summary.
func (c *compactor) isWorthwhile(segments [][]turn) bool {
	var saved int64
	newMessages := 0
	maxSummary := int64(float64(c.run.cfg.summaryMaxChars()) / 3.5)
	for _, segment := range segments {
		if isReplaced(segment) {
			continue
		}
		messages := messagesOf(segment)
		n := model.EstimateTokens(messages)
		newMessages += len(messages)
		saved += n - min(maxSummary, n/4)
	}
	if c.run.isStillTooLong() && newMessages < len(c.blocks)-c.keepFrom {
		return false
	}
	return c.scale*float64(saved) >= minSaved*float64(c.run.cfg.compactionTokens())
}

// isStillTooLong reports whether the last compaction left more tokens than the limit.
func (r *run) isStillTooLong() bool {
	n := len(r.attempt.Compactions)
	return n > 0 && r.attempt.Compactions[n-1].TokensAfter > r.cfg.compactionTokens()
}

func messagesOf(segment []turn) []model.Message {
	var all []model.Message
	for _, turn := range segment {
		for _, b := range turn {
			all = append(all, b.Message)
		}
	}
	return all
}

// elideOutputs replaces each old observation that has images or is longer than
// its note by the note, which has one line. If that is not enough, it elides
// the oldest steps.
func (c *compactor) elideOutputs() []trajectories.Replacement {
	var replacements []trajectories.Replacement
	for _, b := range c.blocks[:c.keepFrom] {
		if c.cause(b) != trajectories.CauseObservation || b.IsReplacement {
			continue
		}
		note := c.elidedOutputNote(b)
		if len(note) >= len(b.Content) && len(b.Images) == 0 {
			continue
		}
		m := model.Message{Role: b.Role, Content: note, ToolCallID: b.ToolCallID}
		replacements = append(replacements, trajectories.Replacement{From: b.From, To: b.To, Message: m})
	}
	return c.elideSteps(replacements)
}

// elideSteps adds notes that replace the oldest steps if the given replacements
// leave more than elideStepsAbove. It goes through the segments, oldest first,
// one note per segment, until elideStepsTo is reached.
func (c *compactor) elideSteps(replacements []trajectories.Replacement) []trajectories.Replacement {
	limit := float64(c.run.cfg.compactionTokens())
	size, total := c.sizes(replacements)
	if c.scale*float64(total) <= elideStepsAbove*limit {
		return replacements
	}
	for _, segment := range c.segments() {
		if isReplaced(segment) {
			continue
		}
		count, note := 0, trajectories.Replacement{}
		for done := false; count < len(segment) && !done; {
			for _, b := range segment[count] {
				total -= size[b.From]
			}
			count++
			done = c.scale*float64(total) <= elideStepsTo*limit
		}
		note.From, note.To = recordRange(segment[:count])
		note.Join, note.Message = true, model.Message{Role: model.User, Content: c.segmentNote(segment[:count], "were taken out to save room")}
		replacements = slices.DeleteFunc(replacements, func(r trajectories.Replacement) bool { return note.From <= r.From && r.To <= note.To })
		replacements = append(replacements, note)
		if count < len(segment) {
			break
		}
	}
	slices.SortFunc(replacements, func(a, b trajectories.Replacement) int { return a.From - b.From })
	return replacements
}

// sizes estimates the tokens of the blocks after the given replacements. The
// key of size is a block's first record.
func (c *compactor) sizes(replacements []trajectories.Replacement) (size map[int]int64, total int64) {
	size = map[int]int64{}
	next := 0
	for _, b := range c.blocks {
		m := b.Message
		if next < len(replacements) && replacements[next].From == b.From {
			m, next = replacements[next].Message, next+1
		}
		size[b.From] = model.EstimateTokens([]model.Message{m})
		total += size[b.From]
	}
	return size, total
}

// elidedOutputNote returns the note that replaces a command's output.
func (c *compactor) elidedOutputNote(b trajectories.Block) string {
	hint := "run the command again to see it"
	if c.run.hasRecall() {
		hint = fmt.Sprintf("mini-tool recall %d shows it", c.stepOf[b.From])
	}
	return fmt.Sprintf("[What this command gave, %s characters, was taken out to save room; %s]", formatThousands(utf8.RuneCountInString(b.Content)), hint)
}

// segmentNote returns the note on which steps a message replaces. predicate
// says what happened to the steps.
func (c *compactor) segmentNote(segment []turn, predicate string) string {
	first, last := c.stepRange(segment)
	steps := fmt.Sprintf("Steps %d to %d ", first, last)
	if first == last {
		steps = fmt.Sprintf("Step %d ", first)
		predicate = strings.Replace(strings.Replace(predicate, "were ", "was ", 1), "are ", "is ", 1)
	}
	hint := ""
	if c.run.hasRecall() {
		hint = "; mini-tool recall STEP shows a step again"
	}
	return "[" + steps + predicate + hint + "]"
}

// hasRecall reports whether commands can call the recall tool.
func (r *run) hasRecall() bool {
	return slices.ContainsFunc(r.capabilities.Tools, func(a Capability) bool { return a.Name == "recall" })
}

// formatThousands formats n with a comma between groups of three digits.
func formatThousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
