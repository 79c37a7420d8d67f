package configs_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/configs"
)

func TestKubernetesMistakes(t *testing.T) {
	for section, want := range map[string]string{
		"contxt: a":                         ":3: unknown key environment.kubernetes.contxt; did you mean environment.kubernetes.context?",
		"security: restriced":               `:3: environment.kubernetes.security: "restriced" is not one of baseline, restricted, user_namespace; did you mean restricted?`,
		"schedule_timeout: 30m":             `environment.kubernetes.schedule_timeout: it must be a number, not "30m"`,
		"max_pods: -1":                      "environment.kubernetes.max_pods: -1 is negative; 0 means no limit",
		"burst: 0":                          "environment.kubernetes.burst: 0 is less than 1",
		"cpu_request: -0.5":                 "environment.kubernetes.cpu_request: -0.5 is not a positive number",
		"namespace: My_Space":               `environment.kubernetes.namespace: "My_Space" is not the name of a namespace`,
		"ephemeral_storage: 10GB":           `environment.kubernetes.ephemeral_storage: "10GB" is not a size; write "10Gi"`,
		"ephemeral_storage: 0Gi":            `environment.kubernetes.ephemeral_storage: "0Gi" is not a size`,
		"registry_mirror: https://mirror/x": "environment.kubernetes.registry_mirror: write HOST",
		"tolerations: {key: a}":             "environment.kubernetes.tolerations: it must be a list of mappings, not a mapping",
		"affinity: [a]":                     "environment.kubernetes.affinity: it must be a mapping, not a list",
		"pod_patch: {spec: {1: a}}":         "environment.kubernetes.pod_patch: the keys must be strings",
		"helper: image":                     "environment.kubernetes.helper: helper_image is not set",
		"security: restricted":              "environment.kubernetes.security: restricted pods do not run as root; set environment.user",
	} {
		t.Run(section, func(t *testing.T) {
			l, err := configs.ReadFile(file(t, "mine.yaml", "environment:\n  kubernetes:\n    "+section+"\n  environment_class: kubernetes\n"))
			if err == nil {
				_, err = configs.Merge(builtin(t, "swebench"), l)
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v\nwant %s", err, want)
			}
		})
	}
}

// Free YAML is merged key by key, and a section for another class is no error.
func TestKubernetesSettings(t *testing.T) {
	first, err := configs.ReadFile(file(t, "first.yaml", `environment:
  kubernetes:
    security: restricted
    helper: image
    labels: {team: a}
    tolerations: [{key: spot, operator: Exists}]
    pod_patch: {spec: {hostAliases: [{ip: 10.0.0.1}], priority: 1}}
`))
	if err != nil {
		t.Fatal(err)
	}
	second, err := configs.ReadArg(`environment.kubernetes.pod_patch={spec: {priority: 2}}`)
	if err != nil {
		t.Fatal(err)
	}
	third, err := configs.ReadArg("environment.kubernetes.labels.cost=b")
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := configs.Merge(builtin(t, "swebench"), first, second, third)
	if err != nil {
		t.Fatal(err)
	}
	k := cfg.Environment.Kubernetes
	got := []any{cfg.Environment.Class, k.NetworkRequired, k.ScheduleTimeout, k.Labels, k.Tolerations, k.PodPatch}
	want := []any{
		"docker", true, 1800.0,
		map[string]string{"team": "a", "cost": "b"},
		[]map[string]any{{"key": "spot", "operator": "Exists"}},
		map[string]any{"spec": map[string]any{"hostAliases": []any{map[string]any{"ip": "10.0.0.1"}}, "priority": 2}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}
