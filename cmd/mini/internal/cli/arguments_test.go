package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cli"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
)

// TestArguments runs commands with wrong arguments and checks what they say. $D is a folder with the
// runs first and second, and the folder other, which is no run. The commands write nothing.
func TestArguments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const (
		manifest = `{"format":"mini-1","sessions":[{"started":"2026-01-01T00:00:00Z"}],"dataset":{"name":"d","selected":1}}`
		results  = `{"format":"mini-1","instances":{"x__y-1":{"class":"submitted","exit_status":"Submitted","attempt":1,"attempts":1}}}`
		journal  = `{"id":1,"parent_id":0,"type":"header","time":"2026-01-01T00:00:01Z","data":{"format":"mini-1"}}`
	)
	for name, text := range map[string]string{
		"other/file": "mine\n", "first/run.json": manifest, "second/run.json": manifest,
		"first/results.json": results, "second/results.json": results,
		"first/x__y-1/attempts/1/journal.jsonl": journal + "\n", "first/empty/file": "",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		command string
		exit    int
		want    string
	}{
		{"report", 2, "mini report takes the folder of a run, and none is in mini-runs; see mini report --help"},
		{"report $D/first -i bb", 2, `$D/first has no instance "bb" among its 1`},
		{"report $D/other", 2, "$D/other is not the folder of a run: it has no run.json, no results.json and no attempts of instances; mini import makes a run from trajectories of other agents"},
		{"report $D/missing", 2, "$D/missing: there is no such folder"},
		{"report $D", 2, "$D contains runs but is not a run; the newest one is $D/"},
		{"report $D/first/x__y-1", 2, "$D/first/x__y-1 belongs to the instance x__y-1 of a run; its folder is $D/first"},
		{"report $D/first/run.json", 2, "$D/first/run.json belongs to a run; its folder is $D/first"},
		{"report $D/first/x__y-1/attempts/1/journal.jsonl", 2, "journal.jsonl belongs to the instance x__y-1 of a run; its folder is $D/first"},
		{"report $D/first/empty", 2, "$D/first/empty belongs to a run; its folder is $D/first"},
		{"report $D/first $D/other", 2, "mini report shows one run; to put 2 into one file, add --html FILE"},

		{"report --html $D/one.html", 2, "mini-runs: there is no such folder"},
		{"report $D/nowhere --html $D/one.html", 2, "$D/nowhere: there is no such folder"},
		{"report $D/first --html $D/first", 2, "--html $D/first: that is not a file"},
		{"report $D/first --html $D/missing/one.html", 2, "there is no folder $D/missing"},
		{"report $D/first --html $D/second/results.json", 2, "that is in the folder of the run $D/second, which mini only reads"},
		{"report $D/first --html $D/one.html --html-steps some", 2, `--html-steps "some": it is none, flips, failed or all`},
		{"report $D/first --html-steps all", 2, "--html-steps is for --html FILE, which is not given"},
		{"compare $D/first $D/second --html-steps all", 2, "--html-steps is for --html FILE, which is not given"},
		{"report $D/first --html $D/one.html --json", 2, "--html and --json cannot be combined"},

		{"compare $D/first", 2, "at least two runs"},
		{"compare $D/first $D/./first", 2, "first is given twice"},
		{"compare $D/first $D/nowhere", 2, "$D/nowhere"},
		{"compare $D/first $D/second --base third", 2, "--base third is not one of the runs"},
		{"compare $D/first $D/second --missing zero", 2, "it is drop or fail"},
		{"report $D/first -i x --html f", 2, "--html and --instance cannot be combined"},
		{"compare $D/first $D/second --json --csv", 2, "--json, --csv, --markdown and --html cannot be combined"},

		{"inspect $D/first --filter colour:red", 2, `mini: --filter: unknown filter "colour:" (status:WORD, verdict:WORD, label:WORD, cost>N, cost<N, text:WORDS)`},
		{"inspect $D/first --sort price", 2, `mini: --sort: invalid sort field "price": use id, status`},
		{"inspect $D/nowhere", 2, "mini: $D/nowhere: there is no such folder"},
		{"inspect $D/first $D/other", 2, "takes one file or folder, not 2"},
		{"inspect --reasoning --no-reasoning $D/first", 2, "cannot be combined"},
		{"inspect --filter x", 2, "mini: mini inspect takes the folder of a run, and none is in mini-runs; see mini inspect --help"},

		{"runs $D/first", 2, "$D/first is a run; see mini report $D/first"},
		{"runs $D $D", 2, "takes one folder"},
		{"label", 2, "takes the folder of a run"},
		{"label $D/nowhere", 2, "$D/nowhere: there is no such folder"},
		{"label $D/first -d gone", 2, "mini label $D/first ID -d gone"},
		{"label $D/first x", 2, `$D/first has no instance "x" among its 1`},

		{"ctl $D/first paus", 2, `unknown action "paus"; did you mean pause?`},
		{"ctl $D/first kill", 2, "name an instance"},
		{"ctl $D/first pause x__y-1", 2, "applies to the whole batch"},
		{"ctl $D/nowhere", 2, "there is no such folder"},
		{"ctl $D", 2, "contains runs but is not a run; the newest one is $D/"},
		{"ctl $D/first/run.json", 2, "$D/first/run.json belongs to a run; its folder is $D/first"},
		{"ctl $D/first/x__y-1 kill x__y-1", 2, "belongs to the instance x__y-1 of a run; its folder is $D/first"},

		{"export $D/first -o $D/x", 2, "--format is required: openai, sharegpt"},
		{"export $D/first --format jsonl -o $D/x", 2, `--format: "jsonl" is not one of openai`},
		{"export $D/first --format openai", 2, "-o FOLDER is required"},
		{"export $D/first --format openai -o $D/out.jsonl", 2, "out.jsonl: looks like a file"},
		{"export --format openai -o $D/x", 2, "mini export takes the folders of runs, or files of trajectories"},
		{"export $D/nowhere --format openai -o $D/x", 2, "$D/nowhere: there is no such folder"},
		{"export $D/first $D/first --format openai -o $D/x", 2, "$D/first is given twice"},
		{"export $D/first --format openai --select best -o $D/x", 2, `--select: "best" is not one of all, first`},
		{"export $D/first --format openai --shard-size many -o $D/x", 2, `--shard-size: "many" is not a size; write it as 500MB`},
		{"export $D/first --format table --reasoning drop -o $D/x", 2, "--reasoning: not available for table; leave the flag out"},
		{"export $D/first --format table --split train=0.5,val=0.5 -o $D/x", 2, "--split: the format table has no training data to split"},
		{"export $D/first --format table --shard-rows 5 -o $D/x", 2, "--shard-rows and --shard-size: not available for table"},

		{"import $D/other", 2, "mini: -o RUN is required"},
		{"import -o $D/x", 2, "mini: mini import takes files or folders of trajectories"},
		{"import -o $D/x $D/nowhere", 2, "mini: $D/nowhere: no such file or directory"},
		{"import -o $D/x $D/other", 2, "mini: $D/other contains no trajectories"},
		{"regrade", 2, "takes the folder of a run"},
		{"regrade $D/other", 2, "$D/other has no evaluations by mini"},
	} {
		t.Run(test.command, func(t *testing.T) {
			t.Parallel()
			inDir := strings.NewReplacer("$D", dir)
			var out, errOut bytes.Buffer
			root := cli.NewRoot(app.New(t.Context(), cmdutil.Streams{In: strings.NewReader(""), Out: &out, Err: &errOut}))
			root.SetArgs(strings.Fields(inDir.Replace(test.command)))
			exit := cmdutil.ReportError(&errOut, root.ExecuteContext(t.Context()))
			if exit != test.exit || !strings.Contains(errOut.String(), inDir.Replace(test.want)) || out.Len() > 0 {
				t.Errorf("exit code %d, want %d and %q\nstdout: %s\nstderr: %s", exit, test.exit, test.want, &out, &errOut)
			}
		})
	}
	t.Cleanup(func() {
		for _, name := range []string{"one.html", "x", "out.jsonl"} {
			if cmdutil.FileExists(filepath.Join(dir, name)) {
				t.Errorf("%s was written", name)
			}
		}
	})
}
