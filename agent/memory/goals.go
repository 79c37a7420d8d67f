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
	"github.com/minibench/mini/trajectories"
)

// Bounds of goals.
const (
	MaxGoals = 100
	MaxGoal  = 1 << 10 // bytes of one
)

// goalTool is the tool's name, also in the records that goals are made of again.
const goalTool = "goal"

// State is what became of a goal.
type State string

// The states of a goal.
const (
	Open    State = "open"
	Done    State = "done"
	Dropped State = "dropped"
)

// Goal is something that the model means to do; its text is one line.
type Goal struct {
	ID    int    `json:"id"`
	Text  string `json:"text"`
	State State  `json:"state"`
}

// goalChange is what is recorded of a call that changed a goal: what it is since
// then. Calls that ran side by side may be recorded in another order than they
// were answered in; the one of the highest revision counts.
type goalChange struct {
	Goal     Goal `json:"goal"`
	Revision int  `json:"revision"`
}

// Goals is the tool goal. Each attempt that asks has a list of its own; one that
// was gone on with has the list that it had. Templates for the end of prompts have
// them as "goals", a list of id, text and state.
type Goals struct {
	mu    sync.Mutex
	lists map[*agent.Attempt]*goalList
}

var _ tools.Tailer = (*Goals)(nil)

// NewGoals is a tool without goals.
func NewGoals() *Goals { return &Goals{lists: map[*agent.Attempt]*goalList{}} }

// Spec implements tools.Tool.
func (*Goals) Spec() tools.Spec {
	return tools.Spec{
		Name:  goalTool,
		Usage: "goal add TEXT\ngoal done N\ngoal drop N\ngoal list",
		About: "keeps a list of what is to be done, and what of it is",
	}
}

// Of are the goals of an attempt, by number.
func (g *Goals) Of(a *agent.Attempt) []Goal {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.list(a).goals)
}

// Tail implements tools.Tailer.
func (g *Goals) Tail(a *agent.Attempt) map[string]any {
	list := []map[string]any{}
	for _, one := range g.Of(a) {
		list = append(list, map[string]any{"id": one.ID, "text": one.Text, "state": string(one.State)})
	}
	return map[string]any{"goals": list}
}

// Call implements tools.Tool.
func (g *Goals) Call(_ context.Context, c tools.Call) (tools.Result, error) {
	args, err := tools.ParseArgs(c.Args)
	if err != nil {
		return tools.Result{}, err
	}
	if len(args.Rest) == 0 {
		return tools.Result{}, tools.Usagef("say add, done, drop or list")
	}
	verb := args.Rest[0]
	args.Rest = args.Rest[1:]
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.list(c.Attempt)
	switch verb {
	case "add":
		text, err := args.Text(c, "goal", MaxGoal)
		if err != nil {
			return tools.Result{}, err
		}
		return l.add(text)
	case "done":
		return l.set(args.Rest, Done)
	case "drop":
		return l.set(args.Rest, Dropped)
	case "list":
		if len(args.Rest) > 0 {
			return tools.Result{}, tools.Usagef("list takes nothing")
		}
		return tools.Result{Output: l.String()}, nil
	}
	return tools.Result{}, tools.Usagef("there is no goal %.40q: say add, done, drop or list", verb)
}

// list is that of an attempt; the lock is held.
func (g *Goals) list(a *agent.Attempt) *goalList {
	l := g.lists[a]
	if l == nil {
		l = &goalList{}
		if a != nil && a.Session().Past != nil {
			l.recall(a.Session().Past.Asked)
		}
		g.lists[a] = l
	}
	return l
}

// goalList is the goals of one attempt, by number from 1.
type goalList struct {
	goals    []Goal
	revision int
}

func (l *goalList) add(text string) (tools.Result, error) {
	if len(l.goals) >= MaxGoals {
		return tools.Result{}, fmt.Errorf("there are %d goals, and more are not kept", MaxGoals)
	}
	l.goals = append(l.goals, Goal{ID: len(l.goals) + 1, Text: oneLine(text), State: Open})
	return l.changed(len(l.goals) - 1), nil
}

func (l *goalList) set(rest []string, s State) (tools.Result, error) {
	if len(rest) != 1 {
		return tools.Result{}, tools.Usagef("say the number of one goal; mini-tool goal list has them")
	}
	n, err := strconv.Atoi(rest[0])
	if err != nil || n < 1 || n > len(l.goals) {
		return tools.Result{}, tools.Usagef("there is no goal %.40q; mini-tool goal list has them", rest[0])
	}
	l.goals[n-1].State = s
	return l.changed(n - 1), nil
}

// changed says and records what a goal is now.
func (l *goalList) changed(at int) tools.Result {
	l.revision++
	g := l.goals[at]
	return tools.Result{
		Output:  fmt.Sprintf("goal %d is %s: %s\n%s\n", g.ID, g.State, g.Text, l.counts()),
		Details: goalChange{g, l.revision},
	}
}

// counts says how many goals are in which state.
func (l *goalList) counts() string {
	n := map[State]int{}
	for _, g := range l.goals {
		n[g.State]++
	}
	s := fmt.Sprintf("%s: %d open, %d done", count(len(l.goals), "goal"), n[Open], n[Done])
	if n[Dropped] > 0 {
		s += fmt.Sprintf(", %d dropped", n[Dropped])
	}
	return s
}

// String is the list for a model.
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

// recall makes the list what calls on record made it. What is on record may have
// been written by anybody: what no call would have made is passed over.
func (l *goalList) recall(calls []trajectories.ToolCall) {
	newest := map[int]goalChange{}
	for _, c := range calls {
		var change goalChange
		if c.Name != goalTool || c.ExitCode != 0 || json.Unmarshal(c.Details, &change) != nil {
			continue
		}
		if g := change.Goal; g.ID >= 1 && g.ID <= MaxGoals && change.Revision > newest[g.ID].Revision {
			newest[g.ID] = change
		}
	}
	for id := 1; ; id++ {
		change, ok := newest[id]
		g := change.Goal
		if !ok || len(g.Text) > MaxGoal || !slices.Contains([]State{Open, Done, Dropped}, g.State) {
			return
		}
		g.Text = oneLine(g.Text)
		l.goals, l.revision = append(l.goals, g), max(l.revision, change.Revision)
	}
}

// oneLine is a text on one line, without signs that steer.
func oneLine(s string) string {
	return harmless(strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " "))
}
