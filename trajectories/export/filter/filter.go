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
	// Training is set if the export is for training models. The filter then drops
	// instances of test sets and, unless Classes is set, attempts that are not
	// results, except imported ones without an outcome.
	Training bool
	// Rollouts is set if equal attempts are samples to learn from, not copies to drop.
	Rollouts bool
	// AllowTestSets accepts instances of test sets for training.
	AllowTestSets bool

	// Verdicts, Classes (of outcomes), Repos ("owner/name", ignoring case) and Models
	// are the accepted values; an empty list accepts all. "none" is a missing verdict
	// or outcome. In Models, * matches any text, and a model's prefix up to the last
	// slash may be omitted.
	Verdicts, Classes, Repos, Models []string
	// DropFlagged drops attempts that the evaluation flagged. If Flags is set, it drops
	// only attempts with one of these flags.
	DropFlagged bool
	Flags       []string

	// Tokenizer names the tokenizer that estimates tokens. If it and MaxTokens are
	// empty, the filter uses the provider's counts.
	Tokenizer string
	MaxTokens int64 // 0 means no limit, as for the limits below
	// Reasoning is set if rows contain reasoning. The filter then also counts and
	// compares reasoning.
	Reasoning          bool
	MinSteps, MaxSteps int
	// MaxFormatErrors is the maximum number of format errors; nil means no limit.
	MaxFormatErrors                *int
	MinPerInstance, MaxPerInstance int

	// Dedupe is the similarity, from 0.5 to 1, at which the filter drops the later of
	// two attempts; 0 drops none. Exact copies are always reported.
	Dedupe float64

	// Secrets determines how secrets are treated; the default is SecretsRedact.
	Secrets SecretPolicy
	// KnownSecrets are secret values, such as the API keys of this machine.
	KnownSecrets []KnownSecret

	// Splits are assigned according to SplitBy. If empty, there is one split without
	// a name.
	Splits  []Split
	SplitBy SplitBy
	Seed    uint64
}

// TokenizerEstimate is the tokenizer that estimates tokens from the length of texts.
const TokenizerEstimate = "estimate"

// none stands for a missing value, such as a missing verdict or outcome.
const none = "none"

// Filter filters the attempts of an export. Only Inspect and SplitOf are safe for
// concurrent use.
type Filter struct {
	cfg        Config
	scanner    *scanner
	duplicates *duplicates
	group      group
	testSets   testCounts // attempts of test sets that Inspect accepted
	stats      *stats
}

// New returns a filter. Errors about the configuration are one line, and most contain the
// name of a flag of mini export.
func New(cfg Config) (*Filter, error) {
	f := &Filter{cfg: cfg}
	if err := f.validate(); err != nil {
		return nil, err
	}
	var err error
	if f.scanner, err = newScanner(cfg.KnownSecrets); err != nil {
		return nil, err
	}
	f.duplicates = newDuplicates(cfg.Dedupe)
	f.stats = newStats(f.cfg, f.scanner.skippedNames)
	return f, nil
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
	case !slices.Contains(append(policyNames(), ""), string(c.Secrets)):
		return fmt.Errorf("--secrets %s is not one of %s", quoted(string(c.Secrets)), strings.Join(policyNames(), ", "))
	}
	c.Secrets = cmp.Or(c.Secrets, SecretsRedact)
	switch c.Tokenizer {
	case "", TokenizerEstimate, "o200k_base", "cl100k_base": // all names select the estimate
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

// Classes returns the valid values of Config.Classes.
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
	testSet   string // test set of the instance, or ""
}

// Inspect does the work that does not depend on other attempts: it applies filters, may set
// item.Tokens, removes secrets from item and computes its signature. Inspect is expensive,
// and safe for concurrent use.
func (f *Filter) Inspect(item *export.Item) *Inspection {
	inspection := &Inspection{Item: item}
	if inspection.reason = f.filterMetadata(item); inspection.reason != "" {
		return inspection
	}
	if inspection.reason = f.filterAttempt(item); inspection.reason != "" {
		return inspection
	}
	inspection.testSet = testSet(item)
	inspection.secrets = f.scanner.clean(item, f.cfg.Training)
	inspection.signature = newSignature(item, f.cfg.Reasoning, f.duplicates.bands > 0)
	return inspection
}

// Add applies the filters that depend on earlier attempts. It returns the attempts that
// are now accepted: none, this one, or also earlier ones. Attempts on an instance must be
// added one after another, since Add applies limits per instance.
func (f *Filter) Add(inspection *Inspection) []*export.Item {
	f.startGroup(inspection.Item)
	f.stats.Attempts++
	if inspection.reason == "" {
		inspection.reason = f.compare(inspection)
	}
	if inspection.reason != "" {
		f.stats.addDropped(inspection.Item, inspection.reason)
		return nil
	}
	return f.accept(inspection)
}

// compare applies the filters for test sets and secrets, which Inspect has found, and those
// that depend on earlier attempts.
func (f *Filter) compare(inspection *Inspection) DropReason {
	if f.cfg.Training {
		f.testSets.add(inspection.testSet, inspection.Item.InstanceID)
		if inspection.testSet != "" && !f.cfg.AllowTestSets {
			return dropReason("test set", inspection.testSet)
		}
	}
	if len(inspection.secrets) > 0 {
		f.stats.addSecrets(inspection.secrets)
		if f.cfg.Secrets == SecretsDrop {
			return dropReason("secret", inspection.secrets[0].Kind)
		}
	}
	if f.cfg.MaxPerInstance > 0 && f.group.accepted >= f.cfg.MaxPerInstance {
		return dropReason("max per instance", "")
	}
	return f.checkDuplicate(inspection.Item, inspection.signature)
}

// Finish drops the attempts that are still held. It must be called after the last Add.
func (f *Filter) Finish() { f.endGroup() }

// Err returns an error if nothing may be exported, because there were attempts of test
// sets or, with SecretsRefuse, secrets.
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
