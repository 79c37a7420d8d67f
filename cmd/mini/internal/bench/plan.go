package bench

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/tools/memory"
	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/dryrun"
	"github.com/minibench/mini/cmd/mini/internal/eval"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker/imagestore"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/doc"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	modelopen "github.com/minibench/mini/model/open"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/setup"
)

// sweepPlan describes what a sweep would do. --dry-run prints it as text or JSON.
type sweepPlan struct {
	Folder       string            `json:"folder"`
	Combinations []combinationPlan `json:"combinations"`
}

// combinationPlan describes what one combination of a sweep would do. The images are those of the
// first combination.
type combinationPlan struct {
	Name     string            `json:"combination"`
	Settings map[string]string `json:"settings"`
	Plan     plan              `json:"plan"`
}

// printPlans prints what the jobs would do. It returns an error if they cannot start.
func printPlans(ctx context.Context, a *app.App, jobs []*Job) error {
	var images *dryrun.Images
	obstacle := ""
	sweep := sweepPlan{Folder: jobs[0].topFolder()}
	for _, j := range jobs {
		p, err := newPlan(ctx, j, images)
		if err != nil {
			return j.located(err)
		}
		if obstacle == "" {
			obstacle = p.Obstacle
		}
		if j.combination == nil {
			return dryrun.Print(a.Streams, j.Options.JSON, p, p.text(), obstacle)
		}
		sweep.Combinations = append(sweep.Combinations, combinationPlan{j.name(), j.combination.settings, p})
		images = &sweep.Combinations[0].Plan.Images
	}
	return dryrun.Print(a.Streams, jobs[0].Options.JSON, sweep, sweep.text(), obstacle)
}

// plan describes what a batch would do. --dry-run prints it as text or JSON.
type plan struct {
	Datasets  []datasets.SourceInfo `json:"datasets"`
	Rows      int                   `json:"rows"`     // of all datasets, before the selection
	Selected  int                   `json:"selected"` // number of selected rows
	Done      int                   `json:"done"`     // number of instances that have all their results
	Attempts  int                   `json:"attempts_per_instance"`
	Missing   int                   `json:"attempts_missing"` // for all instances together
	Folder    string                `json:"folder"`
	Workers   int                   `json:"workers"`
	Sandbox   string                `json:"environment_class"`
	Images    dryrun.Images         `json:"images"`
	Verdicts  *verdictPlan          `json:"verdicts,omitempty"` // nil without --eval
	Model     modelPlan             `json:"model"`
	Cost      costPlan              `json:"cost"`
	Instances []plannedInstance     `json:"instances"`
	// Capabilities are the optional features of the agent; nil if there are none.
	Capabilities *capabilityPlan `json:"abilities,omitempty"`
	Prompts      promptPlan      `json:"prompts,omitzero"` // zero for an agent without prompts of mini
	// Outside is what the batch starts, reaches and mounts outside of the sandboxes.
	Outside configs.Outside `json:"outside,omitzero"`
	// Obstacle is the reason why the batch cannot start; "" if it can.
	Obstacle string `json:"obstacle,omitempty"`
}

// verdictPlan describes how submissions will be evaluated.
type verdictPlan struct {
	Workers int     `json:"workers"`
	Network string  `json:"network"`
	Timeout float64 `json:"timeout_seconds"`
	// Ungradable is the number of instances that get no verdict; Why is the reason for the first.
	Ungradable int    `json:"ungradable"`
	Why        string `json:"ungradable_why,omitempty"`
}

// plannedInstance is an instance and the image of its sandbox.
type plannedInstance struct {
	ID    string `json:"instance_id"`
	Image string `json:"image,omitempty"`
	Done  bool   `json:"done,omitempty"`
	// Resumable are the stopped attempts that --resume-attempts resumes.
	Resumable []plannedAttempt `json:"goes_on,omitempty"`
}

// plannedAttempt is an attempt that will be resumed if its settings are the same.
type plannedAttempt struct {
	Attempt int `json:"attempt"`
	Step    int `json:"after_step"` // last step before the stop
}

// modelPlan describes a model, or a route of several models.
type modelPlan struct {
	Class      string `json:"class"`
	Name       string `json:"name"`
	BaseURL    string `json:"base_url,omitempty"`
	KeyEnv     string `json:"api_key_env,omitempty"`
	KeyPresent bool   `json:"key_present"` // of a route: whether all models have their keys
	// Route is the kind of the route; "" for a single model. Models are the models of the route.
	Route  string      `json:"route,omitempty"`
	Models []modelPlan `json:"models,omitempty"`
}

// noModel is the class in the plan of an agent that asks no model.
const noModel = "none"

