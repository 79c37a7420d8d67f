package eval

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/configs"
	envopen "github.com/minibench/mini/env/open"
)

// The settings of the agent's sandboxes do not affect evaluation containers.
func TestContainerConfig(t *testing.T) {
	plain := &configs.Resolved{}
	c := containerConfig(plain, "run", "bridge")
	if err := envopen.WithPlaceholderImage(c).Validate(); err != nil {
		t.Error(err)
	}
	if c.User != "root" || c.Network != "bridge" || !cmp.Equal(c.CapAdd, []string{"SYS_ADMIN"}) || c.CapDrop == nil || len(c.CapDrop) > 0 {
		t.Errorf("not the official profile: %+v", c)
	}
	// The profile describes the configuration.
	if want := c.User + ", " + c.CapAdd[0] + ", no bound on memory"; containerProfile != want || c.MemoryBytes > 0 {
		t.Errorf("the profile is called %q, want %q", containerProfile, want)
	}
	agents := &configs.Resolved{}
	agents.Environment = configs.Environment{
		User: "nobody", Network: "none", Memory: "1g", PidsLimit: 20, ReadOnly: true, Env: map[string]string{"BASH_ENV": "/x"},
		CapDrop: []string{"ALL"}, Dir: "/elsewhere", Interpreter: []string{"sh", "-c"}, Runtime: "runsc", Image: "other",
		Tmpfs: map[string]string{"/tmp": "1m"}, CPUs: 0.5,
	}
	if diff := cmp.Diff(c, containerConfig(agents, "run", "bridge")); diff != "" {
		t.Errorf("(-official +with the agent's settings)\n%s", diff)
	}
}
