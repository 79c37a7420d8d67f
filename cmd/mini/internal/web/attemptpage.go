package web

import (
	"encoding/json"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/query"
	"github.com/minibench/mini/trajectories/timeline"
)

// attemptPage is the data of the page of an attempt.
type attemptPage struct {
	Run            *run
	ID             string
	Number         int // of the attempt
	Row            report.Row
	Attempt        attemptSummary
	Others         []attemptSummary // all attempts of the instance
	Position, Of   int              // of the instance among all
	Previous, Next string           // ids of the neighbouring instances; "" if there is none
	Unlisted       string           // steps of the result that are not in the list; "" for none
	Limit          string           // the limit that ended the attempt, if it is known
	Damage         error
	Tokens         *report.TokenAttempt // nil if no reply has token ids
	PatchSource    string               // where the patch comes from, or why there is none
	Outline        []stepView
	Chunks         []chunk
	Milestones     []milestone
	timeline       *timeline.Timeline
	Added          []addedLine // lines of the patch, with their steps
	MoreAdded      int
	Failing        []testSteps // failing tests
	Gold           string
	HasGold        bool
	Step           string // the step of the address; "" if there is none
	Query          string
	Hits           []string // names of the steps that contain Query
	Live           bool
}

// Times draws the timeline of the attempt with the addresses of l; "" if there is nothing to draw.
func (p *attemptPage) Times(l links) template.HTML {
	if p.timeline == nil {
		return ""
	}
	return drawTimeline(p.timeline, p.Milestones, func(step string) string { return l.Step(p.Run, p.ID, p.Number, step) })
}

// HasHindsight reports whether a milestone follows from what the agent does not see.
func (p *attemptPage) HasHindsight() bool {
	return slices.ContainsFunc(p.Milestones, func(m milestone) bool { return m.Hindsight })
}

// newAttemptHead collects what is known of an attempt without its journal, and returns the
// snapshot of the run.
func (v *Viewer) newAttemptHead(r *run, id string, number int) (*attemptPage, *snapshot, error) {
	s, in, err := r.find(id)
	if err != nil {
		return nil, nil, err
	}
	attempts := in.AllAttempts()
	i := slices.IndexFunc(attempts, func(a runs.Attempt) bool { return a.Number == number })
	if i < 0 {
		return nil, nil, errNotFound
	}
	p := &attemptPage{Run: r, Number: number, ID: id}
	for _, a := range attempts {
		p.Others = append(p.Others, attemptSummary{Attempt: a, Cell: newCell(a.Number, a.Result)})
	}
	p.Attempt = p.Others[i]
	neighbours := instancePage{Run: r, ID: id}
	neighbours.setNeighbours(s)
	p.Position, p.Of, p.Previous, p.Next = neighbours.Position, neighbours.Of, neighbours.Previous, neighbours.Next
	for _, row := range s.Summary.Rows {
		if row.ID == id {
			p.Row = row
		}
	}
	return p, s, nil
}

