package configs

import (
	"net/url"
	"slices"
	"strings"
)

// Outside lists what a configuration makes mini start, reach and share outside of sandboxes.
type Outside struct {
	Programs  []KeyValue `json:"programs,omitempty"`
	Addresses []KeyValue `json:"addresses,omitempty"`
	Mounts    []KeyValue `json:"mounts,omitempty"`
}

// KeyValue is a value with the key of its setting.
type KeyValue struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Outside returns what the configuration names outside of sandboxes. The local environment
// is no sandbox.
func (r *Resolved) Outside() (o Outside) {
	program := func(key string, words ...string) {
		if text := strings.TrimSpace(strings.Join(words, " ")); text != "" {
			o.Programs = append(o.Programs, KeyValue{key, text})
		}
	}
	address := func(key, text string) {
		if u, err := url.Parse(text); err == nil && u.Host != "" { // a password or a key may be in the rest
			text = u.Scheme + "://" + u.Host + u.Path
		}
		if text != "" {
			o.Addresses = append(o.Addresses, KeyValue{key, text})
		}
	}
	address(modelAddress, r.Model.BaseURL)
	for _, routed := range r.RouteConfigs() {
		if routed.Model.BaseURL != r.Model.BaseURL {
			address(routeKey, routed.Model.BaseURL)
		}
	}
	if summary := r.SummaryConfig(); summary != nil && summary.Model.BaseURL != r.Model.BaseURL {
		address(summaryKey, summary.Model.BaseURL)
	}
	program("tools.search", r.Tools.Search...)
	for _, t := range r.Tools.Host {
		program("tools.host "+t.Name, t.Command...)
	}
	for _, s := range r.Tools.MCP {
		program("tools.mcp "+s.Name, s.Command...)
		address("tools.mcp "+s.Name, s.URL)
	}
	program("policy.decider", r.Policy.Decider.Command...)
	address("policy.decider", r.Policy.Decider.URL)
	e := r.Environment
	switch {
	case UsesCluster(e.Class):
		program("environment.kubernetes.kubeconfig, which may name a program for the login", e.Kubernetes.Kubeconfig)
		address("environment.kubernetes.registry_mirror", e.Kubernetes.RegistryMirror)
	case RunsOnHost(e.Class):
		program("environment.helper_dir", e.HelperDir)
	}
	if e.Class == "local" {
		program("run.env_startup_command", r.Run.StartupCommand)
		if r.UsesOtherAgent() {
			program("agent.agent_class", r.Agent.Class)
		}
		if origin, ok := r.Origin("environment.interpreter"); ok && !origin.IsBuiltin() {
			program("environment.interpreter", e.Interpreter...)
		}
	}
	for _, m := range e.Mounts {
		o.Mounts = append(o.Mounts, KeyValue{"environment.mounts", m})
	}
	return o
}

// modelAddress is the key of the address of the user's model.
const modelAddress = "model.base_url"

// List returns a line for each kind of value that there is: "programs: npx server (tools.mcp
// books), ...".
func (o Outside) List() []string {
	return o.lines("programs: ", "addresses: ", "mounts: ")
}

// Line returns all values in one line, except the address of the user's model; "" if there
// are no others.
func (o Outside) Line() string {
	o.Addresses = slices.DeleteFunc(slices.Clone(o.Addresses), func(a KeyValue) bool { return a.Key == modelAddress })
	return strings.Join(o.lines("starts ", "connects to ", "mounts "), "; ")
}

func (o Outside) lines(programs, addresses, mounts string) (lines []string) {
	for _, kind := range []struct {
		name   string
		values []KeyValue
	}{{programs, o.Programs}, {addresses, o.Addresses}, {mounts, o.Mounts}} {
		var texts []string
		for _, v := range kind.values {
			texts = append(texts, v.Value+" ("+v.Key+")")
		}
		if len(texts) > 0 {
			lines = append(lines, kind.name+strings.Join(texts, ", "))
		}
	}
	return lines
}
