package sieve

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/export"
)

// Config says what passes. The zero value passes everything, and looks for
// secrets by their shape.
type Config struct {
	// Training says that the rows train models: test sets are refused, and
	// without Classes only attempts pass whose outcome counts.
	Training bool
	// AllowTests lets the instances of test sets through all the same.
	AllowTests bool

	// Verdicts, Classes (of outcomes), Repos ("owner/name", in any case) and
	// Models (with or without what stands before the last slash; * is any text)
	// are what passes; all where there are none. "none" is no verdict, or no
	// outcome.
	Verdicts, Classes, Repos, Models []string
	// NoFlagged drops what the evaluation found suspect; with Flags, only where
	// it is one of these.
	NoFlagged bool
	Flags     []string

	// Tokenizer counts tokens; empty is what the provider said, and with
	// MaxTokens Estimated.
	Tokenizer string
	MaxTokens int64 // 0 is no bound, as below
	// Reasoning says that rows hold the model's reasoning: it is counted and
	// compared too.
	Reasoning          bool
	MinSteps, MaxSteps int
	// MaxFormatErrors of nil is no bound.
	MaxFormatErrors             *int
	MinPerInstance, PerInstance int

	// Dedupe is from which likeness on (0 to 1) the later of two attempts is
	// dropped; 0 drops none. Exact copies are named in any case.
	Dedupe float64

	// Secrets is what becomes of them; empty is Redact.
	Secrets Secrets
	// Known are values that are secret, as those of this machine's keys.
	Known []Known

	// Splits by SplitBy; none is one split without a name.
	Splits  []Split
	SplitBy SplitBy
	Seed    uint64
}

// Estimated is the tokenizer of a report whose tokens are estimated from lengths.
const Estimated = "estimate"

// none stands for a verdict or an outcome that is not there.
const none = "none"

// Sieve is one pass over the attempts of an export. Look and SplitOf are safe
// for concurrent use; the rest is for one goroutine.
type Sieve struct {
	cfg     Config
	scanner *scanner
	seen    *duplicates
	group   group
	met     tests // attempts of test sets
	report  *books
}

// New checks the configuration. Its errors are one line each, and say what to
// write instead; flags are named as mini export has them.
func New(cfg Config) (*Sieve, error) {
	s := &Sieve{cfg: cfg}
	if err := s.check(); err != nil {
		return nil, err
	}
	var err error
	if s.scanner, err = newScanner(cfg.Known); err != nil {
		return nil, err
	}
	s.seen = newDuplicates(cfg.Dedupe)
	s.report = newBooks(cfg, s.scanner.passed)
	return s, nil
}

func (s *Sieve) check() error {
	c := &s.cfg
	for _, class := range c.Classes {
		if !slices.Contains(Classes(), class) {
			return fmt.Errorf("--class %s is not one of %s", quoted(class), strings.Join(Classes(), ", "))
		}
	}
	switch {
	case c.MaxTokens < 0 || c.MinSteps < 0 || c.MaxSteps < 0 || c.MinPerInstance < 0 || c.PerInstance < 0:
		return errors.New("bounds are numbers from 0 on; 0 is none")
	case c.MaxFormatErrors != nil && *c.MaxFormatErrors < 0:
		return errors.New("--max-format-errors is a number from 0 on")
	case c.MaxSteps > 0 && c.MinSteps > c.MaxSteps:
		return fmt.Errorf("--min-steps %d is more than --max-steps %d: nothing would be left", c.MinSteps, c.MaxSteps)
	case c.PerInstance > 0 && c.MinPerInstance > c.PerInstance:
		return fmt.Errorf("--min-per-instance %d is more than --max-per-instance %d: nothing would be left", c.MinPerInstance, c.PerInstance)
	case c.MinPerInstance > maxHeld:
		return fmt.Errorf("--min-per-instance is at most %d: so many attempts are held in memory", maxHeld)
	case !(c.Dedupe >= 0 && c.Dedupe <= 1): // NaN too
		return fmt.Errorf("--dedupe %v is a likeness from 0 to 1, as 0.9", c.Dedupe)
	case c.Dedupe > 0 && c.Dedupe < leastLikeness:
		return fmt.Errorf("--dedupe %v would drop what is hardly alike: from %v on", c.Dedupe, leastLikeness)
	case !slices.Contains(append(secretModes(), ""), string(c.Secrets)):
		return fmt.Errorf("--secrets %s is not one of %s", quoted(string(c.Secrets)), strings.Join(secretModes(), ", "))
	}
	c.Secrets = cmp.Or(c.Secrets, Redact)
	switch c.Tokenizer {
	case "", Estimated, "o200k_base", "cl100k_base": // the last two had counted once
	default:
		return fmt.Errorf("--tokenizer %s is not known; there is %s", quoted(c.Tokenizer), Estimated)
	}
	if c.MaxTokens > 0 || c.Tokenizer != "" {
		c.Tokenizer = Estimated
	}
	return checkSplits(c.Splits, c.SplitBy)
}

