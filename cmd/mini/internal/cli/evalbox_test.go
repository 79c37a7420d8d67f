package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/configs"
)

// TestEvalConfig: nothing that the agent's sandboxes are configured to be gets
// into those of evaluations.
func TestEvalConfig(t *testing.T) {
	plain := &configs.Resolved{}
	c := evalConfig(plain, "run", "bridge")
	if err := anyImage(c).Validate(); err != nil {
		t.Error(err)
	}
	if c.User != "root" || c.Network != "bridge" || !cmp.Equal(c.CapAdd, []string{"SYS_ADMIN"}) || c.CapDrop == nil || len(c.CapDrop) > 0 {
		t.Errorf("not the official profile: %+v", c)
	}
	// Verdicts of another profile are other verdicts: its name says what it is.
	if want := c.User + ", " + c.CapAdd[0] + ", no bound on memory"; evalProfile != want || c.MemoryBytes > 0 {
		t.Errorf("the profile is called %q, want %q", evalProfile, want)
	}
	agents := &configs.Resolved{}
	agents.Environment = configs.Environment{
		User: "nobody", Network: "none", Memory: "1g", PidsLimit: 20, ReadOnly: true, Env: map[string]string{"BASH_ENV": "/x"},
		CapDrop: []string{"ALL"}, Dir: "/elsewhere", Interpreter: []string{"sh", "-c"}, Runtime: "runsc", Image: "other",
		Tmpfs: map[string]string{"/tmp": "1m"}, CPUs: 0.5,
	}
	if diff := cmp.Diff(c, evalConfig(agents, "run", "bridge")); diff != "" {
		t.Errorf("(-official +with the agent's settings)\n%s", diff)
	}
}
