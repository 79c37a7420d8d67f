package envopen_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minibench/mini/configs"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/require"
)

// Settings that pods cannot have are refused if the user set them, in every layer.
func TestCheckSettings(t *testing.T) {
	for _, tt := range []struct{ file, arg, want string }{
		{"", "", ""},
		{"memory: 8g, tmpfs: {/scratch: 64m}, runtime: gvisor, user: '1000'", "environment.shm_size=1g", ""},
		{"", "environment.pids_limit=0", ""},
		{"mounts: ['/a:/b']", "", "mine.yaml:1), but kubernetes does not support it: the folders of this machine"},
		{"ulimits: {nofile: 10}", "", "environment.ulimits is set ("},
		{"", "environment.pids_limit=100", "environment.pids_limit is set (-c environment.pids_limit=100)"},
		{"platform: linux/arm64", "", "set environment.kubernetes.node_selector, for example {kubernetes.io/arch: "},
	} {
		t.Run(tt.file+tt.arg, func(t *testing.T) {
			layer, err := configs.ReadBuiltin("swebench")
			require.NoError(t, err)
			layers := []configs.Layer{layer}
			if tt.file != "" {
				path := filepath.Join(t.TempDir(), "mine.yaml")
				require.NoError(t, os.WriteFile(path, []byte("environment: {"+tt.file+"}\n"), 0o600))
				if layer, err = configs.ReadFile(path); err != nil {
					t.Fatal(err)
				}
				layers = append(layers, layer)
			}
			for _, arg := range []string{"environment.environment_class=kubernetes", tt.arg} {
				if arg == "" {
					continue
				}
				if layer, err = configs.ReadArg(arg); err != nil {
					t.Fatal(err)
				}
				layers = append(layers, layer)
			}
			cfg, err := configs.Merge(layers...)
			require.NoError(t, err)
			got := ""
			if err := envopen.CheckSettings(cfg, cfg.Environment.Class); err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
