package cli

import (
	"cmp"
	"context"
	"os"
	"slices"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker/images"
	"github.com/minibench/mini/runner"
)

// plan is what a batch would do, found out without doing any of it; --dry-run
// shows it, as text or as JSON.
type plan struct {
	Datasets  []datasets.Edition `json:"datasets"`
	Rows      int                `json:"rows"`
	Selected  int                `json:"selected"`
	Done      int                `json:"done"` // have all their results in the folder of the run
	Attempts  int                `json:"attempts_per_instance"`
	Missing   int                `json:"attempts_missing"` // to be made, for all instances together
	Folder    string             `json:"folder"`
	Workers   int                `json:"workers"`
	Sandbox   string             `json:"environment_class"`
	Images    imagePlan          `json:"images"`
	Verdicts  *verdictPlan       `json:"verdicts,omitempty"` // null without --eval
	Model     modelPlan          `json:"model"`
	Cost      costPlan           `json:"cost"`
	Instances []plannedInstance  `json:"instances"`
	// Abilities are what commands can ask for; null where that is nothing.
	Abilities *abilityPlan `json:"abilities,omitempty"`
	Prompts   promptPlan   `json:"prompts"`
	// Obstacle is why the batch would not start; empty where it would.
	Obstacle string `json:"obstacle,omitempty"`
}

// verdictPlan is how the submissions will be judged.
type verdictPlan struct {
	Workers int     `json:"workers"`
	Network string  `json:"network"`
	Timeout float64 `json:"timeout_seconds"`
	// Ungradable counts the instances that get no verdict, Why says it of one.
	Ungradable int    `json:"ungradable"`
	Why        string `json:"ungradable_why,omitempty"`
}

// plannedInstance is one instance and the image of its sandbox.
type plannedInstance struct {
	ID    string `json:"instance_id"`
	Image string `json:"image,omitempty"`
	Done  bool   `json:"done,omitempty"`
	// GoesOn are the attempts that were stopped, with --resume-attempts.
	GoesOn []plannedAttempt `json:"goes_on,omitempty"`
}

// plannedAttempt is one that is gone on with, if it was made with these settings.
type plannedAttempt struct {
	Attempt int `json:"attempt"`
	Step    int `json:"after_step"`
}

// imagePlan sums up the images of the instances that are to be run.
type imagePlan struct {
	Distinct   int    `json:"distinct"`
	Local      int    `json:"local"`
	LocalBytes int64  `json:"local_bytes"` // shared layers counted for each image
	Pull       int    `json:"pull"`
	PullBytes  int64  `json:"pull_bytes_estimate"`
	Unknown    int    `json:"pull_unknown,omitempty"` // of those to pull, nobody said how large they are
	FreeBytes  *int64 `json:"free_bytes"`             // on the engine's disk; null where it is not known
	Problem    string `json:"problem,omitempty"`      // why nothing is known of them
}

type modelPlan struct {
	Class      string `json:"class"`
	Name       string `json:"name"`
	BaseURL    string `json:"base_url,omitempty"`
	KeyEnv     string `json:"api_key_env,omitempty"`
	KeyPresent bool   `json:"key_present"`
	// Route is the kind of a route, and Models are its models.
	Route  string      `json:"route,omitempty"`
	Models []modelPlan `json:"models,omitempty"`
}

func planModel(m configs.Model) modelPlan {
	return modelPlan{
		Class: m.Class, Name: m.Name, BaseURL: m.BaseURL, KeyEnv: m.APIKeyEnv, KeyPresent: os.Getenv(m.APIKeyEnv) != "",
	}
}

// costPlan is how much money may be spent at most: nil where nothing bounds it.
type costPlan struct {
	LimitPerAttempt float64 `json:"limit_per_attempt"`
	// Ceiling is that of one attempt for each instance, CeilingOfTries that of
	// as many as are made where sandboxes or the provider fail.
	Ceiling        *float64 `json:"ceiling"`
	CeilingOfTries *float64 `json:"ceiling_of_tries"`
	PriceKnown     bool     `json:"price_known"`
	PriceSource    string   `json:"price_source,omitempty"`
}

// promptPlan is what the first instance's conversation would begin with.
type promptPlan struct {
	ID       string `json:"instance_id"`
	System   string `json:"system"`
	Instance string `json:"instance"`
}

// roughImage is what an image that is not here yet may take on disk, in bytes.
// The 500 official images of SWE-bench Verified take 240 GiB together, shared
// layers counted once (logicstar.ai, "How We Made SWE-Bench 50x Smaller").
const roughImage = 512 << 20

// unpacked is about how many times larger an image is on disk than on its way.
const unpacked = 3