// newAttemptPage collects the data of an attempt. step is the name of the step to show, q a text
// to search for. If all is set, all chunks are loaded, otherwise the first and that of the step.
func (v *Viewer) newAttemptPage(r *run, id string, number int, step, q string, all bool) (*attemptPage, error) {
	p, s, err := v.newAttemptHead(r, id, number)
	if err != nil {
		return nil, err
	}
	p.Step, p.Query = step, q
	if p.Attempt.Journal == "" {
		p.PatchSource = "the journal of this attempt is missing: only results.json is left"
		return p, nil
	}
	a, err := v.attempts.get(r.Dir, p.Attempt.Journal)
	if err != nil {
		return nil, fmt.Errorf("open attempt %d of %s: %w", number, p.ID, err)
	}
	p.Damage, p.Tokens = a.Damage, a.Tokens
	p.Live = a.Outcome == nil && s.Run.WorkerPID > 0
	p.Attempt.Patch, p.PatchSource = a.Patch()
	row, hasRow := r.row(s, p.ID)
	p.Gold, p.HasGold = row.Patch, hasRow
	p.Milestones = findMilestones(a.Timeline, row, p.Attempt.Patch)
	p.Added, p.MoreAdded = findAdded(a.Timeline, p.Attempt.Patch)
	p.Failing = findTests(a.Timeline, failingTests(s, p.ID, p.Attempt.Attempt))
	p.timeline, p.Limit = a.Timeline, limitOf(a.Timeline)
	if r := p.Attempt.Result; r != nil {
		p.Unlisted = unlisted(r.Steps, a.Timeline)
	}
	for _, st := range a.AllSteps() {
		p.Outline = append(p.Outline, stepView{
			Name: stepName(st), Failed: st.Failed, Line: outlineOf(st), Command: commandOf(st),
			Break: len(p.Outline) > 0 && len(p.Outline)%chunkSize == 0,
		})
	}
	if q != "" {
		match := query.TextMatcher(q)
		for _, st := range a.AllSteps() {
			if st.Contains(match) {
				p.Hits = append(p.Hits, stepName(st))
			}
		}
	}
	wanted := -1
	if index, ok := indexOf(a.Timeline, step); ok {
		wanted = index / chunkSize
	}
	for from := 0; from < len(a.AllSteps()); from += chunkSize {
		loaded := all || from == 0 || from/chunkSize == wanted
		p.Chunks = append(p.Chunks, newChunk(a, from, from+chunkSize, loaded, q))
	}
	return p, nil
}

// unlisted says which of the steps of a result are no steps of the timeline; "" if all are.
func unlisted(steps int, t *timeline.Timeline) string {
	missing := steps - t.ReplyCount()
	var parts []string
	if n := min(t.Totals.Children.Steps, missing); n > 0 {
		parts, missing = append(parts, fmt.Sprintf("%d of subagents", n)), missing-n
	}
	if n := min(t.FailedCalls, missing); n > 0 {
		parts, missing = append(parts, text.Count(n, "failed call")), missing-n
	}
	if missing > 0 {
		parts = append(parts, text.Count(missing, "reply")+" not in the journal")
	}
	return strings.Join(parts, ", ")
}

// limitOf names the limit that ended an attempt; "" if none did, or which one is not recorded.
func limitOf(t *timeline.Timeline) string {
	o := t.Outcome
	if o == nil || o.Class != trajectories.Limit {
		return ""
	}
	var config struct {
		Agent struct {
			Steps int     `json:"step_limit"`
			Cost  float64 `json:"cost_limit"`
			Time  float64 `json:"wall_time_limit_seconds"`
		} `json:"agent"`
	}
	_ = json.Unmarshal(t.Header.Config, &config) // imported attempts have none
	limits := trajectories.Limits{Steps: config.Agent.Steps, Cost: config.Agent.Cost}
	if t.Limits != nil {
		limits = *t.Limits
	}
	switch seconds := config.Agent.Time; {
	case o.ExitStatus == agent.ErrTimeExceeded.Error() && seconds > 0:
		return fmt.Sprintf("time limit %s reached", unit.Seconds(seconds))
	case o.ExitStatus != agent.ErrLimitsExceeded.Error():
	case limits.Steps > 0 && o.Steps >= limits.Steps:
		return fmt.Sprintf("step limit %d reached", limits.Steps)
	case limits.Cost > 0 && float64(o.Cost) >= limits.Cost:
		return fmt.Sprintf("cost limit %s reached", unit.Money(limits.Cost))
	}
	return ""
}

// failingTests returns the failed tests of the newest verdict on the submission of a repetition.
func failingTests(s *snapshot, id string, a runs.Attempt) []string {
	var detail report.Detail
	detail.ID = id
	detail.AddVerdicts(s.Verdicts, s.predictions())
	for _, v := range slices.Backward(detail.Verdicts) {
		if v.Stale || max(1, v.Repetition) != max(1, a.Repetition) {
			continue
		}
		if v.FailedTests == nil {
			return nil
		}
		return append(slices.Clone(v.FailedTests.FailToPass), v.FailedTests.PassToPass...)
	}
	return nil
}
