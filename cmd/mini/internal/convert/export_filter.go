package convert

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/ui"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/runner/grade/tampering"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories/export/filter"
)

// filterFlags are the flags that select attempts by their content, handle secrets and
// split the rows.
type filterFlags struct {
	flagSet  *pflag.FlagSet
	cfg      filter.Config
	resolved bool
	// formatErrors applies only if --max-format-errors is set.
	formatErrors     int
	secrets, splitBy string
	split            string
}

func (o *filterFlags) addFlags(f *pflag.FlagSet) {
	o.flagSet = f
	f.BoolVar(&o.resolved, "resolved", false, "keep only attempts that are resolved")
	f.StringSliceVar(&o.cfg.Verdicts, "verdict", nil, "keep only attempts with this verdict: resolved, unresolved ... or none")
	f.StringSliceVar(&o.cfg.Classes, "class", nil, "keep only attempts of this outcome `CLASS`: submitted, limit ... (default for training: both)")
	f.StringSliceVar(&o.cfg.Repos, "repo", nil, "keep only attempts on this repository, as owner/name")
	f.StringSliceVar(&o.cfg.Models, "model", nil, "keep only attempts of this model; * matches any text")
	f.BoolVar(&o.cfg.DropFlagged, "exclude-flagged", false, "drop attempts with a suspicious evaluation")
	f.StringSliceVar(&o.cfg.Flags, "flags", nil, "drop only attempts with these suspicion `FLAGS`")
	f.Int64Var(&o.cfg.MaxTokens, "max-tokens", 0, "drop attempts with more tokens (estimated)")
	f.StringVar(&o.cfg.Tokenizer, "tokenizer", "", "how to count tokens: estimate (by length)")
	f.IntVar(&o.cfg.MaxSteps, "max-steps", 0, "drop attempts with more model replies")
	f.IntVar(&o.cfg.MinSteps, "min-steps", 0, "drop attempts with fewer model replies")
	f.IntVar(&o.formatErrors, "max-format-errors", 0, "drop attempts with more format errors (default: no limit)")
	f.IntVar(&o.cfg.MaxPerInstance, "max-per-instance", 0, "keep at most this number of attempts per instance")
	f.IntVar(&o.cfg.MinPerInstance, "min-per-instance", 0, "drop instances with fewer attempts")
	f.Float64Var(&o.cfg.Dedupe, "dedupe", 0, "drop attempts with this similarity to an earlier one, such as 0.9")
	f.StringVar(&o.secrets, "secrets", string(filter.SecretsRedact), "what to do with secrets: redact, drop or refuse")
	f.BoolVar(&o.cfg.AllowTestSets, "allow-test-split", false, "allow test sets as training data")
	f.StringVar(&o.split, "split", "", "write splits, such as train=0.95,val=0.05")
	f.StringVar(&o.splitBy, "split-by", string(filter.ByInstance), "what a split keeps together: instance or repo")
	f.Uint64Var(&o.cfg.Seed, "seed", 42, "seed of --split and --select random")
}

// forTokens sets what holds for tokens: they cannot be redacted, equal attempts are samples of a group, and an attempt
// without a verdict is a row whose reward is not known, not one to leave out.
func (o *filterFlags) forTokens() error {
	o.cfg.Rollouts = true
	switch {
	case !o.flagSet.Changed("secrets"):
		o.secrets = string(filter.SecretsDrop)
	case o.secrets == string(filter.SecretsRedact):
		return usage.Errorf("--secrets redact: tokens cannot be redacted; use drop, the default for this format, or refuse")
	}
	if len(o.cfg.Classes) == 0 {
		o.cfg.Classes = filter.Classes()
	}
	return nil
}

// newFilter returns the filter that the flags describe. training is true for
// formats of training data; reasoning is true if the rows contain the model's
// reasoning. newFilter also stores the parsed splits in o.cfg.
func (o *filterFlags) newFilter(a *app.App, training, reasoning bool) (*filter.Filter, error) {
	cfg := o.cfg
	cfg.Training, cfg.Reasoning = training, reasoning
	cfg.Secrets, cfg.SplitBy = filter.SecretPolicy(o.secrets), filter.SplitBy(o.splitBy)
	if o.flagSet.Changed("max-format-errors") {
		cfg.MaxFormatErrors = &o.formatErrors
	}
	if err := o.setVerdicts(&cfg); err != nil {
		return nil, err
	}
	cfg.DropFlagged = cfg.DropFlagged || len(cfg.Flags) > 0
	for _, flag := range cfg.Flags {
		if known := names(tampering.Flags()); !slices.Contains(known, flag) {
			return nil, usage.Errorf("--flags %.60q is not one of %s", flag, strings.Join(known, ", "))
		}
	}
	if o.flagSet.Changed("split-by") && !o.flagSet.Changed("split") {
		return nil, usage.Errorf("--split-by requires --split")
	}
	if o.flagSet.Changed("split") {
		splits, err := filter.ParseSplits(o.split)
		if err != nil {
			return nil, usage.Errorf("%w", err)
		}
		cfg.Splits, o.cfg.Splits = splits, splits
	}
	if err := a.LoadDotenv(); err != nil {
		return nil, err
	}
	cfg.KnownSecrets = knownSecrets(os.Environ())
	f, err := filter.New(cfg)
	if err != nil {
		return nil, usage.Errorf("%w", err)
	}
	return f, nil
}

// Names of the files of the filter's report in the folder of an export.
const (
	filterReportJSON = "report.json"
	filterReportText = "report.txt"
)

// writeFilterReport writes the filter's report into a folder, as JSON and as
// text.
func writeFilterReport(dir string, r *filter.Report) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	text := []byte(r.Doc().Text(ui.DefaultWidth))
	for name, data := range map[string][]byte{filterReportJSON: append(data, '\n'), filterReportText: text} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil { //nolint:gosec // results may be world-readable
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

// setVerdicts sets and validates the verdicts of the attempts to keep.
func (o *filterFlags) setVerdicts(cfg *filter.Config) error {
	if o.resolved && len(cfg.Verdicts) > 0 {
		return usage.Errorf("--resolved means --verdict resolved; leave one of them out")
	}
	if o.resolved {
		cfg.Verdicts = []string{string(verdicts.Resolved)}
	}
	values := append(names(verdicts.Classes()), "none")
	for _, v := range cfg.Verdicts {
		if !slices.Contains(values, v) {
			return usage.Errorf("--verdict %.60q is not one of %s", v, strings.Join(values, ", "))
		}
	}
	return nil
}

// knownSecrets returns the non-empty variables of environ whose names show that their
// values are secret, sorted by name.
func knownSecrets(environ []string) []filter.KnownSecret {
	var secrets []filter.KnownSecret
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		isKey := configs.LooksSecret(name) || configs.ProviderVariable.MatchString(name) &&
			!strings.HasSuffix(name, "_BASE_URL") && !strings.HasSuffix(name, "_API_BASE") && !strings.HasSuffix(name, "_MODEL")
		if isKey && value != "" {
			secrets = append(secrets, filter.KnownSecret{Name: name, Value: value})
		}
	}
	slices.SortFunc(secrets, func(a, b filter.KnownSecret) int { return strings.Compare(a.Name, b.Name) })
	return secrets
}
