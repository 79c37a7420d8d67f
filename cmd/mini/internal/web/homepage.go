package web

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/runner/runs"
)

// homePage is the data of the list of runs.
type homePage struct {
	Total   int
	Rows    []listedRun // those that the filter shows
	Filter  string
	Columns columns
}

// listedRun is a run in the list. A run that could not be read has only an Error.
type listedRun struct {
	Run      *run
	Snapshot *snapshot
	Name     string // in its group
	Group    string // the folder of a sweep; "" for none
	Heads    []*run // at the first run of a group: its runs that are listed
	Model    string
	Agent    string
	Started  time.Time
	Error    string
}

// newHomePage collects the runs, the newest first, those of a sweep together.
func (v *Viewer) newHomePage(filter, sort string) *homePage {
	all := v.all()
	p := &homePage{Total: len(all), Filter: filter}
	groups := map[string]int{}
	for _, r := range all {
		groups[path.Dir(r.Key)]++
	}
	for _, r := range all {
		row := newListedRun(r)
		if dir := path.Dir(r.Key); dir != "." && groups[dir] > 1 {
			row.Group, row.Name = dir, path.Base(r.Key)
		}
		if row.matches(filter) {
			p.Rows = append(p.Rows, row)
		}
	}
	p.sort(sort)
	p.group()
	return p
}

func newListedRun(r *run) listedRun {
	row := listedRun{Run: r, Name: r.Name}
	s, err := r.load()
	if err != nil {
		row.Error = err.Error()
		return row
	}
	m := s.Run.Manifest
	row.Snapshot, row.Model, row.Agent = s, cmp.Or(s.Summary.Model, "-"), cmp.Or(s.Compared.Settings["agent.agent_class"], "mini")
	if m.Model.Class == runs.ImportedClass {
		row.Agent = "imported"
	}
	if m.Profile != "" {
		row.Agent += ", " + m.Profile
	}
	if len(m.Sessions) > 0 {
		row.Started = m.Sessions[0].Started
	}
	return row
}

// matches reports whether the run has all words of a filter in one of its texts.
func (r listedRun) matches(filter string) bool {
	content := []string{r.Run.Name, r.Model, r.Agent, r.Error}
	if r.Snapshot != nil {
		content = append(content, r.Snapshot.Summary.Dataset, r.State())
	}
	all := strings.ToLower(strings.Join(content, "\n"))
	for word := range strings.FieldsSeq(strings.ToLower(filter)) {
		if !strings.Contains(all, word) {
			return false
		}
	}
	return true
}

// sort sorts the rows. Without a parameter the newest run is first.
func (p *homePage) sort(by string) {
	p.Columns = columns{by: cmp.Or(by, "-date"), all: []column{
		{Name: "name", Title: "run"},
		{Name: "dataset", Title: "dataset"},
		{Name: "model", Title: "model"},
		{Name: "agent", Title: "agent"},
		{Name: "date", Title: "started", Number: true},
		{Name: "resolved", Title: "resolved", Number: true},
		{Name: "cost", Title: "cost", Number: true},
		{Name: "state", Title: "state"},
	}}
	orders := map[string]func(a, b *snapshot) int{
		"dataset":  func(a, b *snapshot) int { return cmp.Compare(a.Summary.Dataset, b.Summary.Dataset) },
		"resolved": func(a, b *snapshot) int { return cmp.Compare(rateOf(a), rateOf(b)) },
		"cost":     func(a, b *snapshot) int { return cmp.Compare(a.Summary.Totals.Cost, b.Summary.Totals.Cost) },
	}
	rows := map[string]func(a, b listedRun) int{
		"model": func(a, b listedRun) int { return cmp.Compare(a.Model, b.Model) },
		"agent": func(a, b listedRun) int { return cmp.Compare(a.Agent, b.Agent) },
		"date":  func(a, b listedRun) int { return a.Started.Compare(b.Started) },
		"state": func(a, b listedRun) int { return cmp.Compare(a.State(), b.State()) },
	}
	for name, order := range orders {
		rows[name] = func(a, b listedRun) int {
			if a.Snapshot == nil || b.Snapshot == nil {
				return cmp.Compare(a.Error, b.Error)
			}
			return order(a.Snapshot, b.Snapshot)
		}
	}
	sortRows(p.Rows, p.Columns, rows, func(a, b listedRun) int { return cmp.Compare(a.Run.Name, b.Run.Name) })
}

// rateOf returns the share of instances that are resolved; -1 if it is unknown.
func rateOf(s *snapshot) float64 {
	if s.Stats.Rate.Instances == 0 {
		return -1
	}
	return s.Stats.Rate.Mean
}

// group moves the runs of a group behind the first of them.
func (p *homePage) group() {
	place, members := map[string]int{}, map[string][]*run{}
	for i, r := range p.Rows {
		if _, ok := place[r.Group]; !ok {
			place[r.Group] = i
		}
		members[r.Group] = append(members[r.Group], r.Run)
	}
	at := make(map[*run]int, len(p.Rows))
	for i, r := range p.Rows {
		at[r.Run] = i
		if r.Group != "" {
			at[r.Run] = place[r.Group]
		}
	}
	slices.SortStableFunc(p.Rows, func(a, b listedRun) int { return cmp.Compare(at[a.Run], at[b.Run]) })
	for i := range p.Rows {
		r := &p.Rows[i]
		if r.Group != "" && (i == 0 || p.Rows[i-1].Group != r.Group) {
			r.Heads = members[r.Group]
		}
	}
}

// State returns the state of the run.
func (r listedRun) State() string {
	if r.Snapshot == nil {
		return ""
	}
	return r.Snapshot.State()
}

// Rate returns the share of instances that are resolved with its interval, and Of says of how many.
func (r listedRun) Rate() string {
	c := r.Snapshot.Stats
	if c.Rate.Instances == 0 {
		return "not evaluated"
	}
	rate := unit.Percent(c.Rate.Mean)
	if i := c.Rate.Interval; i != nil {
		rate += " (" + unit.Range(i.Low, i.High) + ")"
	}
	return rate
}

// Of returns of how many instances the rate is.
func (r listedRun) Of() string {
	c := r.Snapshot.Stats
	if c.Rate.Instances == 0 {
		return text.Count(r.Snapshot.Summary.Instances, "instance")
	}
	return fmt.Sprintf("%d of %d", c.Resolved, c.Counted)
}

// Date returns the time of the start.
func (r listedRun) Date() string {
	if r.Started.IsZero() {
		return "-"
	}
	return r.Started.Local().Format("2006-01-02 15:04")
}
