package bench

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/configs"
)

// vary returns settings with values, from KEY=A,B.
func vary(t *testing.T, args ...string) []configs.Varied {
	t.Helper()
	var all []configs.Varied
	for _, arg := range args {
		v, err := configs.ParseVaried(arg)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

func TestCombinationNames(t *testing.T) {
	long := strings.Repeat("x", 60)
	for _, test := range []struct{ args, want []string }{
		{[]string{"model.model_name=a,b", "agent.step_limit=1,50"}, []string{
			"model_name=a,step_limit=1", "model_name=a,step_limit=50", "model_name=b,step_limit=1", "model_name=b,step_limit=50",
		}},
		{[]string{"model.timeout=1", "environment.timeout=2"}, []string{"model.timeout=1,environment.timeout=2"}},
		{[]string{"model.model_name=org/a,org-a"}, []string{"model_name=org-a-526e3317", "model_name=org-a"}},
		{[]string{"model.model_name=../..,$(x) y,é"}, []string{"model_name=..-..-0cfd1c96", "model_name=-x-y-0e647ccb", "model_name=--4a99557e"}},
		{[]string{"model.model_name=" + long}, []string{"model_name=" + long[:maxValueName] + "-42f2d973"}},
	} {
		all, err := combine(vary(t, test.args...))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, c := range all {
			names = append(names, c.name)
		}
		if diff := cmp.Diff(test.want, names); diff != "" {
			t.Errorf("%v (-want +got):\n%s", test.args, diff)
		}
	}
}

// Names of many settings are limited, and those that differ only in case are refused.
func TestCombinationNameLimits(t *testing.T) {
	args := []string{"model.model_kwargs.last=1,2"}
	for i := range 12 {
		args = append([]string{fmt.Sprintf("model.model_kwargs.setting%d=%s", i, strings.Repeat("v", 30))}, args...)
	}
	all, err := combine(vary(t, args...))
	if err != nil {
		t.Fatal(err)
	}
	if a, b := all[0].name, all[1].name; a == b || len(a) > 255 || len(b) > 255 {
		t.Errorf("%q and %q", a, b)
	}
	if _, err := combine(vary(t, "model.model_name=a,A")); err == nil {
		t.Error("two folders whose names differ in case only")
	}
	if _, err := combine(vary(t, "agent.step_limit=1,2,3,4,5,6,7,8,9,10", "model.model_name=a,b,c,d,e,f,g,h,i,j,k")); err == nil {
		t.Error("110 combinations")
	}
}
