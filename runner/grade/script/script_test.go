package script_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/runner/grade/script"
)

const begin = "#!/bin/bash\nset -uxo pipefail\n"

func TestRowsOwn(t *testing.T) {
	tests := map[string]struct{ row, want string }{
		"plain":               {begin + "cd /testbed\n", begin + "cd /testbed\n"},
		"no preamble":         {"make", begin + "make\n"},
		"preamble in a patch": {begin + "cat <<E\n#!/bin/bash\n #!/bin/bash\nset -uxo pipefail\nE", begin + "cat <<E\n #!/bin/bash\nE\n"},
		"white space": {
			"\x1c\u00a0\u2028\n\tmake \u3000\x1f\r\n\n", begin + "make\n",
		},
		"no white space to Python": {"\u200bmake\ufeff", begin + "\u200bmake\ufeff\n"},
		"carriage returns stay":    {"a\r\nb", begin + "a\r\nb\n"},
		"exit code": {
			": '>>>>> Start Test Output'\npytest\n: '>>>>> End Test Output'\ngit checkout x",
			begin + ": '>>>>> Start Test Output'\npytest\nSWEBENCH_TEST_EXIT_CODE=$?\n: '>>>>> End Test Output'\n" +
				"echo \">>>>> Test Exit Code: $SWEBENCH_TEST_EXIT_CODE\"\ngit checkout x\n",
		},
		"the first end counts": {
			"x # >>>>> End Test Output\n: '>>>>> End Test Output'",
			begin + "SWEBENCH_TEST_EXIT_CODE=$?\nx # >>>>> End Test Output\necho \">>>>> Test Exit Code: $SWEBENCH_TEST_EXIT_CODE\"\n" +
				": '>>>>> End Test Output'\n",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := script.For(datasets.Instance{ID: "a__b-1", EvalScript: test.row})
			require.NoError(t, err)
			if diff := cmp.Diff(test.want, s.Text); diff != "" || s.Generated {
				t.Errorf("generated: %v; (-want +got)\n%s", s.Generated, diff)
			}
		})
	}
}

const testPatch = `diff --git a/tests/a/test_x.py b/tests/a/test_x.py
--- a/tests/a/test_x.py
+++ b/tests/a/test_x.py
@@ -1 +1 @@
-x
+y
diff --git a/tests/data.json b/tests/data.json
new file mode 100644
--- /dev/null
+++ b/tests/data.json
@@ -0,0 +1 @@
+{}
`

