package demo_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/datasets/demo"
)

// TestUnpackMatchesOfficialImages checks that the repositories have the properties of
// those in the official images: a set-up commit on top of the base commit, earlier and
// later commits, no remote.
func TestUnpackMatchesOfficialImages(t *testing.T) {
	for _, in := range instances(t) {
		t.Run(in.ID, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "new") // Unpack creates it
			if err := demo.Unpack(t.Context(), in.ID, dir); err != nil {
				t.Fatal(err)
			}
			got := map[string]string{
				"base":       git(t, dir, "rev-parse", "HEAD~1"),
				"set-up":     git(t, dir, "log", "-1", "--format=%an: %s"),
				"branch":     git(t, dir, "rev-parse", "--abbrev-ref", "HEAD"),
				"remotes":    git(t, dir, "remote"),
				"status":     git(t, dir, "status", "--porcelain"),
				"the future": git(t, dir, "rev-list", "--count", "next", "^HEAD"),
				"starts at":  git(t, dir, "rev-parse", "next~1"),
			}
			want := map[string]string{
				"base": in.BaseCommit, "set-up": "SWE-bench: SWE-bench", "branch": "main", "remotes": "", "status": "",
				"the future": "1", "starts at": in.BaseCommit,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("repository (-want +got):\n%s", diff)
			}
			if n := len(strings.Fields(git(t, dir, "diff", "--name-only", "HEAD~1"))); n != 1 {
				t.Errorf("the set-up commit edits %d tracked files, want 1", n)
			}
			if past := git(t, dir, "tag", "--merged", "HEAD"); past == "" {
				t.Error("no tag in the past")
			}
			if future := git(t, dir, "tag", "--no-merged", "HEAD"); !strings.HasPrefix(future, "v") {
				t.Errorf("tags in the future: %q", future)
			}
			if n := git(t, dir, "rev-list", "--count", "HEAD"); n < "4" {
				t.Errorf("%s commits, want a history", n)
			}
		})
	}
}

// TestUnpackIgnoresUserSettings unpacks under settings that would change commits.
func TestUnpackIgnoresUserSettings(t *testing.T) {
	in := instances(t)[0]
	home := t.TempDir()
	settings := "[user]\n\tname = Somebody\n[commit]\n\tgpgSign = true\n[core]\n\tautocrlf = true\n\thooksPath = /nonexistent\n" +
		"[init]\n\tdefaultBranch = trunk\n[am]\n\tkeepcr = true\n"
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	startup := filepath.Join(home, "startup")
	if err := os.WriteFile(startup, []byte("exit 7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, value := range map[string]string{
		"HOME": home, "XDG_CONFIG_HOME": home, "BASH_ENV": startup, "TZ": "Asia/Kathmandu",
		"GIT_DIR": "/nonexistent", "GIT_AUTHOR_NAME": "Somebody", "GIT_COMMITTER_DATE": "2001-01-01T00:00:00Z",
	} {
		t.Setenv(name, value)
	}
	err := demo.Unpack(t.Context(), in.ID, dir)
	os.Unsetenv("GIT_DIR") //nolint:errcheck // t.Setenv restores the old value after the test
	if err != nil {
		t.Fatal(err)
	}
	if got := git(t, dir, "rev-parse", "HEAD~1"); got != in.BaseCommit {
		t.Errorf("base commit %s, want %s", got, in.BaseCommit)
	}
}

func TestUnpackRefuses(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("no more"))
	for name, tt := range map[string]struct {
		ctx  context.Context
		id   string
		dir  string
		path string
		want string
	}{
		"an unknown instance":    {id: "minidemo__nothing-1", want: `no instance "minidemo__nothing-1"`},
		"a folder above":         {id: "..", want: `no instance ".."`},
		"the folder itself":      {id: ".", want: `no instance "."`},
		"no name":                {id: "", want: `no instance ""`},
		"a part of an instance":  {id: "minidemo__ledger-17/base", want: "no instance"},
		"a folder in use":        {id: "minidemo__ledger-17", dir: full, want: "is not empty"},
		"a context that ended":   {ctx: ended, id: "minidemo__ledger-17", want: "no more"},
		"a machine without bash": {id: "minidemo__ledger-17", path: full, want: "install bash and git"},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.ctx == nil {
				tt.ctx = t.Context()
			}
			if tt.dir == "" {
				tt.dir = t.TempDir()
			}
			if tt.path != "" {
				t.Setenv("PATH", tt.path)
			}
			if err := demo.Unpack(tt.ctx, tt.id, tt.dir); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
