package agent

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

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

// requestedKeep is the number of newest messages that a compaction keeps which the
// user wants.
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
	request := r.Inbox.takeCompaction()
	if request == nil && !r.cfg.compacts() {
		return nil
	}
	limit, before := r.cfg.compactionTokens(), r.promptTokens()
	if request == nil && before <= limit {
		return nil
	}
	c := trajectories.Compaction{Policy: r.cfg.Compaction, TokensBefore: before, MessagesBefore: len(r.history.Messages())}
	keep := cmp.Or(r.cfg.CompactionKeep, DefaultCompactionKeep)
	if request != nil {
		keep = min(keep, requestedKeep)
		if c.Policy = CompactionSummarize; r.cfg.SummaryTemplate == "" {
			c.Policy = CompactionElide
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
	preview := r.history
	preview.Compact(0, c)
	c.TokensAfter, c.MessagesAfter = compactor.tokens(preview.Messages()), len(preview.Messages())
	saved := compactor.tokens(r.history.Messages()) - c.TokensAfter
	if len(c.Replaced) == 0 || request == nil && c.Policy == CompactionElide && float64(saved) < minSaved*float64(limit) {
		r.warnOfLength(before)
		return nil
	}
	if r.stillTooLong = c.TokensAfter > limit; r.stillTooLong {
		r.warnOfLength(c.TokensAfter)
	}
	rec, err := r.record(trajectories.TypeCompaction, c)
	if err != nil {
		return err
	}
	r.history.Compact(rec.ID, c)
	r.counted, r.scale = tokenCount{}, compactor.scale
	return r.checkLimitsAfterSummary()
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
	messages := r.history.Messages()
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
	messages := r.history.Messages()
	if n := r.counted.tokens(messages); n > 0 {
		r.scale = float64(n) / float64(max(1, model.EstimateTokens(messages[:r.counted.messages])))
	}
	return cmp.Or(r.scale, 1)
}
