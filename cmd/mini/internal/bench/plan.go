package bench

import (
	"context"
	"os"
	"slices"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/cmd/mini/internal/dryrun"
	"github.com/minibench/mini/cmd/mini/internal/eval"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker/imagestore"
	envopen "github.com/minibench/mini/env/open"
	modelopen "github.com/minibench/mini/model/open"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/setup"
)

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
		Model: planModel(cfg.Model),
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
		skip, why := j.ungradable()
		p.Verdicts = &verdictPlan{
			Workers: eval.WorkerCount(cfg.Eval.Workers), Network: cfg.Eval.Network, Timeout: cfg.Eval.Timeout,
			Ungradable: len(skip), Why: why,
		}
	}
	done := j.doneIDs()
	var needed []imagestore.Request // of the instances to run
	for _, in := range input.Rows {
		planned := plannedInstance{ID: in.ID, Done: done[in.ID]}
		if !envopen.IsHostClass(cfg.Environment.Class) {
			planned.Image = envopen.ImageName(cfg, in)
		}
		planned.Resumable = j.resumable(in.ID)
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
	p.Attempts, p.Missing = cfg.Run.Attempts, j.missingAttempts()
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
	p.Capabilities = planCapabilities(cfg, j.Profile(), capabilities, servers)
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

// resumable returns the attempts of an instance that --resume-attempts resumes.
func (j *Job) resumable(id string) (attempts []plannedAttempt) {
	if !j.Config.Run.ResumeAttempts || j.RedoExisting {
		return nil
	}
	i := slices.IndexFunc(j.EarlierRun.Instances, func(in runner.Instance) bool { return in.ID == id })
	if i < 0 {
		return nil
	}
	for _, a := range j.EarlierRun.Instances[i].ResumableAttempts(j.Config.Run.Attempts) {
		attempts = append(attempts, plannedAttempt{a.Number, a.Totals().Steps})
	}
	return attempts
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