func TestGenerated(t *testing.T) {
	tests := map[string]struct {
		in   datasets.Instance
		want string
	}{
		"python": {
			datasets.Instance{ID: "d", Repo: "django/django", Version: "3.0"},
			`source /opt/miniconda3/bin/activate
conda activate testbed
cd /testbed
sed -i '/en_US.UTF-8/s/^# //g' /etc/locale.gen && locale-gen
export LANG=en_US.UTF-8
export LANGUAGE=en_US:en
export LC_ALL=en_US.UTF-8
git config --global --add safe.directory /testbed
cd /testbed
git status
git show
git -c core.fileMode=false diff b4c0
source /opt/miniconda3/bin/activate
conda activate testbed
python -m pip install -e .
git checkout b4c0 tests/a/test_x.py tests/data.json
git apply -v - <<'EOF_114329324912'
PATCH
EOF_114329324912
: '>>>>> Start Test Output'
./tests/runtests.py --verbosity 2 --settings=test_sqlite --parallel 1 a.test_x
SWEBENCH_TEST_EXIT_CODE=$?
: '>>>>> End Test Output'
echo ">>>>> Test Exit Code: $SWEBENCH_TEST_EXIT_CODE"
git checkout b4c0 tests/a/test_x.py tests/data.json
`,
		},
		"nothing to install": {
			datasets.Instance{ID: "h", Repo: "swe-bench/humaneval", Version: "1.0"},
			`source /opt/miniconda3/bin/activate
conda activate testbed
cd /testbed
git config --global --add safe.directory /testbed
cd /testbed
git status
git show
git -c core.fileMode=false diff b4c0
source /opt/miniconda3/bin/activate
conda activate testbed
git checkout b4c0 tests/a/test_x.py tests/data.json
git apply -v - <<'EOF_114329324912'
PATCH
EOF_114329324912
: '>>>>> Start Test Output'
python test.py
SWEBENCH_TEST_EXIT_CODE=$?
: '>>>>> End Test Output'
echo ">>>>> Test Exit Code: $SWEBENCH_TEST_EXIT_CODE"
git checkout b4c0 tests/a/test_x.py tests/data.json
`,
		},
		"another language": {
			datasets.Instance{ID: "v", Repo: "valkey-io/valkey", Version: "790"},
			`cd /testbed
git config --global --add safe.directory /testbed
git status
git show
git -c core.fileMode=false diff b4c0
git checkout b4c0 tests/a/test_x.py && rm -f tests/data.json
git apply -v - <<'EOF_114329324912'
PATCH
EOF_114329324912
make distclean
make
: '>>>>> Start Test Output'
(TERM=dumb ./runtest --durable --single unit/cluster/cluster-shards) | cat
SWEBENCH_TEST_EXIT_CODE=$?
: '>>>>> End Test Output'
echo ">>>>> Test Exit Code: $SWEBENCH_TEST_EXIT_CODE"
git checkout b4c0 tests/a/test_x.py && rm -f tests/data.json
`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.in.BaseCommit, test.in.TestPatch = "b4c0", testPatch
			for _, row := range []string{"", " \n"} { // both mean no script
				test.in.EvalScript = row
				s, err := script.For(test.in)
				require.NoError(t, err)
				if diff := cmp.Diff(begin+strings.ReplaceAll(test.want, "PATCH", testPatch), s.Text); diff != "" || !s.Generated {
					t.Errorf("generated: %v; (-want +got)\n%s", s.Generated, diff)
				}
			}
		})
	}
}

func TestNoScript(t *testing.T) {
	row := datasets.Instance{ID: "a", Repo: "valkey-io/valkey", Version: "790", BaseCommit: "b", TestPatch: testPatch}
	tests := map[string]struct {
		change func(*datasets.Instance)
		want   string
	}{
		"repository": {func(in *datasets.Instance) { in.Repo = "x/y" }, `repository "x/y" is not in the tables`},
		"version":    {func(in *datasets.Instance) { in.Version = "8" }, `version "8" of valkey-io/valkey is not in the tables`},
		"by hand":    {func(in *datasets.Instance) { in.Repo = "markedjs/marked" }, "scripts of markedjs/marked are hand-written"},
		"no command": {func(in *datasets.Instance) { in.Repo, in.Version = "dbt-labs/dbt-core", "0.13" }, "no test command for dbt-labs/dbt-core"},
		"no commit":  {func(in *datasets.Instance) { in.BaseCommit = "" }, "no base_commit"},
		"no patch":   {func(in *datasets.Instance) { in.TestPatch = "" }, "no test_patch"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := row
			test.change(&in)
			_, err := script.For(in)
			if !errors.Is(err, script.ErrNoScript) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want ErrNoScript with %q", err, test.want)
			}
			in.EvalScript = "make"
			if _, err := script.For(in); err != nil {
				t.Errorf("the row's own script is refused: %v", err)
			}
		})
	}
}

