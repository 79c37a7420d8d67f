package report

import (
	"cmp"
	"maps"
	"slices"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

// Unresolved groups the attempts that are not resolved by the reason. It covers
// the attempts that count: one for each repetition of an instance (-k). An
// attempt is in one group.
type Unresolved struct {
	// Attempts counts the attempts that count, Resolved the resolved ones.
	// PerInstance is the largest number of them at an instance.
	Attempts    int `json:"attempts"`
	Resolved    int `json:"resolved"`
	PerInstance int `json:"attempts_per_instance"`
	// Groups has the groups with an attempt: first the verdicts of the tests, then
	// the attempts without a verdict, then those without a result.
	Groups       []UnresolvedGroup `json:"groups"`
	Repositories []UnresolvedRepo  `json:"repositories"` // ordered by name
	Hindsight    *Hindsight        `json:"hindsight,omitempty"`
	// Datasets are those of the run or, if it names none, of its verdicts.
	Datasets []datasets.SourceInfo `json:"-"`
	// Unreadable has the errors of files that cannot be read.
	Unreadable []string `json:"-"`

	dir string // the run folder
}

// UnresolvedGroup is the attempts that are not resolved for the same reason.
type UnresolvedGroup struct {
	Name     string              `json:"name"`
	Title    string              `json:"title"`
	AtLimit  int                 `json:"at_limit"` // attempts that ended at a limit
	Attempts []UnresolvedAttempt `json:"attempts"`
}

// UnresolvedAttempt is an attempt that is not resolved.
type UnresolvedAttempt struct {
	ID         string `json:"instance_id"`
	Repetition int    `json:"sample,omitempty"`  // 0 if there is only one
	Number     int    `json:"attempt,omitempty"` // 0 if the patch was made elsewhere
	// FailToPass and PassToPass count the tests of these lists that fail.
	FailToPass int `json:"fail_to_pass_failed,omitempty"`
	PassToPass int `json:"pass_to_pass_failed,omitempty"`
	// GoldFiles lists the files of the gold patch that the attempt's patch does not
	// touch; see Hindsight.
	GoldFiles []string `json:"gold_files_not_touched,omitempty"`

	files string // folder of the test run, relative to the run folder; "" if none
}

// UnresolvedRepo counts the attempts at the instances of a repository.
type UnresolvedRepo struct {
	Name     string         `json:"repository"`
	Attempts int            `json:"attempts"`
	Resolved int            `json:"resolved"`
	Groups   map[string]int `json:"groups"` // by name
}

// unresolvedTitles lists the groups in the order of Unresolved.Groups.
var unresolvedTitles = []struct{ name, title string }{
	{"apply_failed", "the patch does not apply"},
	{"target", "target tests still fail"},
	{"regression", "target tests pass, other tests broke"},
	{"target_and_regression", "target tests fail, other tests broke"},
	{"no_test_results", "the log has no usable test results"},
	{"reward", "the reward of the tests is below 1"},
	{"tests_failed", "tests fail; which ones is not at hand"},
	{"timed_out", "the tests timed out"},
	{"unstable", "the tests pass in some runs only"},
	{"empty", "the patch is empty"},
	{"no_reward", "no verdict: the tests wrote no valid reward"},
	{noVerdict, "no verdict: the log parser crashed"},
	{"infrastructure", "no verdict: the machine failed"},
	{"not_evaluated", "not evaluated yet"},
	{string(trajectories.Provider), "no result: the model provider failed"},
	{string(trajectories.Environment), "no result: the sandbox failed"},
	{string(trajectories.Interrupted), "no result: interrupted"},
	{string(trajectories.Internal), "no result: a bug in mini"},
	{"other", "no result"},
	{"not_finished", "the attempt has not ended"},
}

// noVerdict is the first group of attempts without a verdict.
const noVerdict = "error"

// unresolved counts the attempts that have a verdict and are not resolved.
func (r UnresolvedRepo) unresolved() int {
	n := 0
	for _, t := range unresolvedTitles {
		if t.name == noVerdict {
			break
		}
		n += r.Groups[t.name]
	}
	return n
}

// HasVerdict reports whether an attempt has a verdict. If none has, counts of resolved
// attempts would look like a rate.
func (u *Unresolved) HasVerdict() bool {
	for _, t := range unresolvedTitles {
		if t.name == noVerdict {
			break
		}
		if slices.ContainsFunc(u.Groups, func(g UnresolvedGroup) bool { return g.Name == t.name }) {
			return true
		}
	}
	return u.Resolved > 0
}

// NewUnresolved groups the attempts of a run and, for instances of which the run
// has no attempt, the newest verdicts in its folder. If ids is not nil, it covers
// only these instances. It returns nil if there is no verdict. It opens no
// journals, and report.json only for verdicts of the class unresolved.
func NewUnresolved(run *runs.Run, set verdicts.Set, ids []string) *Unresolved {
	b := unresolvedBuilder{
		Unresolved: &Unresolved{
			Groups: []UnresolvedGroup{}, Repositories: []UnresolvedRepo{}, Datasets: run.Manifest.Dataset.Editions, dir: set.Dir,
		},
		recorded: set.Index(), groups: map[string]*UnresolvedGroup{}, repos: map[string]*UnresolvedRepo{},
	}
	var wanted map[string]bool
	if ids != nil {
		wanted = map[string]bool{}
		for _, id := range ids {
			wanted[id] = true
		}
	}
	seen := map[string]bool{}
	for _, in := range run.Instances {
		seen[in.ID] = true
		if ids == nil || wanted[in.ID] {
			b.addInstance(in)
		}
	}
	newest := b.recorded.Newest()
	if len(b.Datasets) == 0 && len(newest) > 0 {
		b.Datasets = newest[0].Basis.Editions
	}
	for _, v := range newest {
		if !seen[v.Instance] && (ids == nil || wanted[v.Instance]) {
			b.hasVerdict = true
			b.add(UnresolvedAttempt{ID: v.Instance, Repetition: max(1, v.Repetition)}, "", v.Class, &v)
		}
	}
	if !b.hasVerdict {
		return nil
	}
	return b.finish()
}

// unresolvedBuilder builds an Unresolved.
type unresolvedBuilder struct {
	*Unresolved
	recorded   verdicts.Index
	groups     map[string]*UnresolvedGroup
	repos      map[string]*UnresolvedRepo
	hasVerdict bool
}

// addInstance adds the attempts of an instance that count, and one for each
// repetition of which no attempt has ended.
func (b *unresolvedBuilder) addInstance(in runs.Instance) {
	ended := map[int]bool{}
	for _, r := range in.Repetitions {
		ended[r.Repetition] = true
		a := UnresolvedAttempt{ID: in.ID, Repetition: r.Repetition, Number: r.Attempt}
		if !r.Class.IsResult() {
			b.add(a, r.Class, "", nil)
			continue
		}
		var class verdicts.Class
		if r.Verdict != nil {
			class = verdicts.Class(*r.Verdict)
		}
		v := b.recorded.Find(in.ID, r.Repetition, r.PatchBytes, class)
		if v != nil {
			class = v.Class
		}
		b.hasVerdict = b.hasVerdict || class != ""
		b.add(a, r.Class, class, v)
	}
	for _, a := range slices.Backward(in.Attempts) { // the newest attempt of a repetition
		if !ended[a.Repetition] {
			ended[a.Repetition] = true
			b.add(UnresolvedAttempt{ID: in.ID, Repetition: a.Repetition, Number: a.Number}, "not_finished", "", nil)
		}
	}
}

// add adds an attempt. outcome is the class of its outcome, "" if it was made
// elsewhere, and class that of its verdict, "" if there is none. v is the record of
// the verdict; it may be nil.
func (b *unresolvedBuilder) add(a UnresolvedAttempt, outcome trajectories.Class, class verdicts.Class, v *verdicts.Verdict) {
	name := cmp.Or(datasets.RepoOf(a.ID), datasets.OtherRepos)
	repo := b.repos[name]
	if repo == nil {
		repo = &UnresolvedRepo{Name: name, Groups: map[string]int{}}
		b.repos[name] = repo
	}
	b.Attempts++
	repo.Attempts++
	b.PerInstance = max(b.PerInstance, a.Repetition)
	if class == verdicts.Resolved {
		b.Resolved++
		repo.Resolved++
		return
	}
	if v != nil {
		a.files = v.VerdictDir()
	}
	group := string(cmp.Or(trajectories.Class(class), outcome))
	switch {
	case class == verdicts.Unresolved:
		group = b.groupOfTests(&a, v)
	case class == verdicts.Error && v != nil && v.Kind == verdicts.KindHarbor:
		group = "no_reward"
	case class == "" && outcome.IsResult():
		group = "not_evaluated"
	}
	if !slices.ContainsFunc(unresolvedTitles, func(t struct{ name, title string }) bool { return t.name == group }) {
		group = "other" // results.json is not trusted
	}
	g := b.groups[group]
	if g == nil {
		g = &UnresolvedGroup{Name: group}
		b.groups[group] = g
	}
	if outcome == trajectories.Limit {
		g.AtLimit++
	}
	g.Attempts = append(g.Attempts, a)
	repo.Groups[group]++
}

// groupOfTests returns the group of an attempt whose tests failed, and counts
// these tests.
func (b *unresolvedBuilder) groupOfTests(a *UnresolvedAttempt, v *verdicts.Verdict) string {
	if v == nil {
		return "tests_failed"
	}
	if v.Kind == verdicts.KindHarbor {
		return "reward"
	}
	if run := v.VerdictRun(); run == nil || run.Failed == 0 {
		return "no_test_results"
	}
	failed, err := verdicts.ReadFailedTests(b.dir, a.files, a.ID)
	if err != nil {
		b.Unreadable = append(b.Unreadable, err.Error())
	}
	if failed == nil {
		return "tests_failed"
	}
	a.FailToPass, a.PassToPass = len(failed.FailToPass), len(failed.PassToPass)
	switch {
	case a.PassToPass == 0:
		return "target"
	case a.FailToPass == 0:
		return "regression"
	}
	return "target_and_regression"
}

// finish sets Groups and Repositories.
func (b *unresolvedBuilder) finish() *Unresolved {
	for _, t := range unresolvedTitles {
		g := b.groups[t.name]
		if g == nil {
			continue
		}
		g.Title = t.title
		slices.SortStableFunc(g.Attempts, func(a, b UnresolvedAttempt) int {
			return cmp.Or(datasets.CompareNatural(a.ID, b.ID), cmp.Compare(a.Repetition, b.Repetition))
		})
		for i := range g.Attempts {
			if b.PerInstance <= 1 {
				g.Attempts[i].Repetition = 0
			}
		}
		b.Groups = append(b.Groups, *g)
	}
	for _, name := range slices.SortedFunc(maps.Keys(b.repos), datasets.CompareNatural) {
		b.Repositories = append(b.Repositories, *b.repos[name])
	}
	return b.Unresolved
}
