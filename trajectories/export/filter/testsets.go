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

// A benchmark cannot measure a model that was trained on its instances. This file detects
// instances of test sets by their ID, by the official image of the attempt or, if IDs are
// not listed because the set grows, by the name of the dataset.
//
// testsets.txt lists the IDs of Verified, Lite, Multilingual and the dev split of
// Multimodal. The repositories of SWE-bench and of the test split of Multimodal are not in
// training sets, so every issue of them counts as an instance of the test set. Instances of
// the dev splits of SWE-bench and Lite are accepted. Those of the dev split of Multimodal
// are not: it is used to measure models, since the answers of the test split are not public.

// testsets.txt is written by go test -run TestOfficialIDs -update.
//
//go:embed testsets.txt
var testsets string

// wholeRepos are the repositories of which every issue counts, by test set.
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

// namedSets are test sets that are detected by name, which is the dataset name in lower
// case, with - for _ and without the organization, or by image, a prefix of the image name.
// A dataset name may continue after name with "-" and other text, unless exact is set.
var namedSets = []struct {
	set, name, image string
	exact            bool
}{
	{"SWE-bench-Live", "live", "", true},
	{"SWE-bench-Live", "swe-bench-live", "starryzhang/sweb.eval.", false},
	{"SWE-bench Pro", "swe-bench-pro", "jefzda/sweap-images", false},
	{"Multi-SWE-bench", "multi-swe-bench", "mswebench/", false},
	{"SWE-PolyBench", "swe-polybench", "", false},
	{"SWE-rebench leaderboard", "swe-rebench-leaderboard", "", false},
}

// listedIDs returns the test set by instance ID in lower case, for the IDs in testsets.txt.
var listedIDs = sync.OnceValue(func() map[string]string {
	all, set := map[string]string{}, ""
	for line := range strings.Lines(testsets) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "= "); ok {
			set = name
			continue
		}
		words := strings.Fields(line)
		for _, number := range words[min(1, len(words)):] {
			if id := words[0] + "-" + number; all[id] == "" { // an ID in several sets belongs to the first
				all[id] = set
			}
		}
	}
	return all
})

// officialImage matches the names of official evaluation images, which contain the
// instance ID.
var officialImage = lazyregexp.New(`(?:^|/)sweb\.eval\.[a-z0-9_]+\.([a-z0-9._-]+?)(?:[:@].*)?$`)

// testSet returns the test set of an attempt's instance, or "".
func testSet(item *export.Item) string {
	image := ""
	if item.Attempt != nil {
		image = strings.ToLower(item.Header.Image)
	}
	if set := testSetOfID(item.InstanceID); set != "" {
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
	return testSetOfDataset(item.Dataset)
}

// testSetOfID returns the test set of an instance ID, or "". The ID may have the form of
// an image name or of the URL of an issue, or be part of a longer name, such as the file
// name of an imported attempt.
func testSetOfID(id string) string {
	name := normalize(id)
	for _, span := range digits.FindAllStringIndex(name, -1) {
		prefix := strings.TrimSuffix(name[:span[0]], "-")
		for _, repo := range testRepos() {
			if prefix != repo.normalized && !strings.HasSuffix(prefix, "-"+repo.normalized) {
				continue
			}
			if set := listedIDs()[repo.id+"-"+name[span[0]:span[1]]]; set != "" {
				return set
			}
			if repo.wholeSet != "" {
				return repo.wholeSet
			}
		}
	}
	return ""
}

// digits matches the numbers in a normalized name.
var digits = lazyregexp.New(`\b[0-9]+\b`)

// separator matches the text between the parts of an ID, for example "__" or "/issues/".
// _1776_ stands for __ in image names.
var separator = lazyregexp.New(`_1776_|[^a-z0-9]+(?:(?:issues|pull|pr)[^a-z0-9]+)?`)

// normalize returns a name in lower case, with - as the separator of words.
func normalize(name string) string { return separator.ReplaceAllString(strings.ToLower(name), "-") }

// testRepo is a repository with instances in test sets.
type testRepo struct {
	id, normalized string // the part of instance IDs before the number, in two forms
	wholeSet       string // test set of every issue; empty if IDs are listed
}

// testRepos returns all repositories with instances in test sets, sorted by ID.
var testRepos = sync.OnceValue(func() []testRepo {
	all := map[string]testRepo{}
	for id := range listedIDs() {
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

// testSetOfDataset returns the test set of a dataset name, or "". If the name joins several
// datasets, such as "live+rows.jsonl", it returns the first test set.
func testSetOfDataset(dataset string) string {
	for part := range strings.SplitSeq(strings.ToLower(dataset), "+") {
		part = strings.TrimSpace(part)
		path, _, _ := strings.Cut(part, "@")
		name := path[strings.LastIndexAny(path, `/\`)+1:]
		isFile := extension.MatchString(name)
		name = strings.ReplaceAll(extension.ReplaceAllString(name, ""), "_", "-")
		for _, s := range namedSets {
			if name == s.name && (!isFile || !s.exact) || !s.exact && strings.HasPrefix(name, s.name+"-") {
				return s.set
			}
		}
		if strings.HasPrefix(path, "swe-bench-live/") {
			return "SWE-bench-Live"
		}
	}
	return ""
}

// testCounts counts the attempts and the instances of each test set.
type testCounts struct {
	attempts  map[string]int
	instances map[string]map[string]bool // by test set: the IDs
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

// err returns an error that lists the test sets, or nil if there are none.
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
