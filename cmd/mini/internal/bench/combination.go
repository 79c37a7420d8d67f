package bench

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/internal/rootdir"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/runner"
)

// maxCombinations is the maximum number of combinations of a sweep.
const maxCombinations = 100

// Limits of folder names, in bytes. File systems allow 255.
const (
	maxValueName       = 40
	maxCombinationName = 200
)

// combination is one combination of the values of a sweep.
type combination struct {
	name     string            // of the folder
	values   string            // the values as in the name, without the keys
	settings map[string]string // values by key
	layers   []configs.Layer
}

// combine returns all combinations of the values. The last setting varies fastest.
func combine(vary []configs.Varied) ([]combination, error) {
	n := 1
	for _, v := range vary {
		if n *= len(v.Values); n > maxCombinations {
			return nil, usage.Errorf("the values of --vary or vary have more than %d combinations; leave some out, or run several sweeps", maxCombinations)
		}
	}
	labels := shortKeys(vary)
	all := []combination{{}}
	for i, v := range vary {
		var longer []combination
		for _, c := range all {
			for _, value := range v.Values {
				next := combination{settings: map[string]string{v.Key: value.Text}, layers: append(slices.Clip(c.layers), value.Layer)}
				for key, text := range c.settings {
					next.settings[key] = text
				}
				text := fileName(value.Text, maxValueName)
				next.name = strings.TrimPrefix(c.name+","+labels[i]+"="+text, ",")
				next.values = strings.TrimPrefix(c.values+","+text, ",")
				longer = append(longer, next)
			}
		}
		all = longer
	}
	seen := map[string]bool{}
	for i := range all {
		all[i].name = limitName(all[i].name, all[i].name, maxCombinationName)
		folded := strings.ToLower(all[i].name) // some file systems ignore case
		if seen[folded] {
			return nil, usage.Errorf("two combinations have the folder name %s; leave one of the values out", all[i].name)
		}
		seen[folded] = true
	}
	return all, nil
}

// shortKeys returns, for each setting, the shortest end of its key that no other varied key has:
// model_name for model.model_name.
func shortKeys(vary []configs.Varied) []string {
	labels := make([]string, len(vary))
	for i, v := range vary {
		parts := strings.Split(v.Key, ".")
		for n := len(parts) - 1; n >= 0; n-- {
			labels[i] = strings.Join(parts[n:], ".")
			if !slices.ContainsFunc(vary, func(o configs.Varied) bool { return o.Key != v.Key && strings.HasSuffix("."+o.Key, "."+labels[i]) }) {
				break
			}
		}
		labels[i] = fileName(labels[i], maxValueName)
	}
	return labels
}

// unsafeChars matches characters that need quotes in a shell, or separate the parts of a name.
var unsafeChars = lazyregexp.New(`[^A-Za-z0-9._+-]+`)

// fileName returns a text as part of a file name. If that is not the text itself, it ends in a
// hash of the text, so that the names of different texts differ.
func fileName(s string, limit int) string {
	if s == "" {
		return "empty"
	}
	return limitName(unsafeChars.ReplaceAllString(s, "-"), s, limit)
}

// limitName limits a name and, if it is not equal to s then, adds a hash of s.
func limitName(name, s string, limit int) string {
	if len(name) > limit {
		name = name[:limit]
	}
	if name == s && name != "" {
		return name
	}
	sum := sha256.Sum256([]byte(s))
	return name + "-" + hex.EncodeToString(sum[:4])
}

// maxConfig limits the size of a config.yaml, in bytes.
const maxConfig = 16 << 20

