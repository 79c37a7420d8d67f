package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// pages are the documents with transcripts, from the top of the repository.
var pages = []string{"docs/tools.md"}

// TestTranscripts runs the stories in testdata/pages, and compares their output with
// the transcripts in the documents: what stands between
//
//	<!-- transcript NAME -->
//
// and the next empty comment is the output of NAME.txtar. The models are scripted;
// sandboxes, commands, tools and files are real. With -update the documents are
// written anew.
func TestTranscripts(t *testing.T) {
	stories, err := filepath.Glob("testdata/pages/*.txtar")
	if err != nil || len(stories) == 0 {
		t.Fatal("no stories", err)
	}
	told := map[string]string{}
	for _, file := range stories {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(name, func(t *testing.T) { told[name] = tell(t, file) })
	}
	shown := map[string]bool{}
	for _, page := range pages {
		path := filepath.Join("../../../..", page)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		fresh := transcript.ReplaceAllStringFunc(string(text), func(part string) string {
			m := transcript.FindStringSubmatch(part)
			shown[m[1]] = true
			now, ok := told[m[1]]
			switch {
			case !ok && !slices.Contains(stories, "testdata/pages/"+m[1]+".txtar"):
				t.Errorf("%s: there is no story %q", page, m[1])
				return part
			case !ok:
				return part // of those that -run names
			case now == "":
				return part // it failed, and said so
			case masked(m[2]) == masked(now):
				return part // the same except for times and the like
			case !updating():
				t.Errorf("%s: the transcript of %s is another (-page +run); go test -run TestTranscripts -update ./cmd/mini/internal/cli writes it anew\n%s",
					page, m[1], cmp.Diff(masked(m[2]), masked(now)))
			}
			return fmt.Sprintf("<!-- transcript %s -->\n\n%s\n<!-- -->", m[1], now)
		})
		if updating() && fresh != string(text) {
			if err := os.WriteFile(path, []byte(fresh), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name := range told {
		if !shown[name] {
			t.Errorf("no page shows the story %s", name)
		}
	}
}

// transcript is one in a page.
var transcript = regexp.MustCompile(`(?s)<!-- transcript (\S+) -->\n\n(.*?)\n<!-- -->`)

// tell runs a story: a txtar archive with a file script, whose lines are run by
// bash one after the other, in the folder repo of the archive, which becomes a git
// repository. config.yaml is the user's own. It returns what was typed and
// printed, as an indented block.
func tell(t *testing.T, file string) string {
	t.Helper()
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	place := newTourPlace(t, "", nil)
	repo := filepath.Join(place.dir, "repo")
	config := filepath.Join(place.dir, "home/.config/mini/config.yaml")
	if err := os.Remove(config); err != nil {
		t.Fatal(err)
	}
	script, here := "", func(text []byte) []byte { return bytes.ReplaceAll(text, []byte(somewhere), []byte(place.dir)) }
	for _, f := range a.Files {
		path := filepath.Join(place.dir, f.Name)
		switch f.Name {
		case "script":
			script = string(here(f.Data))
			continue
		case "config.yaml":
			path = config
		}
		mode := os.FileMode(0o644)
		if bytes.HasPrefix(f.Data, []byte("#!")) {
			mode = 0o755
		}
		for _, err := range []error{os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, here(f.Data), mode)} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	place.env = append(place.env, "PATH="+filepath.Join(place.dir, "bin")+":"+os.Getenv("PATH"), "XDG_STATE_HOME="+place.dir+"/home/.state",
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b.c", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b.c")
	run := func(command string) string {
		var out bytes.Buffer
		cmd := exec.CommandContext(t.Context(), "bash", "-c", command)
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = repo, place.env, &out, &out
		if err := cmd.Run(); err != nil {
			t.Errorf("$ %s\n%v\n%s", command, err, out.String())
		}
		return out.String()
	}
	if err := os.MkdirAll(repo, 0o755); err != nil {
		t.Fatal(err)
	}
	run("git init -q . && git add -A && git commit -q --allow-empty -m begin")
	var b strings.Builder
	for command := range strings.SplitSeq(strings.TrimSpace(script), "\n") {
		out := strings.ReplaceAll(run(command), place.dir, somewhere)
		lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(out), "\n"), func(line string) bool { return aside.MatchString(line) })
		fmt.Fprintf(&b, "$ %s\n%s\n\n", strings.ReplaceAll(command, place.dir, somewhere), strings.TrimSpace(strings.Join(lines, "\n")))
	}
	if t.Failed() {
		return ""
	}
	text := empty.ReplaceAllString(strings.TrimSpace(b.String()), "\n\n")
	return regexp.MustCompile(`(?m)^(.+)$`).ReplaceAllString(text, "    $1") + "\n"
}

// somewhere stands for the folder of a story, in it and in its transcript.
const somewhere = "/home/you/work"

// aside are lines of a session that are left out of a transcript: mode, cost and
// time before each step, and where files are.
var aside = regexp.MustCompile(`^(yolo|confirm) \| |^trajectory: |^mini: removed leftovers `)

// empty are several empty lines.
var empty = regexp.MustCompile(`\n{3,}`)

// masked is a transcript without what differs from run to run.
func masked(text string) string { return strings.TrimSpace(differing.ReplaceAllString(text, "#")) }

var differing = regexp.MustCompile(`\d{4}-\d\d-\d\d(T|,? )\d\d:\d\d(:\d\d(\.\d+)?)?(Z| UTC)?|\b\d\d:\d\d(:\d\d)?\b|\b\d+(\.\d+)? m?s\b|\b[0-9a-f]{7,64}\b|mini-scratch-\w+-\w+`)