func planModel(m configs.Model) modelPlan {
	return modelPlan{
		Class: m.Class, Name: m.Name, BaseURL: m.BaseURL, KeyEnv: m.APIKeyEnv, KeyPresent: os.Getenv(m.APIKeyEnv) != "",
	}
}

// costPlan is the cost limit of a batch in US dollars; the last call of an attempt may exceed it.
// Nil ceilings mean that there is no limit.
type costPlan struct {
	LimitPerAttempt float64 `json:"limit_per_attempt"`
	// Ceiling is the limit for all attempts together if none is retried; CeilingWithRetries is
	// the limit if every attempt needs all its tries, and all its retries after disruptions.
	Ceiling            *float64 `json:"ceiling"`
	CeilingWithRetries *float64 `json:"ceiling_of_tries"`
	PriceKnown         bool     `json:"price_known"`
	PriceSource        string   `json:"price_source,omitempty"`
}

// promptPlan contains the prompts of the first instance at its start.
type promptPlan struct {
	ID       string `json:"instance_id"`
	System   string `json:"system"`
	Instance string `json:"instance"`
}

// newPlan describes the batch of j. It returns an error if the prompts cannot be rendered or the
// prices cannot be read. images are the results for the images of a
// similar batch; nil looks for those of this one.
func newPlan(ctx context.Context, j *Job, images *dryrun.Images) (plan, error) {
	cfg, input := j.Config, j.Input
	p := plan{
		Datasets: input.Dataset.Editions, Rows: input.Dataset.Rows, Selected: len(input.Rows), Folder: j.Dir,
		Workers: cfg.Run.Workers, Sandbox: cfg.Environment.Class,
		Model: planModel(cfg.Model), Outside: cfg.Outside(),
	}
	if !cfg.UsesModel() {
		p.Model = modelPlan{Class: noModel, Name: modelopen.Name(cfg)}
	}
	if kind := cfg.Model.Route.Kind; kind != "" {
		p.Model = modelPlan{Class: cfg.Model.Class, Name: modelopen.Name(cfg), KeyPresent: true, Route: kind}
		for _, model := range configs.ModelConfigs(cfg) {
			m := planModel(model.Model)
			p.Model.Models = append(p.Model.Models, m)
			p.Model.KeyPresent = p.Model.KeyPresent && m.KeyPresent
		}
	}
	if cfg.Run.Eval {
		p.Verdicts = &verdictPlan{
			Workers: eval.WorkerCount(cfg.Eval.Workers), Network: cfg.Eval.Network, Timeout: cfg.Eval.Timeout,
			Ungradable: len(j.ungradable), Why: j.ungradableWhy,
		}
	}
	missing := j.missing()
	var needed []imagestore.Request // of the instances to run
	for _, in := range input.Rows {
		planned := plannedInstance{ID: in.ID, Done: missing[in.ID] == 0}
		p.Missing += missing[in.ID]
		if !envopen.IsHostClass(cfg.Environment.Class) {
			planned.Image = envopen.ImageName(cfg, in)
		}
		if cfg.Run.ResumeAttempts && !j.Options.RedoExisting {
			earlier, _ := j.EarlierRun.Find(in.ID)
			for _, a := range runner.ResumableAttempts(earlier, cfg.Run.Attempts) {
				planned.Resumable = append(planned.Resumable, plannedAttempt{a.Number, a.Totals().Steps})
			}
		}
		p.Instances = append(p.Instances, planned)
		if planned.Done {
			p.Done++
			continue
		}
		if cfg.Environment.Class == "docker" && !envopen.IsBuilt(in) {
			needed = append(needed, envopen.ImageRequest(cfg, in))
		}
	}
	facts, err := modelopen.CombinedFacts(cfg)
	if err != nil {
		return p, err
	}
	p.Attempts = cfg.Run.Attempts
	p.Cost = planCost(cfg, facts, p.Missing)
	if images != nil {
		p.Images = *images
	} else if len(needed) > 0 {
		p.Images = dryrun.MeasureImages(ctx, cfg, needed, dryrun.MaxRegistryQueries)
	}
	if p.Images.Problem != "" && j.canUseHost() {
		p.Sandbox, p.Images = "local", dryrun.Images{}
	}
	switch {
	case j.obstacle != nil:
		p.Obstacle = j.obstacle.Error()
	case p.Images.Problem != "":
		p.Obstacle = p.Images.Problem
	}
	capabilities, servers, err := setup.PlanCapabilities(ctx, cfg)
	if err != nil && p.Obstacle == "" {
		p.Obstacle = err.Error()
	}
	p.Capabilities = planCapabilities(cfg, j.Options.Profile(), capabilities, servers)
	own, ok := j.Agent.(*agent.Agent)
	if !ok { // other agents have no prompts of mini
		return p, nil
	}
	first := input.Rows[0]
	p.Prompts.ID = first.ID
	p.Prompts.System, p.Prompts.Instance, err = own.RenderPrompts(
		agent.Task{Text: first.ProblemStatement, Instance: first.Fields()},
		env.Info{
			System: "Linux", Release: "...", Machine: "x86_64", Dir: cfg.Environment.Dir,
			Network: cfg.Environment.Network != "none" && cfg.Environment.Network != "",
		},
		capabilities,
	)
	return p, cfg.Locate(err)
}

