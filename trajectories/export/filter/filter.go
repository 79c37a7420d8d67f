package filter

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/export"
)

// Config configures a filter. The zero value accepts everything and redacts secrets
// of known formats.
type Config struct {
	// Training is set if the export trains models. Then test sets are refused, and
	// unless Classes is set, only attempts that count are accepted.
	Training bool
	// AllowTestSets accepts instances of test sets.
	AllowTestSets bool

	// Verdicts, Classes (of outcomes), Repos ("owner/name", ignoring case) and Models
	// (the prefix up to the last slash may be left out; * matches any text) are
	// accepted values. Empty lists accept all. "none" is a missing verdict or
	// outcome.
	Verdicts, Classes, Repos, Models []string
	// NoFlagged drops attempts that the evaluation flagged. If Flags is set, only
	// these flags count.
	NoFlagged bool
	Flags     []string

	// Tokenizer estimates tokens. If it is empty, the provider's counts are used, or
	// TokenizerEstimate if MaxTokens is set.
	Tokenizer string
	MaxTokens int64 // 0 means no limit, as below
	// Reasoning is set if rows contain reasoning, which is then counted and compared
	// too.
	Reasoning          bool
	MinSteps, MaxSteps int
	// MaxFormatErrors is a limit unless it is nil.
	MaxFormatErrors                *int
	MinPerInstance, MaxPerInstance int

	// Dedupe is the similarity (0 to 1) from which the later of two attempts is
	// dropped; 0 drops none. Exact copies are reported in any case.
	Dedupe float64

	// Secrets is what to do with secrets; the default is SecretsRedact.
	Secrets SecretPolicy
	// KnownSecrets are secret values, such as the API keys of this machine.
	KnownSecrets []KnownSecret

	// Splits are assigned according to SplitBy. If empty, there is one split without
	// a name.
	Splits  []Split
	SplitBy SplitBy
	Seed    uint64
}

// TokenizerEstimate is the tokenizer that estimates tokens from the length of text.
const TokenizerEstimate = "estimate"

// none is the name of a missing verdict or outcome.
const none = "none"

// Filter filters the attempts of an export. Inspect and SplitOf are safe for
// concurrent use; other methods are not.
type Filter struct {
	cfg        Config
	scanner    *scanner
	duplicates *duplicates
	group      group
	testSets   testCounts // attempts of test sets
	stats      *stats
}

// New returns a filter. Errors about the configuration name the flags of mini export,
// and are one line.
func New(cfg Config) (*Filter, error) {
	s := &Filter{cfg: cfg}
	if err := s.validate(); err != nil {
		return nil, err
	}
	var err error
	if s.scanner, err = newScanner(cfg.KnownSecrets); err != nil {
		return nil, err
	}
	s.duplicates = newDuplicates(cfg.Dedupe)
	s.stats = newStats(cfg, s.scanner.skippedNames)
	return s, nil
}

func (f *Filter) validate() error {
	c := &f.cfg
	for _, class := range c.Classes {
		if !slices.Contains(Classes(), class) {
			return fmt.Errorf("--class %s is not one of %s", quoted(class), strings.Join(Classes(), ", "))
		}
	}
	switch {
	case c.MaxTokens < 0 || c.MinSteps < 0 || c.MaxSteps < 0 || c.MinPerInstance < 0 || c.MaxPerInstance < 0:
		return errors.New("limits must not be negative; 0 means no limit")
	case c.MaxFormatErrors != nil && *c.MaxFormatErrors < 0:
		return errors.New("--max-format-errors must not be negative")
	case c.MaxSteps > 0 && c.MinSteps > c.MaxSteps:
		return fmt.Errorf("--min-steps %d is more than --max-steps %d: no attempt would be left", c.MinSteps, c.MaxSteps)
	case c.MaxPerInstance > 0 && c.MinPerInstance > c.MaxPerInstance:
		return fmt.Errorf("--min-per-instance %d is more than --max-per-instance %d: no attempt would be left", c.MinPerInstance, c.MaxPerInstance)
	case c.MinPerInstance > maxHeld:
		return fmt.Errorf("--min-per-instance must be at most %d, the number of attempts held in memory", maxHeld)
	case !(c.Dedupe >= 0 && c.Dedupe <= 1): // also true for NaN
		return fmt.Errorf("--dedupe %v must be a similarity from 0 to 1, such as 0.9", c.Dedupe)
	case c.Dedupe > 0 && c.Dedupe < minSimilarity:
		return fmt.Errorf("--dedupe %v must be at least %v, or attempts that are hardly similar would be dropped", c.Dedupe, minSimilarity)
	case !slices.Contains(append(secretModes(), ""), string(c.Secrets)):
		return fmt.Errorf("--secrets %s is not one of %s", quoted(string(c.Secrets)), strings.Join(secretModes(), ", "))
	}
	c.Secrets = cmp.Or(c.Secrets, SecretsRedact)
	switch c.Tokenizer {
	case "", TokenizerEstimate, "o200k_base", "cl100k_base": // accepted for compatibility, but estimates too
	default:
		return fmt.Errorf("--tokenizer %s is unknown, use %s", quoted(c.Tokenizer), TokenizerEstimate)
	}
	if c.MaxTokens > 0 || c.Tokenizer != "" {
		c.Tokenizer = TokenizerEstimate
	}
	return checkSplits(c.Splits, c.SplitBy)
}

