package configs

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/docker/go-units"

	"github.com/minibench/mini/agent/memory"
	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/trajectories"
)

// Known names of classes; the command line turns them into implementations.
var (
	ModelClasses       = []string{"openai", "anthropic", "scripted"}
	EnvironmentClasses = []string{"docker", "local", "bubblewrap"}
)

// keeping are the values of run.keep, syncing those of run.fsync, evalNetworks those of eval.network,
// caching those of model.cache, imagesTaken those of model.images, modes those of agent.mode.
var (
	caching      = []string{"", "5m", "1h", "off"}
	keeping      = []string{"none", "failed", "all"}
	syncing      = []string{string(trajectories.SyncNever), string(trajectories.SyncAttempt), string(trajectories.SyncRecord)}
	evalNetworks = []string{"bridge", "none"}
	imagesTaken  = []string{"auto", "yes", "no"}
	modes        = []string{"confirm", "yolo", "human"}
)

// maxAttempts bounds run.attempts, as runner.MaxSamples does.
const maxAttempts = 10_000

// validate finds values of the right type that make no sense, and gives the
// agent what it needs of the other sections.
func (r *Resolved) validate() error {
	errs := slices.Concat(
		r.validateModel(), r.validateRoute(), r.validateSummary(), r.validateEnvironment(),
		r.optional("agent.mode", r.Agent.Mode, modes), r.foreignTemplates(), r.validateAbilities(), r.validateAgents(),
	)
	for _, f := range []struct {
		key   string
		value int
	}{
		{"run.workers", r.Run.Workers}, {"run.attempts", r.Run.Attempts}, {"run.max_tries", r.Run.MaxTries}, {"model.max_tries", r.Model.MaxTries},
	} {
		if f.value < 1 {
			errs = append(errs, r.errorf(f.key, "%v is less than 1", f.value))
		}
	}
	if r.Run.Attempts > maxAttempts {
		errs = append(errs, r.errorf("run.attempts", "%d is more than %d", r.Run.Attempts, maxAttempts))
	}
	errs = slices.Concat(errs,
		notNegative(r, "run.max_starts", r.Run.MaxStarts, "0 means twice the cores"),
		notNegative(r, "run.total_cost_limit", r.Run.TotalCostLimit, "0 means no bound"),
		notNegative(r, "run.total_calls", r.Run.TotalCalls, "0 means no bound"),
		notNegative(r, "run.max_consecutive_provider_failures", r.Run.MaxProviderFailures, "0 means that they never stop a batch"),
	)
	if n := r.Agent.WallTimeLimit; n > maxSeconds {
		errs = append(errs, r.errorf("agent.wall_time_limit_seconds", "%v is more than ten years; 0 means no limit", n))
	}
	errs = slices.Concat(
		errs, r.class("run.fsync", string(r.Run.Fsync), syncing, ""), r.validateImages(), r.validateEval(),
		r.validateReplay(), r.validatePolicy(), r.optional("memory.notes", r.Memory.Notes, memory.Keeping), r.validateSkills(),
	)
	r.Agent.StartupCommand = r.Run.StartupCommand
	r.Agent.Timeout = seconds(r.Environment.Timeout)
	return joined(errs)
}

// notNegative finds a number below zero, and says what to write instead.
func notNegative[N int | int64 | float64](r *Resolved, key string, n N, instead string) []error {
	if n >= 0 {
		return nil
	}
	return []error{r.errorf(key, "%v is negative; %s", n, instead)}
}

// variable matches names of environment variables.
var variable = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// IsVariable says whether an environment variable may have this name.
func IsVariable(name string) bool { return variable.MatchString(name) }

