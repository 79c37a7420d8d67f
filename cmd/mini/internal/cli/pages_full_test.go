//go:build full

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

// pages are the paths of the documents with transcripts in the repository.
var pages = []string{"docs/tools.md"}

// TestTranscripts runs the stories in testdata/pages, and compares their output with
// the transcripts in the documents. The text between
//
//	<!-- transcript NAME -->
//
// and the next empty comment is the output of NAME.txtar. The models are scripted;
// sandboxes, commands, tools and files are real. With -update, the test rewrites the
// documents.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	stories, err := filepath.Glob("testdata/pages/*.txtar")
	if err != nil || len(stories) == 0 {
		t.Fatal("no stories", err)
	}
	transcripts := map[string]string{}
	for _, file := range stories {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(name, func(t *testing.T) { transcripts[name] = runStory(t, file) })
	}
	shown := map[string]bool{}
	for _, page := range pages {
		path := filepath.Join("../../../..", page)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		updated := transcript.ReplaceAllStringFunc(string(text), func(part string) string {
			m := transcript.FindStringSubmatch(part)
			shown[m[1]] = true
			got, ok := transcripts[m[1]]
			switch {
			case !ok && !slices.Contains(stories, "testdata/pages/"+m[1]+".txtar"):
				t.Errorf("%s: there is no story %q", page, m[1])
				return part
			case !ok:
				return part // -run excludes this story
			case got == "":
				return part // the story failed and reported the errors
			case maskVarying(m[2]) == maskVarying(got):
				return part // equal except for times, durations and hashes
			case !updating():
				t.Errorf("%s: the transcript of %s is another (-page +run); go test -run TestTranscripts -update ./cmd/mini/internal/cli writes it anew\n%s",
					page, m[1], cmp.Diff(maskVarying(m[2]), maskVarying(got)))
			}
			return fmt.Sprintf("<!-- transcript %s -->\n\n%s\n<!-- -->", m[1], got)
		})
		if updating() && updated != string(text) {
			if err := os.WriteFile(path, []byte(updated), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name := range transcripts {
		if !shown[name] {
			t.Errorf("no page shows the story %s", name)
		}
	}
}

// transcript matches a transcript in a page.
var transcript = regexp.MustCompile(`(?s)<!-- transcript (\S+) -->\n\n(.*?)\n<!-- -->`)

// runStory runs a story, which is a txtar archive. The folder repo of the archive
// becomes a git repository, in which bash runs the lines of the file script one after
// the other. config.yaml is the user's configuration. runStory returns the commands and
// their output as an indented block, or "" if a command fails.
func runStory(t *testing.T, file string) string {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	place := newTourPlace(t, "", nil)
	repo := filepath.Join(place.dir, "repo")
	config := filepath.Join(place.dir, "home/.config/mini/config.yaml")
	if err := os.Remove(config); err != nil {
		t.Fatal(err)
	}
	script, withDir := "", func(text []byte) []byte { return bytes.ReplaceAll(text, []byte(placeholderDir), []byte(place.dir)) }
	for _, f := range archive.Files {
		path := filepath.Join(place.dir, f.Name)
		switch f.Name {
		case "script":
			script = string(withDir(f.Data))
			continue
		case "config.yaml":
			path = config
		}
		mode := os.FileMode(0o644)
		if bytes.HasPrefix(f.Data, []byte("#!")) {
			mode = 0o755
		}
		for _, err := range []error{os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, withDir(f.Data), mode)} {
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
		out := strings.NewReplacer(place.dir, placeholderDir, place.temp, "/tmp").Replace(run(command))
		lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(out), "\n"), func(line string) bool { return omitted.MatchString(line) })
		fmt.Fprintf(&b, "$ %s\n%s\n\n", strings.ReplaceAll(command, place.dir, placeholderDir), strings.TrimSpace(strings.Join(lines, "\n")))
	}
	if t.Failed() {
		return ""
	}
	text := emptyLines.ReplaceAllString(strings.TrimSpace(b.String()), "\n\n")
	return regexp.MustCompile(`(?m)^(.+)$`).ReplaceAllString(text, "    $1") + "\n"
}

// placeholderDir stands for the folder of a story, in the story and in its transcript.
const placeholderDir = "/home/you/work"

// omitted matches lines that a transcript does not contain: mode, cost and time before
// each step, and the paths of files.
var omitted = regexp.MustCompile(`^(yolo|confirm) \| |^trajectory: |^mini: removed leftovers `)

// emptyLines matches several empty lines.
var emptyLines = regexp.MustCompile(`\n{3,}`)

// maskVarying replaces the parts of a transcript that differ between runs.
func maskVarying(text string) string {
	return strings.TrimSpace(varyingText.ReplaceAllString(text, "#"))
}

var varyingText = regexp.MustCompile(`\d{4}-\d\d-\d\d(T|,? )\d\d:\d\d(:\d\d(\.\d+)?)?(Z| UTC)?|\b\d\d:\d\d(:\d\d)?\b|\b\d+(\.\d+)? m?s\b|\b[0-9a-f]{7,64}\b|mini-scratch-\w+-\w+` +
	`|about \d+ tokens to \d+|"tokens_(before|after)":\d+` + // estimates depend on the length of a temporary folder's name
	`|"seq":\d+`) // the number of events depends on how a reply is cut into pieces
