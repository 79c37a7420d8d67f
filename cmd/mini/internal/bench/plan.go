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
	Rows      int                   `json:"rows"`
	Selected  int                   `json:"selected"`
	Done      int                   `json:"done"` // instances that have all their results
	Attempts  int                   `json:"attempts_per_instance"`
	Missing   int                   `json:"attempts_missing"` // of all instances together
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
	Prompts      promptPlan      `json:"prompts"`
	// Obstacle is why the batch would not start, or "".
	Obstacle string `json:"obstacle,omitempty"`
}

// verdictPlan describes how submissions will be evaluated.
type verdictPlan struct {
	Workers int     `json:"workers"`
	Network string  `json:"network"`
	Timeout float64 `json:"timeout_seconds"`
	// Ungradable counts the instances that get no verdict; Why is the reason for one.
	Ungradable int    `json:"ungradable"`
	Why        string `json:"ungradable_why,omitempty"`
}

// plannedInstance is an instance and the image of its sandbox.
type plannedInstance struct {
	ID    string `json:"instance_id"`
	Image string `json:"image,omitempty"`
	Done  bool   `json:"done,omitempty"`
	// GoesOn are the attempts that were stopped, with --resume-attempts.
	Resumable []plannedAttempt `json:"goes_on,omitempty"`
}

// plannedAttempt is an attempt that will be resumed if its settings are the same.
type plannedAttempt struct {
	Attempt int `json:"attempt"`
	Step    int `json:"after_step"`
}

type modelPlan struct {
	Class      string `json:"class"`
	Name       string `json:"name"`
	BaseURL    string `json:"base_url,omitempty"`
	KeyEnv     string `json:"api_key_env,omitempty"`
	KeyPresent bool   `json:"key_present"`
	// Route is the kind of the route and Models are its models.
	Route  string      `json:"route,omitempty"`
	Models []modelPlan `json:"models,omitempty"`
}

func planModel(m configs.Model) modelPlan {
	return modelPlan{
		Class: m.Class, Name: m.Name, BaseURL: m.BaseURL, KeyEnv: m.APIKeyEnv, KeyPresent: os.Getenv(m.APIKeyEnv) != "",
	}
}

// costPlan is the maximum cost; nil ceilings are unlimited.
type costPlan struct {
	LimitPerAttempt float64 `json:"limit_per_attempt"`
	// Ceiling is that of one attempt for each instance, CeilingOfTries that of
	// as many as are made where sandboxes or the provider fail.
	Ceiling            *float64 `json:"ceiling"`
	CeilingWithRetries *float64 `json:"ceiling_of_tries"`
	PriceKnown         bool     `json:"price_known"`
	PriceSource        string   `json:"price_source,omitempty"`
}

// promptPlan contains the first prompts of the first instance.
type promptPlan struct {
	ID       string `json:"instance_id"`
	System   string `json:"system"`
	Instance string `json:"instance"`
}

func newPlan(ctx context.Context, j *Job) (plan, error) {
	cfg, w := j.Cfg, j.Input
	p := plan{
		Datasets: w.Dataset.Editions, Rows: w.Dataset.Rows, Selected: len(w.Rows), Folder: j.Dir,
		Workers: cfg.Run.Workers, Sandbox: cfg.Environment.Class,
		Model: planModel(cfg.Model),
	}
	if kind := cfg.Model.Route.Kind; kind != "" {
		p.Model = modelPlan{Class: cfg.Model.Class, Name: modelopen.Name(cfg), KeyPresent: true, Route: kind}
		for _, one := range configs.Models(cfg) {
			m := planModel(one.Model)
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
	for _, in := range w.Rows {
		item := plannedInstance{ID: in.ID, Done: done[in.ID]}
		if cfg.Environment.Class == "docker" {
			item.Image = envopen.ImageName(cfg, in)
		}
		item.Resumable = j.resumable(in.ID)
		p.Instances = append(p.Instances, item)
		if item.Done {
			p.Done++
			continue
		}
		if item.Image != "" {
			needed = append(needed, envopen.ImageRequest(cfg, in))
		}
	}
	known, err := modelopen.CombinedFacts(cfg)
	if err != nil {
		return p, err
	}
	p.Attempts, p.Missing = cfg.Run.Attempts, j.missingAttempts()
	p.Cost = planCost(cfg, known, p.Missing)
	if len(needed) > 0 {
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
	can, servers, err := setup.PlanCapabilities(ctx, cfg)
	if err != nil && p.Obstacle == "" {
		p.Obstacle = err.Error()
	}
	p.Capabilities = planCapabilities(cfg, j.Profile(), can, servers)
	first := w.Rows[0]
	p.Prompts.ID = first.ID
	p.Prompts.System, p.Prompts.Instance, err = j.Agent.RenderPrompts(
		agent.Task{Text: first.ProblemStatement, Instance: first.Fields()},
		env.Info{
			System: "Linux", Release: "...", Machine: "x86_64", Dir: cfg.Environment.Dir,
			Network: cfg.Environment.Network != "none" && cfg.Environment.Network != "",
		},
		can,
	)
	return p, cfg.Locate(err)
}

// resumable returns the attempts of an instance that --resume-attempts resumes.
func (j *Job) resumable(id string) (all []plannedAttempt) {
	if !j.Cfg.Run.ResumeAttempts || j.Redo {
		return nil
	}
	at := slices.IndexFunc(j.Earlier.Instances, func(in runner.Instance) bool { return in.ID == id })
	if at < 0 {
		return nil
	}
	for _, a := range j.Earlier.Instances[at].Resumable(j.Cfg.Run.Attempts) {
		all = append(all, plannedAttempt{a.Number, a.Totals().Steps})
	}
	return all
}

// planCost multiplies the cost limit of an attempt. The ceilings are nil if there is no limit.
func planCost(cfg *configs.Resolved, known modelopen.Facts, attempts int) costPlan {
	c := costPlan{
		LimitPerAttempt: cfg.Agent.CostLimit,
		PriceKnown:      known.Source != "", PriceSource: known.Source,
	}
	switch {
	case cfg.Model.Class == "scripted":
		c.Ceiling, c.CeilingWithRetries = new(float64), new(float64)
	case c.LimitPerAttempt > 0:
		once := c.LimitPerAttempt * float64(attempts)
		tries := once * float64(cfg.Run.MaxTries)
		c.Ceiling, c.CeilingWithRetries = &once, &tries
	}
	return c
}