func TestAssets(t *testing.T) {
	const row = "a\n: '>>>>> Start Test Output'\nb\n: '>>>>> Start Test Output'"
	const object = `{"problem_statement":["https://x/p.png"],
		"patch":[{"path":"img/z.png","url":"https://x/z"}],
		"test_patch":["https://x/bare.png",{"url":"https://x/no-path"},{"path":"t/a b.png"},{"path":null},7]}`
	quoted, err := json.Marshal(object)
	require.NoError(t, err)
	const copies = "mkdir -p $(dirname t/a b.png) && cp /image_assets/t__a b.png t/a b.png\n" +
		"mkdir -p $(dirname img/z.png) && cp /image_assets/img__z.png img/z.png\n"
	both := [][2]string{{"/image_assets/t__a b.png", ""}, {"/image_assets/img__z.png", "https://x/z"}}
	tests := map[string]struct {
		row, assets, want string
		places            [][2]string
	}{
		"object":    {row, object, begin + "a\n" + copies + row[2:] + "\n", both},
		"string":    {row, string(quoted), begin + "a\n" + copies + row[2:] + "\n", both},
		"no marker": {"a", object, begin + "a\n\n" + strings.TrimSuffix(copies, "\n"), both},
		"first":     {row[2:], object, begin + copies + row[2:] + "\n", both},
		"null":      {"a", "null", begin + "a\n", nil},
		"empty":     {"a", `""`, begin + "a\n", nil},
		"no lists":  {"a", `{"patch":null,"test_patch":"","problem_statement":"x"}`, begin + "a\n", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := datasets.Instance{ID: "a", EvalScript: test.row, Row: map[string]json.RawMessage{"image_assets": json.RawMessage(test.assets)}}
			s, err := script.For(in)
			require.NoError(t, err)
			assert.Equal(t, test.want, s.Text, "s.Text")
			var places [][2]string
			for _, a := range s.Assets {
				places = append(places, [2]string{a.Path, a.URL})
			}
			assert.Equal(t, test.places, places, "places")
		})
	}
}

func TestBadAssets(t *testing.T) {
	for raw, want := range map[string]string{
		`[1]`:                              "must be an object of lists",
		`"{"`:                              "must be an object of lists",
		`{"patch":{"path":"a"}}`:           "patch must be a list",
		`{"patch":[{"path":".."}]}`:        `patch[0]: invalid path ".."`,
		`{"test_patch":[{"path":"a\nb"}]}`: `test_patch[0]: invalid path "a\nb"`,
	} {
		in := datasets.Instance{ID: "a__b-1", EvalScript: "x", Row: map[string]json.RawMessage{"image_assets": json.RawMessage(raw)}}
		_, err := script.For(in)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "a__b-1") {
			t.Errorf("%s: error %v, want the instance and %q", raw, err, want)
		}
	}
}

func TestFiles(t *testing.T) {
	for name, test := range map[string]struct{ patch, changed, added string }{
		"nothing": {"", "", ""},
		"prose":   {"hello\n\nworld", "", ""},
		"several": {
			"diff --git a/n b/n\n--- a/n\n+++ b/n\n@@ -1,2 +1,2 @@\n--- a/x\n-\n+++ b/x\n+\ndiff --git a/m b/o\nrename from m\nrename to o\n" +
				"diff --git a/p b/p\ndeleted file mode 100644\n",
			"n m p", "",
		},
		"added":                {"diff --git a/n b/n\nnew file mode 100644\nindex 0..1\nBinary files /dev/null and b/n differ\n", "", "n"},
		"a mode within a hunk": {"diff --git a/n b/n\n--- a/n\n+++ b/n\n@@ -1 +1 @@\n-a\nnew file mode 1\n", "n", ""},
		"quoted, with a space": {
			"diff --git \"a/\\303\\251 z.py\" \"b/\\303\\251 z.py\"\nnew file mode 100644\ndiff --git \"a/\\303\" \"b/\\303\"\n", "", `"\303\251 z.py"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			changed, added := script.PatchFiles(test.patch)
			if strings.Join(changed, " ") != test.changed || strings.Join(added, " ") != test.added {
				t.Errorf("changed %q, added %q; want %q and %q", changed, added, test.changed, test.added)
			}
		})
	}
}

func FuzzFiles(f *testing.F) {
	f.Add(testPatch)
	f.Add("diff --git \"a/\\303\" \"b/x\"\nBinary files a and b differ\n--- /dev/null\n+++ \"b/\"\n@@ -0,0 +1 @@\n+\n")
	f.Fuzz(func(t *testing.T, patch string) {
		changed, added := script.PatchFiles(patch)
		for _, name := range append(changed, added...) {
			if len(name) > len(patch) || strings.Contains(name, "\n") {
				t.Errorf("a file is called %q", name)
			}
		}
		script.Directives("django/django", patch)
	})
}
