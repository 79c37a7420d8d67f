package docker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/env/docker"
)

func TestValidate(t *testing.T) {
	for name, tt := range map[string]struct {
		config docker.Config
		want   string // in the error; empty means valid
	}{
		"plain":            {docker.Config{Image: "a"}, ""},
		"everything":       {docker.Config{Image: "a", Platform: "linux/arm64/v8", Dir: "/w", CPUs: 0.5, MemoryBytes: -1, PIDs: -1, CapAdd: []string{"NET_RAW"}}, ""},
		"no image":         {docker.Config{}, "image"},
		"platform":         {docker.Config{Image: "a", Platform: "arm64"}, "linux/amd64"},
		"relative dir":     {docker.Config{Image: "a", Dir: "w"}, "absolute"},
		"variable":         {docker.Config{Image: "a", Env: map[string]string{"A=B": ""}}, "A=B"},
		"little memory":    {docker.Config{Image: "a", MemoryBytes: 1 << 20}, "memory"},
		"negative":         {docker.Config{Image: "a", CPUs: -1}, "negative"},
		"short lease":      {docker.Config{Image: "a", Lease: time.Millisecond}, "lease"},
		"tracing":          {docker.Config{Image: "a", CapAdd: []string{"SYS_PTRACE"}}, "forge"},
		"tracing, as Cap_": {docker.Config{Image: "a", CapAdd: []string{"cap_sys_ptrace"}}, "forge"},
		"everything's cap": {docker.Config{Image: "a", CapAdd: []string{"all"}}, "forge"},
		"tracing by force": {docker.Config{Image: "a", CapAdd: []string{"SYS_PTRACE"}, Force: true}, ""},
		"two mistakes":     {docker.Config{Dir: "w"}, "image is missing\ndirectory"},
	} {
		t.Run(name, func(t *testing.T) {
			err := tt.config.Validate()
			if (err == nil) != (tt.want == "") || (err != nil && !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("err = %v, want one with %q", err, tt.want)
			}
		})
	}
}
