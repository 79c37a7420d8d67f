package filter

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/trajectories/export"
)

// Models that were trained on the instances of a benchmark cannot be measured by it.
// An instance of a test set is detected by its ID, by the official image of the
// attempt, or by the name of the dataset, for test sets that grow or whose IDs are
// not listed.
//
// testsets.txt lists the IDs of Verified, Lite, Multilingual and the dev split of
// Multimodal. For SWE-bench and the test split of Multimodal, every issue of their
// repositories counts, since no training set uses these repositories. The dev splits
// of SWE-bench and Lite are accepted. That of Multimodal is not, since it is used for
// measuring: the answers of the test split are not public.

// testsets.txt is written by maketestsets.go.
//
//go:embed testsets.txt
var testsets string

// wholeRepos are the repositories of test sets whose IDs are not listed.
var wholeRepos = map[string][]string{
	"SWE-bench": {
		"astropy/astropy", "django/django", "matplotlib/matplotlib", "mwaskom/seaborn", "pallets/flask", "psf/requests",
		"pydata/xarray", "pylint-dev/pylint", "pytest-dev/pytest", "scikit-learn/scikit-learn", "sphinx-doc/sphinx", "sympy/sympy",
	},
	"SWE-bench Multimodal": {
		"alibaba-fusion/next", "bpmn-io/bpmn-js", "carbon-design-system/carbon", "eslint/eslint", "googlechrome/lighthouse",
		"grommet/grommet", "highlightjs/highlight.js", "openlayers/openlayers", "prettier/prettier", "prismjs/prism",
		"quarto-dev/quarto-cli", "scratchfoundation/scratch-gui",
	},
}

// namedSets are test sets that are detected by dataset name (lower case, - for _,
// without the organization) or by image prefix.
var namedSets = []struct {
	set, name, image string
	alone            bool // the name must match exactly
}{
	{"SWE-bench-Live", "live", "", true},
	{"SWE-bench-Live", "swe-bench-live", "starryzhang/sweb.eval.", false},
	{"SWE-bench Pro", "swe-bench-pro", "jefzda/sweap-images", false},
	{"Multi-SWE-bench", "multi-swe-bench", "mswebench/", false},
	{"SWE-PolyBench", "swe-polybench", "", false},
	{"SWE-rebench leaderboard", "swe-rebench-leaderboard", "", false},
}

// instances maps the listed IDs, in lower case, to their test set.
var instances = sync.OnceValue(func() map[string]string {
	all, set := map[string]string{}, ""
	for line := range strings.Lines(testsets) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "= "); ok {
			set = name
			continue
		}
		words := strings.Fields(line)
		for _, number := range words[min(1, len(words)):] {
			if id := words[0] + "-" + number; all[id] == "" { // an ID in several sets gets the first one
				all[id] = set
			}
		}
	}
	return all
})

// officialImage matches the official evaluation images.
var officialImage = lazyregexp.New(`(?:^|/)sweb\.eval\.[a-z0-9_]+\.([a-z0-9._-]+?)(?:[:@].*)?$`)

// testSet returns the test set of an attempt's instance, or "".
func testSet(it *export.Item) string {
	image := ""
	if it.Transcript != nil {
		image = strings.ToLower(it.Header.Image)
	}
	if set := testSetOfID(it.InstanceID); set != "" {
		return set
	}
	if m := officialImage.FindStringSubmatch(image); m != nil {
		if set := testSetOfID(m[1]); set != "" {
			return set
		}
	}
	for _, s := range namedSets {
		if s.image != "" && strings.HasPrefix(image, s.image) {
			return s.set
		}
	}
	return testSetOfDataset(it.Dataset)
}

// testSetOfID returns the test set of an instance ID. The ID may be written as in
// image names, as the URL of an issue, or be part of a longer name, such as the file
// name of an imported attempt.
func testSetOfID(id string) string {
	name := normalize(id)
	for _, at := range digits.FindAllStringIndex(name, -1) {
		prefix := strings.TrimSuffix(name[:at[0]], "-")
		for _, r := range testRepos() {
			if prefix != r.normalized && !strings.HasSuffix(prefix, "-"+r.normalized) {
				continue
			}
			if set := instances()[r.id+"-"+name[at[0]:at[1]]]; set != "" {
				return set
			}
			if r.wholeSet != "" {
				return r.wholeSet
			}
		}
	}
	return ""
}

// digits matches the numbers in a normalized name.
var digits = lazyregexp.New(`\b[0-9]+\b`)

// separator matches the text between the parts of an ID.
var separator = lazyregexp.New(`_1776_|[^a-z0-9]+(?:(?:issues|pull|pr)[^a-z0-9]+)?`)

// normalize returns a name in lower case, with words separated by -.
func normalize(name string) string { return separator.ReplaceAllString(strings.ToLower(name), "-") }

// testRepo is a repository with instances in test sets.
type testRepo struct {
	id, normalized string // the prefix of IDs
	wholeSet       string // test set of every issue; empty if IDs are listed
}

var testRepos = sync.OnceValue(func() []testRepo {
	all := map[string]testRepo{}
	for id := range instances() {
		id = id[:strings.LastIndexByte(id, '-')]
		all[id] = testRepo{id: id, normalized: normalize(id)}
	}
	for set, repos := range wholeRepos {
		for _, repo := range repos {
			id := strings.Replace(repo, "/", "__", 1)
			all[id] = testRepo{id, normalize(id), set}
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b testRepo) int { return strings.Compare(a.id, b.id) })
})

// extension matches the extension of a dataset file.
var extension = lazyregexp.New(`\.(?:jsonl?|parquet|csv)(?:\.gz)?$`)

// testSetOfDataset returns the test set of a dataset name such as "live+rows.jsonl".
// If it names several datasets, one test set is enough.
func testSetOfDataset(dataset string) string {
	for part := range strings.SplitSeq(strings.ToLower(dataset), "+") {
		part = strings.TrimSpace(part)
		org, _, _ := strings.Cut(part, "@")
		name := org[strings.LastIndexAny(org, `/\`)+1:]
		file := extension.MatchString(name)
		name = strings.ReplaceAll(extension.ReplaceAllString(name, ""), "_", "-")
		for _, s := range namedSets {
			if name == s.name && (!file || !s.alone) || !s.alone && strings.HasPrefix(name, s.name+"-") {
				return s.set
			}
		}
		if strings.HasPrefix(org, "swe-bench-live/") {
			return "SWE-bench-Live"
		}
	}
	return ""
}

// testCounts counts the attempts of test sets.
type testCounts struct {
	attempts  map[string]int
	instances map[string]map[string]bool
}

func (t *testCounts) add(set, instance string) {
	if set == "" {
		return
	}
	if t.attempts == nil {
		t.attempts, t.instances = map[string]int{}, map[string]map[string]bool{}
	}
	if t.instances[set] == nil {
		t.instances[set] = map[string]bool{}
	}
	t.attempts[set]++
	t.instances[set][instance] = true
}

// err returns an error that describes the test sets.
func (t *testCounts) err() error {
	if len(t.attempts) == 0 {
		return nil
	}
	var parts []string
	for _, set := range slices.Sorted(maps.Keys(t.attempts)) {
		parts = append(parts, fmt.Sprintf("%s on %s of %s",
			plural(t.attempts[set], "attempt"), plural(len(t.instances[set]), "instance"), set))
	}
	return fmt.Errorf("nothing was exported: found instances of test sets: %s; models trained on test sets cannot be measured by them; "+
		"exclude them (--repo, or other runs), or use --allow-test-split", strings.Join(parts, ", "))
}