// reuseFolders gives a job whose combination has no folder in dir the name of a run in dir that has
// the same settings and no other combination's name. So a sweep that varies one more setting does not
// repeat the runs that have one of its values.
func reuseFolders(dir string, jobs []*Job) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open sweep: %w", err)
	}
	root, err := rootdir.Open(dir)
	if err != nil {
		return fmt.Errorf("open sweep: %w", err)
	}
	defer root.Close()              //nolint:errcheck // only read
	existing := map[string][]byte{} // configurations by folder name
	for _, e := range entries {
		if config, err := root.ReadFile(filepath.Join(dir, e.Name(), datasets.ConfigFile), maxConfig); err == nil {
			existing[e.Name()] = config
		}
	}
	var missing []*Job
	for _, j := range jobs {
		if existing[j.name()] == nil {
			missing = append(missing, j)
		}
		delete(existing, j.name())
	}
	for _, name := range slices.Sorted(maps.Keys(existing)) {
		i := slices.IndexFunc(missing, func(j *Job) bool {
			config, err := j.Config.YAML()
			return err == nil && runner.SameSettings(existing[name], config)
		})
		if i >= 0 {
			missing[i].combination.name = name
			missing = slices.Delete(missing, i, i+1)
		}
	}
	return nil
}

// varied returns the settings that --vary and the files of -c vary; --vary replaces the values of a
// file. It returns an error for a setting that cannot vary, or that a flag or -c KEY=VALUE sets, too.
func (o *Options) varied(a *app.App) ([]configs.Varied, error) {
	err := a.LoadDotenv()
	if err == nil {
		err = o.Collect(o.BuiltinConfigs()...)
	}
	var overlay *configs.Overlay
	if err == nil {
		overlay, err = o.Overlay(o.BuiltinConfigs()...)
	}
	switch {
	case err != nil && len(o.vary) == 0:
		return nil, nil // resolve returns this error, after those that it finds before
	case err != nil:
		return nil, err
	}
	vary := overlay.Vary()
	fromFlags := map[string]bool{}
	for _, arg := range o.vary {
		v, err := configs.ParseVaried(arg)
		switch {
		case err != nil:
			return nil, err
		case fromFlags[v.Key]:
			return nil, usage.Errorf("%s is given twice; list all its values in one --vary", v.Origin)
		}
		fromFlags[v.Key] = true
		vary = v.AddTo(vary)
	}
	for _, v := range vary {
		for _, value := range v.Values {
			for _, key := range value.Layer.Keys() {
				if !canVary(key) {
					return nil, usage.Errorf("%s: %s is the same for all combinations of a sweep; set it with its flag or -c", v.Origin, key)
				}
			}
		}
		isFlag := func(layer string) bool {
			return strings.HasPrefix(layer, "-c ") || strings.HasPrefix(layer, "--") && !strings.HasPrefix(layer, "--profile ")
		}
		if origin, ok := overlay.IsSet(v.Key, isFlag); ok {
			return nil, usage.Errorf("%s: %s sets it, too; leave one out", v.Origin, origin)
		}
	}
	return vary, nil
}

// canVary reports whether a setting can vary in a sweep: it affects the results, and does not
// belong to what all combinations share.
func canVary(key string) bool {
	return runner.AffectsResults(key) && key != "environment.helper_dir" && key != "environment.pull_timeout"
}

// name returns the name of the combination; "" without a sweep.
func (j *Job) name() string {
	if j.combination == nil {
		return ""
	}
	return j.combination.name
}

// topFolder returns the folder of -o: that of the run, or the one with the runs of a sweep.
func (j *Job) topFolder() string {
	if j.combination == nil {
		return j.Dir
	}
	return filepath.Dir(j.Dir)
}

// nameForNotes returns the folder for notes about the job. It is the same for all combinations, so
// that a note is printed once.
func (j *Job) nameForNotes() string {
	if j.combination == nil {
		return j.Dir
	}
	return filepath.Join(j.topFolder(), "COMBINATION")
}

// located adds the combination to an error.
func (j *Job) located(err error) error {
	if err == nil || j.combination == nil {
		return err
	}
	return fmt.Errorf("combination %s: %w", j.combination.name, err)
}

// combinationsText returns the number of combinations in words.
func combinationsText(n int) string { return text.Count(n, "combination") }
