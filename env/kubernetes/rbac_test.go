//go:build kubernetes

package kubernetes

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

var update = flag.Bool("update", false, "rewrite golden files")

func TestWriteRole(t *testing.T) {
	for name, o := range map[string]RoleOptions{
		"placeholder.yaml": {Namespace: "bench"},
		"subjects.yaml": {
			Namespace: "bench", Users: []string{"alice@example.com"}, Groups: []string{"sso:\"ml\""},
			ServiceAccounts: []string{"runner", "ci:runner"},
		},
	} {
		var out bytes.Buffer
		if err := WriteRole(&out, o); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", "rbac", name)
		if *update {
			if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), out.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		checkRole(t, &out, o)
	}
}

// checkRole decodes the output as the API server does.
func checkRole(t *testing.T, out io.Reader, o RoleOptions) {
	t.Helper()
	d := yaml.NewYAMLOrJSONDecoder(out, 1<<10)
	var role rbacv1.Role
	var binding rbacv1.RoleBinding
	if err := d.Decode(&role); err != nil {
		t.Fatal(err)
	}
	if err := d.Decode(&binding); err != nil {
		t.Fatal(err)
	}
	var want []rbacv1.PolicyRule
	for _, r := range Rights() {
		want = append(want, rbacv1.PolicyRule{APIGroups: []string{r.Group}, Resources: []string{r.Name()}, Verbs: r.Verbs})
	}
	if !reflect.DeepEqual(role.Rules, want) || role.Namespace != o.Namespace {
		t.Errorf("%s: %+v", role.Namespace, role.Rules)
	}
	if binding.RoleRef.Name != role.Name || binding.Namespace != o.Namespace || len(binding.Subjects) == 0 {
		t.Errorf("%+v", binding)
	}
	for i, group := range o.Groups {
		if s := binding.Subjects[len(o.Users)+i]; s.Kind != rbacv1.GroupKind || s.Name != group {
			t.Errorf("%+v", s)
		}
	}
}

func TestWriteRoleWithoutName(t *testing.T) {
	if err := WriteRole(io.Discard, RoleOptions{Namespace: "bench", ServiceAccounts: []string{"ci:"}}); err == nil {
		t.Error("no error for a service account without a name")
	}
}
