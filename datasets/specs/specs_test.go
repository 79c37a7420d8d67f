package specs_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/datasets/specs"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/corpustest"
	"github.com/minibench/mini/internal/require"
)

func TestLookup(t *testing.T) {
	tests := map[string]struct {
		repo, version string
		want          specs.Spec
	}{
		"python, one command": {"astropy/astropy", "4.3", specs.Spec{
			Language: specs.Python, Install: "python -m pip install -e .[test] --verbose", Test: []string{"pytest -rA"},
		}},
		"python, prepared": {"django/django", "3.0", specs.Spec{
			Language: specs.Python, Install: "python -m pip install -e .",
			EvalCommands: []string{
				"sed -i '/en_US.UTF-8/s/^# //g' /etc/locale.gen && locale-gen",
				"export LANG=en_US.UTF-8", "export LANGUAGE=en_US:en", "export LC_ALL=en_US.UTF-8",
			},
			Test: []string{"./tests/runtests.py --verbosity 2 --settings=test_sqlite --parallel 1"},
		}},
		"another language": {"valkey-io/valkey", "928", specs.Spec{
			Language: "c", Build: []string{"make distclean", "make"},
			Test: []string{`TERM=dumb ./runtest --durable --single unit/cluster/replica-migration --only "/.*NOREPLICAS.*"`},
		}},
		"no tests": {"dbt-labs/dbt-core", "0.13", specs.Spec{Language: specs.Python, Install: "python -m pip install -e ."}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := specs.Lookup(test.repo, test.version)
			require.NoError(t, err)
			assert.Equal(t, test.want, got, "the result")
		})
	}
}

func TestUnknown(t *testing.T) {
	for _, test := range []struct{ repo, version, want string }{
		{"nobody/nothing", "1", `repository "nobody/nothing"`},
		{"Django/Django", "3.0", `repository "Django/Django"`}, // names are exact
		{"django/django", "99", `version "99" of django/django`},
		{"PrismJS/prism", "1.15", `version "1.15" of PrismJS/prism`},
	} {
		_, err := specs.Lookup(test.repo, test.version)
		if !errors.Is(err, specs.ErrUnknown) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("Lookup(%q, %q): error %v, want %q", test.repo, test.version, err, test.want)
		}
	}
	if specs.LogParser("nobody/nothing") != "" || specs.EvalType("nobody/nothing") != "" {
		t.Error("an unknown repository has a parser or a type")
	}
	if (specs.OverrideFor("nobody__nothing-1") != specs.Override{}) {
		t.Error("an unknown instance has an override")
	}
}

func TestOverrides(t *testing.T) {
	for id, want := range map[string]specs.Override{
		"astropy__astropy-8707": {ExtraLine: "python -m pip install -q 'pytest<7.2'"},
		"apache__lucene-13170":  {StreamIsolation: true},
	} {
		assert.Equal(t, want, specs.OverrideFor(id), "%s", id)
	}
}

// The columns of the official rows agree with the tables.
func TestOfficialRowsAgree(t *testing.T) {
	for _, set := range []string{"verified", "lite", "multilingual", "multimodal-dev"} {
		t.Run(set, func(t *testing.T) {
			src, err := datasets.Local(corpustest.RealData(t, "swebench/"+set+".jsonl.gz"), "")
			require.NoError(t, err)
			rows := 0
			loaded, err := datasets.Load(t.Context(), []datasets.Source{src}, datasets.AllRows)
			require.NoError(t, err)
			for _, in := range loaded.Instances {
				rows++
				assert.Equal(t, in.LogParser, specs.LogParser(in.Repo), "%s: the parser", in.ID)
				assert.Equal(t, in.EvalType, specs.EvalType(in.Repo), "%s: the type", in.ID)
			}
			if rows == 0 {
				t.Error("there are no rows")
			}
		})
	}
}
