package sieve

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

// Who trains on the instances that models are measured by measures nothing any
// more. An instance is known by its id, by the official image that it ran in,
// or, for sets that grow or whose ids are not listed here, by the name of the
// dataset.
//
// The ids of Verified, Lite, Multilingual and of the dev part of Multimodal are
// listed (testsets.txt). Those of the whole of SWE-bench and of the test part of
// Multimodal are not: every issue of their repositories, which no training set
// takes from, counts as theirs. The dev parts of SWE-bench and Lite are for
// developing, and pass. That of Multimodal is what everybody measures with,
// since the answers of its test part are not published.

// testsets.txt is made by maketests.go, which says how.
//
//go:embed testsets.txt
var testsets string

// wholeRepos are the repositories of sets whose ids are not listed.
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

// namedSets are known by the name of the dataset, in small letters, with - for
// _, without what stands before the slash; images, by how their names begin.
var namedSets = []struct {
	set, name, image string
	alone            bool // nothing may follow the name
}{
	{"SWE-bench-Live", "live", "", true},
	{"SWE-bench-Live", "swe-bench-live", "starryzhang/sweb.eval.", false},
	{"SWE-bench Pro", "swe-bench-pro", "jefzda/sweap-images", false},
	{"Multi-SWE-bench", "multi-swe-bench", "mswebench/", false},
	{"SWE-PolyBench", "swe-polybench", "", false},
	{"SWE-rebench leaderboard", "swe-rebench-leaderboard", "", false},
}

// instances are the listed ids, in small letters, and whose they are.
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
			if id := words[0] + "-" + number; all[id] == "" { // the first set that has it names it
				all[id] = set
			}
		}
	}
	return all
})

// official matches the images of the official sets, and what they are for.
var official = lazyregexp.New(`(?:^|/)sweb\.eval\.[a-z0-9_]+\.([a-z0-9._-]+?)(?:[:@].*)?$`)

// testSet is the test set that an attempt's instance belongs to, if any.
func testSet(it *export.Item) string {
	image := ""
	if it.Transcript != nil {
		image = strings.ToLower(it.Header.Image)
	}
	if set := testID(it.InstanceID); set != "" {
		return set
	}
	if m := official.FindStringSubmatch(image); m != nil {
		if set := testID(m[1]); set != "" {
			return set
		}
	}
	for _, s := range namedSets {
		if s.image != "" && strings.HasPrefix(image, s.image) {
			return s.set
		}
	}
	return testDataset(it.Dataset)
}

// testID is the set of an instance by its id, which may be written as in the
// names of images, as the address of an issue, or stand within a longer name: an
// attempt that was imported is often called as its file was, for a run, a cost,
// and the instance at last.
func testID(id string) string {
	name := squashed(id)
	for _, at := range digits.FindAllStringIndex(name, -1) {
		before := strings.TrimSuffix(name[:at[0]], "-")
		for _, r := range testRepos() {
			if before != r.squashed && !strings.HasSuffix(before, "-"+r.squashed) {
				continue
			}
			if set := instances()[r.id+"-"+name[at[0]:at[1]]]; set != "" {
				return set
			}
			if r.whole != "" {
				return r.whole
			}
		}
	}
	return ""
}

// digits matches the numbers of a squashed name.
var digits = lazyregexp.New(`\b[0-9]+\b`)

// between matches what stands between the parts of an id, however it is written.
var between = lazyregexp.New(`_1776_|[^a-z0-9]+(?:(?:issues|pull|pr)[^a-z0-9]+)?`)

// squashed is a name in small letters, with one - between its words.
func squashed(name string) string { return between.ReplaceAllString(strings.ToLower(name), "-") }

// testRepo is a repository that test sets take instances from.
type testRepo struct {
	id, squashed string // as ids begin
	whole        string // the set that every issue counts as; empty where ids are listed
}

var testRepos = sync.OnceValue(func() []testRepo {
	all := map[string]testRepo{}
	for id := range instances() {
		id = id[:strings.LastIndexByte(id, '-')]
		all[id] = testRepo{id: id, squashed: squashed(id)}
	}
	for set, repos := range wholeRepos {
		for _, repo := range repos {
			id := strings.Replace(repo, "/", "__", 1)
			all[id] = testRepo{id, squashed(id), set}
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b testRepo) int { return strings.Compare(a.id, b.id) })
})

// extension is that of a file of rows.
var extension = lazyregexp.New(`\.(?:jsonl?|parquet|csv)(?:\.gz)?$`)

// testDataset goes by the name of what a run was on, as "live+rows.jsonl".
// Where several sets were given, an instance may be of any, and one is enough.
func testDataset(dataset string) string {
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

// tests counts what belongs to test sets.
type tests struct {
	attempts  map[string]int
	instances map[string]map[string]bool
}

func (t *tests) add(set, instance string) {
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

// refusal says how many attempts of which sets there are.
func (t *tests) refusal() error {
	if len(t.attempts) == 0 {
		return nil
	}
	var parts []string
	for _, set := range slices.Sorted(maps.Keys(t.attempts)) {
		parts = append(parts, fmt.Sprintf("%s on %s of %s",
			plural(t.attempts[set], "attempt"), plural(len(t.instances[set]), "instance"), set))
	}
	return fmt.Errorf("nothing is exported: this has instances of test sets: %s; models trained on test sets cannot be measured by them; "+
		"leave them out (--repo, or other runs), or give --allow-test-split", strings.Join(parts, ", "))
}
