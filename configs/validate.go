package configs

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/docker/go-units"
)

// Known names of classes; the command line turns them into implementations.
var (
	ModelClasses       = []string{"openai", "scripted"}
	EnvironmentClasses = []string{"docker", "local"}
)

// validate finds values of the right type that make no sense, and gives the
// agent what it needs of the other sections.
func (r *Resolved) validate() error {
	if err := r.validateModel(); err != nil {
		return err
	}
	if err := r.validateEnvironment(); err != nil {
		return err
	}
	for key, n := range map[string]float64{
		"run.workers": float64(r.Run.Workers), "run.max_tries": float64(r.Run.MaxTries),
		"model.max_tries": float64(r.Model.MaxTries),
	} {
		if n < 1 {
			return r.errorf(key, "%v is less than 1", n)
		}
	}
	if r.Run.MaxStarts < 0 {
		return r.errorf("run.max_starts", "%d is negative; 0 means twice the cores", r.Run.MaxStarts)
	}
	if n := r.Agent.WallTimeLimit; n > maxSeconds {
		return r.errorf("agent.wall_time_limit_seconds", "%v is more than ten years; 0 means no limit", n)
	}
	r.Agent.StartupCommand = r.Run.StartupCommand
	r.Agent.Timeout = seconds(r.Environment.Timeout)
	return nil
}

func (r *Resolved) validateModel() error {
	m := r.Model
	if !slices.Contains(ModelClasses, m.Class) {
		return r.errorf("model.model_class", "%q is not one of %s", m.Class, strings.Join(ModelClasses, ", "))
	}
	if key := secretIn(m.Kwargs, "model.model_kwargs"); key != "" {
		return r.errorf(key,
			"keys are never part of the configuration, which is written to files; put it into an environment variable and name that in model.api_key_env")
	}
	if u, err := url.Parse(m.BaseURL); err != nil || u.User != nil || u.RawQuery != "" {
		return r.errorf("model.base_url", "not a plain URL; user names, passwords and queries have no place in it, since the configuration is written to files")
	}
	if m.Price.Input < 0 || m.Price.Cached < 0 || m.Price.Output < 0 {
		return r.errorf("model.price", "negative")
	}
	return r.positive("model.timeout", m.Timeout)
}

// secretIn is the dotted key of something secret in nested settings.
func secretIn(v any, path string) string {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			full := path + "." + key
			if looksSecret(key) {
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

func (r *Resolved) validateEnvironment() error {
	e := r.Environment
	if !slices.Contains(EnvironmentClasses, e.Class) {
		return r.errorf("environment.environment_class", "%q is not one of %s", e.Class, strings.Join(EnvironmentClasses, ", "))
	}
	if err := r.positive("environment.timeout", e.Timeout); err != nil {
		return err
	}
	if err := r.positive("environment.pull_timeout", e.PullTimeout); err != nil {
		return err
	}
	for key, size := range map[string]string{"environment.memory": e.Memory, "environment.shm_size": e.ShmSize} {
		if _, err := Size(size); err != nil {
			return r.errorf(key, `%q is not a size; write "4g" or "512m"`, size)
		}
	}
	if e.CPUs < 0 || e.PidsLimit < 0 {
		return r.errorf("environment.cpus", "cpus and pids_limit must not be negative")
	}
	for name, value := range e.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			return r.errorf("environment.env."+name, "not a name and value an environment can have")
		}
	}
	return nil
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

func (r *Resolved) positive(key string, n float64) error {
	if !(n > 0) || n > maxSeconds {
		return r.errorf(key, "%v is not a number of seconds between 0 and %d", n, int(maxSeconds))
	}
	return nil
}

// maxSeconds is ten years, well below where durations overflow.
const maxSeconds = 10 * 365 * 24 * 3600

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