func (r *Resolved) validateModel() []error {
	m := r.Model
	errs := r.class("model.model_class", m.Class, ModelClasses, peerClass(m.Class, true))
	if m.APIKeyEnv != "" && !variable.MatchString(m.APIKeyEnv) { // maybe the key itself, so it is not repeated
		errs = append(errs, r.errorf("model.api_key_env",
			"it is the name of the environment variable that has the key, as OPENAI_API_KEY; what stands there is no such name"))
	}
	if key := secretIn(m.Kwargs, "model.model_kwargs"); key != "" {
		errs = append(errs, r.errorf(key,
			"keys are never part of the configuration, which is written to files; put it into an environment variable and name that in model.api_key_env"))
	}
	for _, name := range slices.Sorted(maps.Keys(m.Kwargs)) {
		offered := name == "parallel_tool_calls" && r.Agent.Protocol == protocol.Tools
		if answer, ok := peerKwargs[name]; ok && !offered {
			errs = append(errs, r.errorf("model.model_kwargs."+name, "%s", answer))
		}
	}
	errs = append(errs, slices.Concat(r.validateProvider(), r.validateWindow())...)
	if u, err := url.Parse(m.BaseURL); err != nil || u.User != nil || u.RawQuery != "" {
		errs = append(errs, r.errorf("model.base_url", "not a plain URL; user names, passwords and queries have no place in it, since the configuration is written to files"))
	}
	if m.BaseURL != "" && !strings.HasPrefix(m.BaseURL, "http://") && !strings.HasPrefix(m.BaseURL, "https://") {
		errs = append(errs, r.errorf("model.base_url", "it begins with neither http:// nor https://"))
	}
	const priced = "it is in dollars per million tokens"
	errs = slices.Concat(errs,
		notNegative(r, "model.price.input", m.Price.Input, priced), notNegative(r, "model.price.cached", m.Price.Cached, priced),
		notNegative(r, "model.price.output", m.Price.Output, priced), r.optional("model.images", m.Images, imagesTaken))
	if m.Delay > 0 && m.Class != "scripted" {
		errs = append(errs, r.errorf("model.delay", "only the scripted model takes its time on purpose; leave it out"))
	}
	if m.Delay < 0 || m.Delay > maxSeconds {
		errs = append(errs, r.errorf("model.delay", "%v is not a number of seconds from 0 on", m.Delay))
	}
	const allowed = "0 means no bound but the provider's own"
	return slices.Concat(errs, notNegative(r, "model.requests_per_minute", m.RequestsPerMinute, allowed),
		notNegative(r, "model.tokens_per_minute", m.TokensPerMinute, allowed), notNegative(r, "model.max_concurrent", m.MaxConcurrent, allowed),
		r.positive("model.timeout", m.Timeout), r.positive("model.stream_idle", m.StreamIdle), r.positive("model.max_wait", m.MaxWait))
}

// validateProvider is about the settings that only some classes heed: nobody is
// to believe that they have an effect elsewhere.
func (r *Resolved) validateProvider() []error {
	m := r.Model
	var errs []error
	switch {
	case m.Class == "anthropic" && !slices.Contains(caching, m.Cache):
		errs = append(errs, r.errorf("model.cache", "%.20q is not one of %s", m.Cache, strings.Join(caching[1:], ", ")))
	case m.Class != "anthropic" && m.Cache != "":
		errs = append(errs, r.errorf("model.cache", "only model_class: anthropic is told what to cache; leave it out"))
	}
	if m.SendReasoning && m.Class != "openai" {
		errs = append(errs, r.errorf("model.send_reasoning", "only model_class: openai can be told to; leave it out"))
	}
	if len(m.Headers) > 0 && m.Class == "scripted" {
		errs = append(errs, r.errorf("model.headers", "the scripted model sends none; leave them out"))
	}
	for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
		if LooksSecret(name) {
			errs = append(errs, r.errorf("model.headers."+name,
				"keys are never part of the configuration, which is written to files; put it into an environment variable and name that in model.api_key_env"))
		}
	}
	return errs
}

