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

// The values of Config.Compaction.
const (
	CompactOff       = "off"
	CompactElide     = "elide"
	CompactSummarize = "summarize"
)

// What holds where a Config says nothing.
const (
	DefaultCompactionTokens = 80_000
	DefaultCompactionKeep   = 10
	DefaultSummaryMaxChars  = 6000
)

// What a compaction must come to. One that would save less than a tenth of the
// limit is not made: each of them costs the provider's cache, and a summary money.
// Where replacing outputs leaves more than three quarters of the limit, elide takes
// out steps, until half of it is left.
const (
	leastSaved = 0.1
	enough     = 0.75
	roomy      = 0.5
)

func (c Config) compacts() bool { return c.Compaction != "" && c.Compaction != CompactOff }

func (c Config) compactionTokens() int64 { return cmp.Or(c.CompactionTokens, DefaultCompactionTokens) }

func (c Config) validateCompaction() error {
	if c.Compaction != "" && !slices.Contains([]string{CompactOff, CompactElide, CompactSummarize}, c.Compaction) {
		return &FieldError{Field: "compaction", Err: fmt.Errorf("%.60q is not one of %s, %s, %s", c.Compaction, CompactOff, CompactElide, CompactSummarize)}
	}
	for _, n := range []struct {
		field       string
		value, most int64
	}{
		{"compaction_tokens", c.CompactionTokens, math.MaxInt32},
		{"compaction_keep", int64(c.CompactionKeep), 10_000},
		{"summary_max_chars", int64(c.SummaryMaxChars), 200_000},
	} {
		if n.value < 0 || n.value > n.most {
			return &FieldError{Field: n.field, Err: fmt.Errorf("%d is not a number up to %d; 0 means the default", n.value, n.most)}
		}
	}
	if c.Compaction == CompactSummarize && c.SummaryTemplate == "" {
		return &FieldError{Field: "summary_template", Err: fmt.Errorf("it is empty, and agent.compaction is %s", CompactSummarize)}
	}
	return nil
}

// compact makes what the model is shown shorter, where the next prompt would be
// longer than the limit. It is done once before a call: a prompt that is too long
// after that is sent as it is, and the outcome says so.
func (r *run) compact(ctx context.Context) error {
	if !r.cfg.compacts() {
		return nil
	}
	limit, before := r.cfg.compactionTokens(), r.promptTokens()
	if before <= limit {
		return nil
	}
	s := r.squeeze()
	c := trajectories.Compaction{Policy: r.cfg.Compaction, TokensBefore: before, MessagesBefore: len(r.view.Messages())}
	if c.Policy == CompactElide {
		c.Replaced = s.elided()
	} else if rounds := s.rounds(); s.worthIt(rounds) {
		var err error
		if c.Replaced, c.Fallback, err = r.summarize(ctx, s, rounds); err != nil {
			return err
		}
	}
	trial := r.view
	trial.Compact(0, c)
	c.TokensAfter, c.MessagesAfter = s.tokens(trial.Messages()), len(trial.Messages())
	saved := s.tokens(r.view.Messages()) - c.TokensAfter
	if len(c.Replaced) == 0 || c.Policy == CompactElide && float64(saved) < leastSaved*float64(limit) {
		r.warnOfLength(before)
		return nil
	}
	if r.overlong = c.TokensAfter > limit; r.overlong {
		r.warnOfLength(c.TokensAfter)
	}
	rec, err := r.record(trajectories.TypeCompaction, c)
	if err != nil {
		return err
	}
	r.view.Compact(rec.ID, c)
	r.counted, r.scale, r.sizes = count{}, s.scale, nil
	return r.checkSpent()
}

// warnOfLength says once that what is always kept is too long for the limit.
func (r *run) warnOfLength(tokens int64) {
	if r.long {
		return
	}
	r.long = true
	r.warnings = append(r.warnings, fmt.Sprintf(
		"a prompt had about %d tokens, more than agent.compaction_tokens (%d): what a compaction keeps, the task, the user's words and the last %d messages, is that long",
		tokens, r.cfg.compactionTokens(), cmp.Or(r.cfg.CompactionKeep, DefaultCompactionKeep)))
}

// promptTokens is about how long the next prompt is: what the provider counted,
// and an estimate of the rest.
func (r *run) promptTokens() int64 {
	h := r.history()
	if n := h.counted(); n > 0 {
		rest := float64(r.sized(len(h.Messages)) - r.sized(h.Counted))
		return n + int64(rest*max(1, r.factor()))
	}
	whole := r.sized(len(h.Messages)) + r.estimate([]model.Message{{Content: r.tailSaid}})
	return int64(float64(whole) * r.factor())
}

// factor is how many tokens the provider counts for one that is estimated, by its
// newest count.
func (r *run) factor() float64 {
	if n := r.history().counted(); n > 0 {
		r.scale = float64(n) / float64(max(1, r.sized(r.counted.messages)))
	}
	return cmp.Or(r.scale, 1)
}

// sized is about how many tokens the first messages have that the model is shown.
// Each is estimated once.
func (r *run) sized(n int) int64 {
	for i := len(r.sizes); i < n; i++ {
		size := r.estimate(r.view.Messages()[i : i+1])
		if i > 0 {
			size += r.sizes[i-1]
		}
		r.sizes = append(r.sizes, size)
	}
	if n == 0 {
		return 0
	}
	return r.sizes[n-1]
}

func (r *run) estimate(messages []model.Message) int64 {
	if r.cfg.Estimate != nil {
		return r.cfg.Estimate(messages)
	}
	return model.EstimateTokens(messages)
}

// history is what the model would be sent.
func (r *run) history() History {
	return History{Messages: r.view.Messages(), Usage: r.counted.usage, Counted: r.counted.messages}
}
