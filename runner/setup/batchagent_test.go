package setup_test

import (
	"testing"

	"github.com/minibench/mini/agent/external"
	"github.com/minibench/mini/configs"
)

// TestDefinitions reads the definitions of all agents that come with mini.
func TestDefinitions(t *testing.T) {
	names := configs.OtherAgents()
	if len(names) < 10 {
		t.Errorf("agents are %v", names)
	}
	for _, name := range names {
		data, err := configs.AgentDefinition(name)
		if err != nil {
			t.Fatal(err)
		}
		if def, err := external.Parse(data); err != nil || def.Name != name {
			t.Errorf("%s: %q, %v", name, def.Name, err)
		}
	}
}