// quoted quotes and truncates user input.
func quoted(s string) string { return fmt.Sprintf("%.60q", s) }

// Classes returns the valid outcome classes.
func Classes() []string {
	return []string{
		string(trajectories.Submitted), string(trajectories.Limit), string(trajectories.Provider), string(trajectories.Environment),
		string(trajectories.Interrupted), string(trajectories.Internal), none,
	}
}

// Inspection is the result of Filter.Inspect for an attempt.
type Inspection struct {
	Item      *export.Item
	reason    DropReason
	signature signature
	secrets   []SecretLocation
	testSet   string // test set of the instance
}

// Inspect examines an attempt by itself: it applies filters, sets the item's token
// count, removes secrets from the item, and computes its signature. It does the
// expensive work, and can be called concurrently.
func (f *Filter) Inspect(it *export.Item) *Inspection {
	l := &Inspection{Item: it}
	if l.reason = f.filterMetadata(it); l.reason != "" {
		return l
	}
	if l.reason = f.filterTranscript(it); l.reason != "" {
		return l
	}
	l.testSet = testSet(it)
	l.secrets = f.scanner.clean(it, f.cfg.Training)
	l.signature = sign(it, f.cfg.Reasoning, f.duplicates.bands > 0)
	return l
}

// Add adds an attempt after earlier ones, and returns the attempts that are accepted
// by now: none, this one, or also earlier ones. Attempts on an instance must be
// adjacent for limits per instance to work.
func (f *Filter) Add(l *Inspection) []*export.Item {
	f.startGroup(l.Item)
	f.stats.attempts++
	if l.reason == "" {
		l.reason = f.compare(l)
	}
	if l.reason != "" {
		f.stats.addDropped(l.Item, l.reason)
		return nil
	}
	return f.accept(l)
}

// compare applies the filters that depend on other attempts.
func (f *Filter) compare(l *Inspection) DropReason {
	if f.cfg.Training {
		f.testSets.add(l.testSet, l.Item.InstanceID)
		if l.testSet != "" && !f.cfg.AllowTestSets {
			return dropReason("test set", l.testSet)
		}
	}
	if len(l.secrets) > 0 {
		f.stats.addSecrets(l.secrets)
		if f.cfg.Secrets == SecretsDrop {
			return dropReason("secret", l.secrets[0].Kind)
		}
	}
	if f.cfg.MaxPerInstance > 0 && f.group.accepted >= f.cfg.MaxPerInstance {
		return dropReason("max per instance", "")
	}
	return f.checkDuplicate(l.Item, l.signature)
}

// Finish must be called after the last attempt.
func (f *Filter) Finish() { f.endGroup() }

// Err returns an error if nothing may be exported: there were attempts of test sets,
// or secrets with SecretsRefuse.
func (f *Filter) Err() error {
	if f.cfg.Training && !f.cfg.AllowTestSets {
		if err := f.testSets.err(); err != nil {
			return err
		}
	}
	if f.cfg.Secrets == SecretsRefuse {
		return f.stats.secretsErr()
	}
	return nil
}