// planCost computes the ceilings for a number of attempts from the cost limit of one attempt. The
// ceilings are 0 for scripted replies and nil if there is no limit.
func planCost(cfg *configs.Resolved, facts modelopen.Facts, attempts int) costPlan {
	c := costPlan{
		LimitPerAttempt: cfg.Agent.CostLimit,
		PriceKnown:      facts.Source != "" || !cfg.UsesModel(), PriceSource: facts.Source,
	}
	switch {
	case cfg.Model.Class == "scripted" || !cfg.UsesModel():
		c.Ceiling, c.CeilingWithRetries = new(float64), new(float64)
	case c.LimitPerAttempt > 0:
		ceiling := c.LimitPerAttempt * float64(attempts)
		tries := cfg.Run.MaxTries
		if configs.UsesCluster(cfg.Environment.Class) {
			tries += cfg.Environment.Kubernetes.DisruptionRetries
		}
		withRetries := ceiling * float64(tries)
		c.Ceiling, c.CeilingWithRetries = &ceiling, &withRetries
	}
	return c
}

// capabilityPlan lists the optional features of the agent in a plan.
type capabilityPlan struct {
	Profile string   `json:"profile,omitempty"`
	Tools   []string `json:"tools,omitempty"`
	MCP     []string `json:"mcp_servers,omitempty"` // mini knows their tools only after connecting
	Skills  []string `json:"skills,omitempty"`
	Notes   string   `json:"notes,omitempty"` // kind of notes; "" if they are off
}

// planCapabilities returns the capabilities of a plan, or nil if every capability is off and there
// is no profile. servers are the names of the MCP servers.
func planCapabilities(cfg *configs.Resolved, profile string, capabilities agent.Capabilities, servers []string) *capabilityPlan {
	p := capabilityPlan{Profile: profile, MCP: servers}
	for _, t := range capabilities.Tools {
		p.Tools = append(p.Tools, t.Name)
	}
	for _, s := range capabilities.Skills {
		p.Skills = append(p.Skills, s.Name)
	}
	if cfg.Memory.Notes != "off" {
		p.Notes = memory.NotesAttempt // batches support no other kind
	}
	if profile == "" && len(p.Tools)+len(p.MCP)+len(p.Skills) == 0 && p.Notes == "" {
		return nil
	}
	return &p
}

// text returns the capabilities as text.
func (p capabilityPlan) text() string {
	var parts []string
	for i, names := range [][]string{p.Tools, p.MCP, p.Skills} {
		if len(names) > 0 {
			parts = append(parts, []string{"tools ", "those of MCP servers ", "skills "}[i]+strings.Join(names, ", "))
		}
	}
	if p.Notes != "" {
		parts = append(parts, "notes by "+p.Notes)
	}
	return cmp.Or(strings.Join(parts, "; "), "bash alone")
}

// text returns the plan as text.
func (p plan) text() string {
	var s dryrun.PlanText
	line := s.Line
	s.WriteString("dry run: nothing is started, and no model is called\n\n")
	s.Datasets(p.Datasets)
	instances := fmt.Sprintf("%d of %d", p.Selected, p.Rows)
	if p.Attempts > 1 {
		instances += fmt.Sprintf("; %s each, %d of them to run", text.Count(p.Attempts, "attempt"), p.Missing)
	} else if p.Done > 0 {
		instances += fmt.Sprintf("; %d have a result already, %d to run", p.Done, p.Selected-p.Done)
	}
	line("instances", "%s", instances)
	line("sandboxes", "%s, %s at once", p.Sandbox, text.Count(p.Workers, "instance"))
	if v := p.Verdicts; v != nil {
		line("verdicts", "%s", verdictsText(*v, p))
	}
	s.Images(p.Images)
	line("model", "%s", modelText(p.Model))
	if a := p.Capabilities; a != nil {
		if a.Profile != "" {
			line("profile", "%s", a.Profile)
		}
		line("abilities", "%s", a.text())
	}
	for _, kind := range p.Outside.List() {
		name, values, _ := strings.Cut(kind, ": ")
		line(name, "%s", values)
	}
	line("cost", "%s", costText(p.Cost, p.Missing))
	line("folder", "%s", p.Folder)
	if p.Obstacle != "" {
		line("problem", "the batch cannot start: %s", p.Obstacle)
	}

	s.WriteString("\ninstances, in order:\n")
	for i, in := range p.Instances {
		if s.Truncate(i, len(p.Instances)) {
			break
		}
		content := fmt.Sprintf("  %-40s %s", in.ID, in.Image)
		if in.Done {
			content = fmt.Sprintf("  %-40s has a result; not run again", in.ID)
		}
		s.WriteString(text.Printable(content) + "\n")
		for _, a := range in.Resumable {
			fmt.Fprintf(&s.Builder, "    resumes attempt %d after step %d if its settings are the same\n", a.Attempt, a.Step)
		}
	}
	if p.Prompts.ID == "" {
		return s.String()
	}
	fmt.Fprintf(&s.Builder, "\nprompts for %s:\n", text.Printable(p.Prompts.ID))
	for _, part := range []struct{ role, text string }{{"system", p.Prompts.System}, {"user", p.Prompts.Instance}} {
		fmt.Fprintf(&s.Builder, "\n--- %s ---\n%s\n", part.role, strings.TrimRight(cmdutil.Sanitize(part.text), "\n"))
	}
	return s.String()
}