// quoted bounds and quotes what somebody wrote.
func quoted(s string) string { return fmt.Sprintf("%.60q", s) }

// Classes are the outcome classes that may be asked for.
func Classes() []string {
	return []string{
		string(trajectories.Submitted), string(trajectories.Limit), string(trajectories.Provider), string(trajectories.Environment),
		string(trajectories.Interrupted), string(trajectories.Internal), none,
	}
}

// Look is what is found of one attempt alone. Make it with Sieve.Look.
type Look struct {
	Item      *export.Item
	drop      Reason
	signature signature
	secrets   []Found
	test      string // the test set that it belongs to
}

// Look judges an attempt alone: it filters, counts its tokens (into the item),
// looks for secrets and takes them out of the item, and makes its signature.
// The heavy work is here, and may be done for several attempts at once.
func (s *Sieve) Look(it *export.Item) *Look {
	l := &Look{Item: it}
	if l.drop = s.filterGlance(it); l.drop != "" {
		return l
	}
	if l.drop = s.filter(it); l.drop != "" {
		return l
	}
	l.test = testSet(it)
	l.secrets = s.scanner.clean(it, s.cfg.Training)
	l.signature = sign(it, s.cfg.Reasoning, s.seen.bands > 0)
	return l
}

// Take puts an attempt in its place after those before it, and says what is
// kept now: nothing, this one, or also some that waited for it. Attempts of an
// instance have to come in a row for bounds per instance to be right.
func (s *Sieve) Take(l *Look) []*export.Item {
	s.startGroup(l.Item)
	s.report.attempts++
	if l.drop == "" {
		l.drop = s.place(l)
	}
	if l.drop != "" {
		s.report.drop(l.Item, l.drop)
		return nil
	}
	return s.release(l)
}

// place is the part of the judgement that looks at the others.
func (s *Sieve) place(l *Look) Reason {
	if s.cfg.Training {
		s.met.add(l.test, l.Item.InstanceID)
		if l.test != "" && !s.cfg.AllowTests {
			return because("test set", l.test)
		}
	}
	if len(l.secrets) > 0 {
		s.report.secrets(l.secrets)
		if s.cfg.Secrets == Drop {
			return because("secret", l.secrets[0].Kind)
		}
	}
	if s.cfg.PerInstance > 0 && s.group.kept >= s.cfg.PerInstance {
		return because("max per instance", "")
	}
	return s.duplicate(l.Item, l.signature)
}

// End says that nothing more comes.
func (s *Sieve) End() { s.endGroup() }

// Refusal is why nothing may be exported: attempts of a test set that nobody
// allowed, or secrets where they mean refusing. It is one line.
func (s *Sieve) Refusal() error {
	if s.cfg.Training && !s.cfg.AllowTests {
		if err := s.met.refusal(); err != nil {
			return err
		}
	}
	if s.cfg.Secrets == Refuse {
		return s.report.secretRefusal()
	}
	return nil
}
