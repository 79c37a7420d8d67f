package worktree_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/local"
)

// preparedSandbox is a sandbox of a prepared image.
type preparedSandbox struct {
	env.Environment
	note string
}

func (b preparedSandbox) Info() env.Info {
	info := b.Environment.Info()
	info.Prepared = &env.ImagePreparation{Note: b.note}
	return info
}

// A repository that changed after it was prepared is scrubbed.
func TestScrubPreparedImage(t *testing.T) {
	t.Parallel()
	const elsewhere = `(git init -q ../other; cd ../other; echo SECRET > s; git add s; git -c user.name=a -c user.email=a@b commit -qm SECRET; git gc -q)
`
	root := t.TempDir()
	dir := filepath.Join(root, "repo")
	sh(t, root, "mkdir repo; cd repo\n"+story+"git gc -q")
	sb := disposable{container{sandbox(t, local.Config{Dir: dir})}}
	note, err := worktree.Prepare(t.Context(), sb)
	if err != nil || note == "" {
		t.Fatalf("%q, %v", note, err)
	}
	sh(t, root, "cp -a repo saved")
	for name, tt := range map[string]struct {
		plant string
		holds bool // the preparation is still valid
	}{
		"nothing":                {"true", true},
		"files of the work tree": {"echo SECRET > SECRET; rm one.txt", true},
		"a refreshed index":      {"sleep 0.01; touch one.txt; git status >/dev/null; git update-index --refresh", true},
		"an object":              {"echo SECRET | git hash-object -w --stdin", false},
		"a pack":                 {elsewhere + "cp ../other/.git/objects/pack/* .git/objects/pack/", false},
		"a ref":                  {"git branch SECRET-branch", false},
		"a packed ref":           {`echo "$(git rev-parse HEAD) refs/heads/SECRET" >> .git/packed-refs`, false},
		"an alternate":           {elsewhere + "echo $(cd ../other/.git/objects; pwd) > .git/objects/info/alternates", false},
		"a list of refs":         {`printf '%s\trefs/heads/SECRET\n' $(git rev-parse HEAD) > .git/info/refs`, false},
		"a file of Git LFS":      {"mkdir -p .git/lfs/objects/aa; echo SECRET > .git/lfs/objects/aa/aa", false},
		"a log":                  {"mkdir -p .git/logs; echo SECRET > .git/logs/HEAD", false},
		"a fetched head":         {"echo SECRET > .git/FETCH_HEAD", false},
		"a remote":               {"git remote add SECRET https://example.org", false},
		"what is staged":         {"echo more > more; git add more", false},
		"another HEAD":           {"git checkout -q --detach", false},
		"a replacement":          {elsewhere + "mkdir -p .git/refs/replace; cp ../other/.git/objects/pack/* .git/objects/pack/; git -C ../other rev-parse HEAD > .git/refs/replace/$(git rev-parse HEAD)", false},
	} {
		t.Run(name, func(t *testing.T) {
			sh(t, root, "rm -rf repo other; cp -a saved repo; cd repo; "+tt.plant)
			report, err := worktree.Scrub(t.Context(), preparedSandbox{sb, note})
			if err != nil || !report.IsClean() || report.Head == "" || report.Commits != 2 || report.Prepared != tt.holds {
				t.Errorf("%v, %+v", err, report)
			}
			if found := sh(t, dir, secrets); !tt.holds && found != "" {
				t.Errorf("left behind:\n%s", found)
			}
		})
	}
}

// If there is nothing to prepare, the note is empty. An invalid note is
// ignored.
func TestNothingToPrepare(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sb := disposable{container{sandbox(t, local.Config{Dir: dir})}}
	if note, err := worktree.Prepare(t.Context(), sb); note != "" || err != nil {
		t.Errorf("without a repository: %q, %v", note, err)
	}
	sh(t, dir, story+"ln -s /tmp .git/modules")
	if note, err := worktree.Prepare(t.Context(), sb); note != "" || err == nil || !strings.Contains(err.Error(), "links") {
		t.Errorf("with a link: %q, %v", note, err)
	}
	for _, note := range []string{"", "{}", `{"inventory":""}`, "nonsense"} {
		if report, err := worktree.Scrub(t.Context(), preparedSandbox{sb, note}); err != nil || report.Prepared || report.Commits != 2 {
			t.Errorf("with the note %q it was not scrubbed: %v, %+v", note, err, report)
		}
	}
}
