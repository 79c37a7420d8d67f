package memory

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/trajectories"
)

// Bounds of goals.
const (
	MaxGoals     = 100
	MaxGoalBytes = 1 << 10 // of one goal's text
)

// goalToolName is the tool's name. Records of calls, from which goals are
// restored, contain it.
const goalToolName = "goal"

// GoalState is the state of a goal.
type GoalState string

// The states of a goal.
const (
	GoalOpen    GoalState = "open"
	GoalDone    GoalState = "done"
	GoalDropped GoalState = "dropped"
)

// Goal is a goal of the model. Its text is one line.
type Goal struct {
	ID    int       `json:"id"`
	Text  string    `json:"text"`
	State GoalState `json:"state"`
}

// goalChange is a goal after a change. It is recorded with the call that made
// the change. Concurrent calls may be recorded out of order; the highest
// revision is the latest.
type goalChange struct {
	Goal     Goal `json:"goal"`
	Revision int  `json:"revision"`
}

// Goals is the tool goal. Each attempt has its own list, and a resumed attempt
// restores its list. The tail template receives the list as the variable
// "goals", whose items have id, text and state.
type Goals struct {
	mu    sync.Mutex
	lists map[*agent.Attempt]*goalList
}

var _ tools.TailProvider = (*Goals)(nil)

// NewGoals returns the tool.
func NewGoals() *Goals { return &Goals{lists: map[*agent.Attempt]*goalList{}} }

// Spec implements tools.Tool.
func (*Goals) Spec() tools.Spec {
	return tools.Spec{
		Name:        goalToolName,
		Usage:       "goal add TEXT\ngoal done N\ngoal drop N\ngoal list",
		Description: "keeps a list of what is to be done, and what of it is",
	}
}

// ForAttempt returns the goals of an attempt, sorted by ID.
func (g *Goals) ForAttempt(a *agent.Attempt) []Goal {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.listFor(a).goals)
}

// TailVariables implements tools.TailProvider.
func (g *Goals) TailVariables(a *agent.Attempt) map[string]any {
	list := []map[string]any{}
	for _, goal := range g.ForAttempt(a) {
		list = append(list, map[string]any{"id": goal.ID, "text": goal.Text, "state": string(goal.State)})
	}
	return map[string]any{"goals": list}
}

// Call implements tools.Tool.
func (g *Goals) Call(_ context.Context, c tools.Call) (tools.Result, error) {
	args, err := tools.ParseArgs(c.Args)
	if err != nil {
		return tools.Result{}, err
	}
	if len(args.Positional) == 0 {
		return tools.Result{}, tools.Usagef("say add, done, drop or list")
	}
	verb := args.Positional[0]
	args.Positional = args.Positional[1:]
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.listFor(c.Attempt)
	switch verb {
	case "add":
		text, err := args.Text(c, "goal", MaxGoalBytes)
		if err != nil {
			return tools.Result{}, err
		}
		return l.add(text)
	case "done":
		return l.setState(args.Positional, GoalDone)
	case "drop":
		return l.setState(args.Positional, GoalDropped)
	case "list":
		if len(args.Positional) > 0 {
			return tools.Result{}, tools.Usagef("list takes nothing")
		}
		return tools.Result{Output: l.String()}, nil
	}
	return tools.Result{}, tools.Usagef("there is no goal %.40q: say add, done, drop or list", verb)
}

// listFor returns the list of an attempt. The caller holds the lock.
func (g *Goals) listFor(a *agent.Attempt) *goalList {
	l := g.lists[a]
	if l == nil {
		l = &goalList{}
		if a != nil && a.Session().Resume != nil {
			l.restore(a.Session().Resume.ToolCalls())
		}
		g.lists[a] = l
	}
	return l
}

// goalList is the list of one attempt. Goal IDs count from 1.
type goalList struct {
	goals    []Goal
	revision int
}

func (l *goalList) add(text string) (tools.Result, error) {
	if len(l.goals) >= MaxGoals {
		return tools.Result{}, fmt.Errorf("there are %d goals, and more are not kept", MaxGoals)
	}
	l.goals = append(l.goals, Goal{ID: len(l.goals) + 1, Text: oneLine(text), State: GoalOpen})
	return l.recordChange(len(l.goals) - 1), nil
}

func (l *goalList) setState(rest []string, s GoalState) (tools.Result, error) {
	if len(rest) != 1 {
		return tools.Result{}, tools.Usagef("say the number of one goal; mini-tool goal list has them")
	}
	n, err := strconv.Atoi(rest[0])
	if err != nil || n < 1 || n > len(l.goals) {
		return tools.Result{}, tools.Usagef("there is no goal %.40q; mini-tool goal list has them", rest[0])
	}
	l.goals[n-1].State = s
	return l.recordChange(n - 1), nil
}

// recordChange returns the output and the record of a changed goal.
func (l *goalList) recordChange(index int) tools.Result {
	l.revision++
	g := l.goals[index]
	return tools.Result{
		Output:  fmt.Sprintf("goal %d is %s: %s\n%s\n", g.ID, g.State, g.Text, l.counts()),
		Details: goalChange{g, l.revision},
	}
}

// counts returns the number of goals by state.
func (l *goalList) counts() string {
	n := map[GoalState]int{}
	for _, g := range l.goals {
		n[g.State]++
	}
	s := fmt.Sprintf("%s: %d open, %d done", text.Count(len(l.goals), "goal"), n[GoalOpen], n[GoalDone])
	if n[GoalDropped] > 0 {
		s += fmt.Sprintf(", %d dropped", n[GoalDropped])
	}
	return s
}

// String returns the list as the model reads it.
func (l *goalList) String() string {
	if len(l.goals) == 0 {
		return "there are no goals\n"
	}
	var b strings.Builder
	b.WriteString(l.counts() + "\n")
	for _, g := range l.goals {
		fmt.Fprintf(&b, "%3d %-7s  %s\n", g.ID, g.State, g.Text)
	}
	return b.String()
}

// restore rebuilds the list from recorded calls. Records are untrusted: restore
// skips changes that no call can have made, and the goals after a missing or
// invalid one.
func (l *goalList) restore(calls []trajectories.ToolCall) {
	newest := map[int]goalChange{}
	for _, c := range calls {
		var change goalChange
		if c.Name != goalToolName || c.ExitCode != 0 || json.Unmarshal(c.Details, &change) != nil {
			continue
		}
		if g := change.Goal; g.ID >= 1 && g.ID <= MaxGoals && change.Revision > newest[g.ID].Revision {
			newest[g.ID] = change
		}
	}
	for id := 1; ; id++ {
		change, ok := newest[id]
		g := change.Goal
		if !ok || len(g.Text) > MaxGoalBytes || !slices.Contains([]GoalState{GoalOpen, GoalDone, GoalDropped}, g.State) {
			return
		}
		g.Text = oneLine(g.Text)
		l.goals, l.revision = append(l.goals, g), max(l.revision, change.Revision)
	}
}

// oneLine sanitizes a text and joins its words by single spaces.
func oneLine(s string) string {
	return sanitize(strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " "))
}