func newPlan(ctx context.Context, j *job) (plan, error) {
	cfg, w := j.cfg, j.work
	p := plan{
		Datasets: w.dataset.Editions, Rows: w.dataset.Rows, Selected: len(w.rows), Folder: j.dir,
		Workers: cfg.Run.Workers, Sandbox: cfg.Environment.Class,
		Model: planModel(cfg.Model),
	}
	if kind := cfg.Model.Route.Kind; kind != "" {
		p.Model = modelPlan{Class: cfg.Model.Class, Name: modelName(cfg), KeyPresent: true, Route: kind}
		for _, one := range modelsOf(cfg) {
			m := planModel(one.Model)
			p.Model.Models = append(p.Model.Models, m)
			p.Model.KeyPresent = p.Model.KeyPresent && m.KeyPresent
		}
	}
	if cfg.Run.Eval {
		skip, why := j.ungradable()
		p.Verdicts = &verdictPlan{
			Workers: evalWorkers(cfg.Eval.Workers), Network: cfg.Eval.Network, Timeout: cfg.Eval.Timeout,
			Ungradable: len(skip), Why: why,
		}
	}
	done := j.done()
	var needed []images.Need // of what is to be run
	for _, in := range w.rows {
		item := plannedInstance{ID: in.ID, Done: done[in.ID]}
		if cfg.Environment.Class == "docker" {
			item.Image = imageOf(cfg, in)
		}
		item.GoesOn = j.goesOn(in.ID)
		p.Instances = append(p.Instances, item)
		if item.Done {
			p.Done++
			continue
		}
		if item.Image != "" {
			needed = append(needed, imageNeed(cfg, in))
		}
	}
	known, err := factsOfAll(cfg)
	if err != nil {
		return p, err
	}
	p.Attempts, p.Missing = cfg.Run.Attempts, j.missing()
	p.Cost = costOf(cfg, known, p.Missing)
	if len(needed) > 0 {
		p.Images = measure(ctx, cfg, needed, maxAsked)
	}
	if p.Images.Problem != "" && j.fallsBack() {
		p.Sandbox, p.Images = "local", imagePlan{}
	}
	switch {
	case j.obstacle != nil:
		p.Obstacle = j.obstacle.Error()
	case p.Images.Problem != "":
		p.Obstacle = p.Images.Problem
	}
	can, servers, err := plannedAbilities(ctx, cfg)
	if err != nil && p.Obstacle == "" {
		p.Obstacle = err.Error()
	}
	p.Abilities = planAbilities(cfg, j.profile(), can, servers)
	first := w.rows[0]
	p.Prompts.ID = first.ID
	p.Prompts.System, p.Prompts.Instance, err = j.agent.Prompts(
		agent.Task{Text: first.ProblemStatement, Instance: first.Fields()},
		env.Info{
			System: "Linux", Release: "...", Machine: "x86_64", Dir: cfg.Environment.Dir,
			Network: cfg.Environment.Network != "none" && cfg.Environment.Network != "",
		},
		can,
	)
	return p, cfg.Locate(err)
}

// goesOn are the attempts at an instance that would be gone on with.
func (j *job) goesOn(id string) (all []plannedAttempt) {
	if !j.cfg.Run.ResumeAttempts || j.redo {
		return nil
	}
	at := slices.IndexFunc(j.earlier.Instances, func(in runner.Instance) bool { return in.ID == id })
	if at < 0 {
		return nil
	}
	for _, a := range j.earlier.Instances[at].Stopped(j.cfg.Run.Attempts) {
		all = append(all, plannedAttempt{a.Number, a.Tally().Steps})
	}
	return all
}

// imageOf is the image of an instance's sandbox.
func imageOf(cfg *configs.Resolved, in datasets.Instance) string {
	return cmp.Or(cfg.Environment.Image, in.ImageName())
}

// costOf multiplies the limit of an attempt. It says nothing where no limit
// can work: without a limit, or for a model whose price nobody knows.
func costOf(cfg *configs.Resolved, known facts, attempts int) costPlan {
	c := costPlan{
		LimitPerAttempt: cfg.Agent.CostLimit,
		PriceKnown:      known.source != "", PriceSource: known.source,
	}
	switch {
	case cfg.Model.Class == "scripted":
		c.Ceiling, c.CeilingOfTries = new(float64), new(float64)
	case c.LimitPerAttempt > 0:
		once := c.LimitPerAttempt * float64(attempts)
		tries := once * float64(cfg.Run.MaxTries)
		c.Ceiling, c.CeilingOfTries = &once, &tries
	}
	return c
}

// maxAsked is up to how many images a dry run asks registries about: it is to
// be quick. mini images plan asks about all.
const maxAsked = 32

// measure asks the container engine what it has, and registries about the rest
// if there are few enough images. That the engine does not answer is part of
// the plan, and no error.
func measure(ctx context.Context, cfg *configs.Resolved, needed []images.Need, few int) imagePlan {
	distinct := map[string]bool{}
	for _, n := range needed {
		distinct[n.Ref] = true
	}
	p := imagePlan{Distinct: len(distinct)}
	found, err := planImages(ctx, cfg, needed, len(distinct) <= few, false)
	if err != nil {
		p.Problem = err.Error()
		return p
	}
	p.Local, p.LocalBytes, p.Pull, p.Unknown, p.FreeBytes = found.Here, found.HereBytes, found.Pull, found.Unknown, found.FreeBytes
	p.PullBytes = found.PullBytes*unpacked + int64(found.Unknown)*roughImage
	return p
}