// class finds a name that is none of the known ones; answer is what to say of
// it, if anything is known.
func (r *Resolved) class(key, name string, known []string, answer string) []error {
	if slices.Contains(known, name) {
		return nil
	}
	text := fmt.Sprintf("%.60q is not one of %s", name, strings.Join(known, ", "))
	if answer == "" {
		if best := Nearest(name, known); best != "" {
			answer = fmt.Sprintf("did you mean %s?", best)
		}
	}
	if answer != "" {
		text += "; " + answer
	}
	return []error{r.errorf(key, "%s", text)}
}

// optional is class for a setting that need not be set.
func (r *Resolved) optional(key, name string, known []string) []error {
	if name == "" {
		return nil
	}
	return r.class(key, name, known, "")
}

// secretIn is the dotted key of something secret in nested settings.
func secretIn(v any, path string) string {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			full := path + "." + key
			if LooksSecret(key) {
				return full
			}
			if found := secretIn(value, full); found != "" {
				return found
			}
		}
	case []any:
		for _, value := range v {
			if found := secretIn(value, path); found != "" {
				return found
			}
		}
	}
	return ""
}

// validateImages is about the settings of a run that concern images and what
// stays of sandboxes.
func (r *Resolved) validateImages() []error {
	errs := append(r.class("run.keep", r.Run.Keep, keeping, ""), notNegative(r, "run.prefetch", r.Run.Prefetch, "0 pulls nothing ahead")...)
	if n := r.Run.PullsPerMinute; !(n >= 0) || n > 1e6 {
		errs = append(errs, r.errorf("run.pulls_per_minute", "%v is not a number of pulls; 0 means no bound", n))
	}
	for _, f := range []struct{ key, size string }{{"run.image_budget", r.Run.ImageBudget}, {"run.min_free_disk", r.Run.MinFreeDisk}} {
		if _, err := DiskSize(f.size); err != nil {
			errs = append(errs, r.errorf(f.key, `%q is not a size; write "80GB"`, f.size))
		}
	}
	return errs
}

// maxReruns bounds how often a failure is run again: more says nothing more.
const maxReruns = 100

func (r *Resolved) validateReplay() (errs []error) {
	for _, text := range r.Replay.Ignore {
		re, err := regexp.Compile(text)
		if err == nil && re.MatchString("") {
			err = errors.New("it matches an empty text, and so every line")
		}
		if err != nil {
			errs = append(errs, r.errorf("replay.ignore", "%q is no pattern that can be used: %v", text, err))
		}
	}
	return errs
}

func (r *Resolved) validateEval() []error {
	e := r.Eval
	errs := slices.Concat(r.class("eval.network", e.Network, evalNetworks, ""), r.positive("eval.timeout", e.Timeout),
		notNegative(r, "eval.workers", e.Workers, "0 means half of the cores"))
	if e.RerunFailed < 0 || e.RerunFailed > maxReruns {
		errs = append(errs, r.errorf("eval.rerun_failed", "%d is not a number from 0 to %d", e.RerunFailed, maxReruns))
	}
	return errs
}

// DiskSize is Size for disks, whose makers count in thousands: "80GB" is
// 80,000,000,000 bytes. Empty and "0" are 0.
func DiskSize(s string) (int64, error) {
	if s == "" || s == "0" {
		return 0, nil
	}
	n, err := units.FromHumanSize(s)
	if err == nil && n <= 0 {
		err = fmt.Errorf("%q is not positive", s)
	}
	return n, err
}

// Size is a number of bytes as people write it: "512m", "4g". Empty is 0.
func Size(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	n, err := units.RAMInBytes(s)
	if err == nil && n <= 0 {
		err = fmt.Errorf("%q is not positive", s)
	}
	return n, err
}

func (r *Resolved) positive(key string, n float64) []error {
	if !(n > 0) || n > maxSeconds {
		return []error{r.errorf(key, "%v is not a number of seconds between 0 and %d", n, int(maxSeconds))}
	}
	return nil
}

// maxSeconds is ten years, well below where durations overflow.
const maxSeconds = 10 * 365 * 24 * 3600

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