// verdictsText describes how submissions will be evaluated.
func verdictsText(v verdictPlan, p plan) string {
	switch {
	case envopen.IsHostClass(p.Sandbox):
		return "none: they need containers"
	case v.Ungradable == p.Selected:
		return "none: " + v.Why
	}
	text := fmt.Sprintf("on each submission during the run, %s at once, network %s, %g s each", text.Count(v.Workers, "patch"), v.Network, v.Timeout)
	if v.Ungradable > 0 {
		text += fmt.Sprintf("; none for %d", v.Ungradable)
	}
	return text
}

// modelText describes a model or a route, and whether the key is set.
func modelText(m modelPlan) string {
	if m.Route != "" {
		var models []string
		for _, model := range m.Models {
			models = append(models, modelText(model))
		}
		return m.Route + " of " + strings.Join(models, "; ")
	}
	switch m.Class {
	case noModel:
		return "none: the agent is " + m.Name
	case "scripted":
		return "none: the replies are scripted, and come from a file"
	}
	text := cmp.Or(m.Name, "none is named") + ", class " + m.Class
	if m.BaseURL != "" {
		text += ", at " + m.BaseURL
	}
	if m.KeyPresent {
		return text + ", key from " + m.KeyEnv
	}
	return text + ", no key (" + m.KeyEnv + " is not set)"
}

// costText describes the maximum cost of a number of attempts.
func costText(c costPlan, attempts int) string {
	switch {
	case c.Ceiling == nil:
		return "not bounded: there is no cost limit (-l DOLLARS sets one)"
	case *c.Ceiling == 0 && c.PriceKnown:
		return "nothing: no model is called"
	}
	line := fmt.Sprintf("at most %s for %s at %s each, or %s with all retries; the last call of an attempt may exceed its limit",
		unit.Money(*c.Ceiling), text.Count(attempts, "attempt"), unit.Money(c.LimitPerAttempt), unit.Money(*c.CeilingWithRetries))
	if !c.PriceKnown {
		return line + "; it holds only if the server reports costs, since no price of the model is known"
	}
	if c.PriceSource != "model.price" {
		line += "; prices by " + text.Printable(c.PriceSource)
	}
	return line
}

// text returns the plan as text: a line for each combination, and the plan of the first.
func (p sweepPlan) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "sweep of %s below %s\n\n", combinationsText(len(p.Combinations)), text.Printable(p.Folder))
	rows := [][]string{{"combination", "attempts to run", "cost"}}
	attempts, total := 0, new(float64)
	for _, c := range p.Combinations {
		rows = append(rows, []string{c.Name, fmt.Sprint(c.Plan.Missing), ceilingText(c.Plan.Cost.Ceiling)})
		if attempts += c.Plan.Missing; total == nil || c.Plan.Cost.Ceiling == nil {
			total = nil
			continue
		}
		*total += *c.Plan.Cost.Ceiling
	}
	rows = append(rows, []string{"total", fmt.Sprint(attempts), ceilingText(total)})
	table := &doc.Doc{}
	table.Table("lll", rows)
	b.WriteString(table.Text(math.MaxInt))
	for _, c := range p.Combinations {
		if c.Plan.Obstacle != "" {
			fmt.Fprintf(&b, "\n%s cannot start: %s\n", c.Name, text.Printable(c.Plan.Obstacle))
		}
	}
	fmt.Fprintf(&b, "\nThe plan of the first combination:\n\n%s", p.Combinations[0].Plan.text())
	return b.String()
}

// ceilingText returns the limit of a cost without retries; nil means that there is none.
func ceilingText(ceiling *float64) string {
	switch {
	case ceiling == nil:
		return "no limit"
	case *ceiling == 0:
		return "none"
	}
	return "at most " + unit.Money(*ceiling)
}
