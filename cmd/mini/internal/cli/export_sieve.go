package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/runner/grade/suspect"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories/export/sieve"
)

// sieveFlags say which attempts are exported.
type sieveFlags struct {
	set      *pflag.FlagSet
	cfg      sieve.Config
	resolved bool
	// formatErrors is a bound where the flag is given.
	formatErrors     int
	secrets, splitBy string
	split            string
}

func (o *sieveFlags) flags(f *pflag.FlagSet) {
	o.set = f
	f.BoolVar(&o.resolved, "resolved", false, "keep only attempts that are resolved")
	f.StringSliceVar(&o.cfg.Verdicts, "verdict", nil, "keep only attempts with this verdict: resolved, unresolved ... or none")
	f.StringSliceVar(&o.cfg.Classes, "class", nil, "keep only attempts of this `CLASS`: submitted, limit ... (default for training: both)")
	f.StringSliceVar(&o.cfg.Repos, "repo", nil, "keep only this repository, as owner/name")
	f.StringSliceVar(&o.cfg.Models, "model", nil, "keep only attempts of this model; * is any text")
	f.BoolVar(&o.cfg.NoFlagged, "exclude-flagged", false, "drop attempts that are suspect in evaluation")
	f.StringSliceVar(&o.cfg.Flags, "flags", nil, "drop only attempts with these `FLAGS` of suspicion")
	f.Int64Var(&o.cfg.MaxTokens, "max-tokens", 0, "drop attempts with more than about this number of tokens")
	f.StringVar(&o.cfg.Tokenizer, "tokenizer", "", "how to count tokens: estimate (by their length)")
	f.IntVar(&o.cfg.MaxSteps, "max-steps", 0, "drop attempts with more model replies")
	f.IntVar(&o.cfg.MinSteps, "min-steps", 0, "drop attempts with fewer model replies")
	f.IntVar(&o.formatErrors, "max-format-errors", 0, "drop attempts with more replies in a wrong format (default any number)")
	f.IntVar(&o.cfg.PerInstance, "max-per-instance", 0, "keep at most this number of attempts for an instance")
	f.IntVar(&o.cfg.MinPerInstance, "min-per-instance", 0, "drop instances with fewer attempts")
	f.Float64Var(&o.cfg.Dedupe, "dedupe", 0, "drop attempts that are so similar to an earlier one, as 0.9")
	f.StringVar(&o.secrets, "secrets", string(sieve.Redact), "what to do with secrets: redact, drop or refuse")
	f.BoolVar(&o.cfg.AllowTests, "allow-test-split", false, "also make training data of test sets")
	f.StringVar(&o.split, "split", "", "write splits, as train=0.95,val=0.05")
	f.StringVar(&o.splitBy, "split-by", string(sieve.ByInstance), "what a split keeps together: instance or repo")
	f.Uint64Var(&o.cfg.Seed, "seed", 42, "seed of --split and --select random")
}

// sieve is what the flags ask for. training says what the rows are for,
// reasoning whether they hold the model's.
func (o *sieveFlags) sieve(training, reasoning bool) (*sieve.Sieve, error) {
	cfg := o.cfg
	cfg.Training, cfg.Reasoning = training, reasoning
	cfg.Secrets, cfg.SplitBy = sieve.Secrets(o.secrets), sieve.SplitBy(o.splitBy)
	if o.set.Changed("max-format-errors") {
		cfg.MaxFormatErrors = &o.formatErrors
	}
	if err := o.verdicts(&cfg); err != nil {
		return nil, err
	}
	cfg.NoFlagged = cfg.NoFlagged || len(cfg.Flags) > 0
	for _, flag := range cfg.Flags {
		if !slices.Contains(suspectFlags(), flag) {
			return nil, usagef("--flags %.60q is not one of %s", flag, strings.Join(suspectFlags(), ", "))
		}
	}
	if o.set.Changed("split-by") && !o.set.Changed("split") {
		return nil, usagef("--split-by is for --split, which is not given")
	}
	if o.set.Changed("split") {
		splits, err := sieve.ParseSplits(o.split)
		if err != nil {
			return nil, usagef("%w", err)
		}
		cfg.Splits, o.cfg.Splits = splits, splits
	}
	if err := loadDotenv(); err != nil {
		return nil, err
	}
	cfg.Known = knownSecrets(os.Environ())
	s, err := sieve.New(cfg)
	if err != nil {
		return nil, usagef("%w", err)
	}
	return s, nil
}

// The files of the report, in the folder of an export.
const (
	sieveJSON = "report.json"
	sieveText = "report.txt"
)

// writeSieveReport writes what was kept and what was not into a folder: for
// programs, and for people.
func writeSieveReport(dir string, r *sieve.Report) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := r.WriteText(&text, plainWidth); err != nil {
		return err
	}
	for name, data := range map[string][]byte{sieveJSON: append(data, '\n'), sieveText: text.Bytes()} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil { //nolint:gosec // results are for sharing
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

// verdicts checks the classes that were asked for.
func (o *sieveFlags) verdicts(cfg *sieve.Config) error {
	if o.resolved && len(cfg.Verdicts) > 0 {
		return usagef("--resolved is --verdict resolved: give one of them")
	}
	if o.resolved {
		cfg.Verdicts = []string{string(verdicts.Resolved)}
	}
	known := []string{}
	for _, c := range verdicts.Classes() {
		known = append(known, string(c))
	}
	known = append(known, "none")
	for _, v := range cfg.Verdicts {
		if !slices.Contains(known, v) {
			return usagef("--verdict %.60q is not one of %s", v, strings.Join(known, ", "))
		}
	}
	return nil
}

// suspectFlags are what an evaluation may find.
func suspectFlags() []string {
	var names []string
	for _, f := range suspect.Flags() {
		names = append(names, string(f))
	}
	return names
}

// knownSecrets are the values of variables whose names say that they are
// secret.
func knownSecrets(environ []string) []sieve.Known {
	var known []sieve.Known
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		isKey := configs.LooksSecret(name) || providerVariable.MatchString(name) &&
			!strings.HasSuffix(name, "_BASE_URL") && !strings.HasSuffix(name, "_MODEL")
		if isKey && value != "" {
			known = append(known, sieve.Known{Name: name, Value: value})
		}
	}
	slices.SortFunc(known, func(a, b sieve.Known) int { return strings.Compare(a.Name, b.Name) })
	return known
}
