package savedlogs_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/runner/grade/savedlogs"
)

// tree creates files, whose contents are their names, and links ("a -> b").
func tree(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		link, target, isLink := strings.Cut(name, " -> ")
		require.NoError(t, os.MkdirAll(filepath.Dir(link), 0o700))
		var err error
		if isLink {
			err = os.Symlink(target, link)
		} else {
			err = os.WriteFile(name, []byte(name), 0o600)
		}
		require.NoError(t, err)
	}
}

func TestFind(t *testing.T) {
	for name, tt := range map[string]struct {
		files []string
		paths string
		want  string // paths, followed by the id if the path does not end with it
	}{
		"the folder itself":        {[]string{"a/test_output.txt"}, "a", "a"},
		"packed":                   {[]string{"a/test_output.txt.gz"}, "a", "a"},
		"the log":                  {[]string{"a/test_output.txt"}, "a/test_output.txt", "a"},
		"below":                    {[]string{"x/y/a/test_output.txt", "x/b/test_output.txt.gz", "x/c/report.json"}, "x", "x/b x/y/a"},
		"in each other":            {[]string{"x/a/test_output.txt", "x/a/b/test_output.txt"}, "x", "x/a x/a/b"},
		"both forms":               {[]string{"x/a/test_output.txt", "x/a/test_output.txt.gz"}, "x", "x/a"},
		"natural order":            {[]string{"x/a-10/test_output.txt", "x/a-9/test_output.txt"}, "x", "x/a-9 x/a-10"},
		"slashes":                  {[]string{"x/a/test_output.txt"}, "./x//", "x/a"},
		"twice":                    {[]string{"x/a/test_output.txt", "x/b/test_output.txt"}, "x/b x x/b", "x/a x/b"},
		"here":                     {[]string{"test_output.txt"}, ".", ".=ID"},
		"a link that was named":    {[]string{"y/a/test_output.txt", "x -> y"}, "x", "x/a"},
		"a link to a folder":       {[]string{"x/z/.b/a/test_output.txt", "x/y -> z/.b"}, "x", "x/z/.b/a"},
		"a link out":               {[]string{"y/a/test_output.txt", "x/b/test_output.txt", "x/y -> ../y"}, "x", "x/b !x/y"},
		"a link out, named too":    {[]string{"y/a/test_output.txt", "x/b/test_output.txt", "x/y -> ../y"}, "x y", "x/b y/a !x/y"},
		"a file that leads out":    {[]string{"log", "x/b/test_output.txt", "x/a/test_output.txt -> ../../log"}, "x", "x/b !x/a/test_output.txt"},
		"a link beside":            {[]string{"x/b/test_output.txt", "x/a -> b"}, "x", "x/b"},
		"links in a circle":        {[]string{"x/a/test_output.txt", "x/a/up -> ..", "x/up -> ."}, "x", "x/a"},
		"a link to itself":         {[]string{"x/a/test_output.txt", "x/loop -> loop"}, "x", "x/a"},
		"a link to nowhere":        {[]string{"x/a/test_output.txt", "x/b -> nowhere"}, "x", "x/a"},
		"a log that is a link":     {[]string{"x/log", "x/a/test_output.txt -> ../log"}, "x", "x/a"},
		"a log that leads nowhere": {[]string{"x/a/test_output.txt -> nowhere"}, "x", "x/a"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "ID")
			require.NoError(t, os.Mkdir(dir, 0o700))
			t.Chdir(dir)
			tree(t, tt.files...)
			found, err := savedlogs.FindLogs(strings.Fields(tt.paths))
			require.NoError(t, err)
			var got []string
			for _, f := range found.Folders {
				path := filepath.ToSlash(f.Path)
				if filepath.Base(f.Path) != f.InstanceID {
					path += "=" + f.InstanceID
				}
				got = append(got, path)
			}
			for _, s := range found.Skipped {
				got = append(got, "!"+filepath.ToSlash(s.Path))
			}
			assert.Equal(t, tt.want, strings.Join(got, " "), "found")
		})
	}
}

// TestFindUnreadable checks that the search skips a folder that cannot be read, here because its
// path is too long.
func TestFindUnreadable(t *testing.T) {
	t.Chdir(t.TempDir())
	tree(t, "x/b/test_output.txt", "x/z/test_output.txt")
	at, err := os.OpenRoot("x/b")
	for range 25 {
		require.NoError(t, err)
		name, above := strings.Repeat("n", 200), at
		if err = above.Mkdir(name, 0o700); err == nil {
			at, err = above.OpenRoot(name)
		}
		_ = above.Close()
	}
	if err == nil {
		err = at.Close()
	}
	require.NoError(t, err)
	found, err := savedlogs.FindLogs([]string{"x"})
	if err != nil || len(found.Folders) != 2 || len(found.Skipped) != 1 || !strings.HasPrefix(found.Skipped[0].Path, "x/b/nnn") {
		t.Fatalf("%d folders, %d skipped, %v", len(found.Folders), len(found.Skipped), err)
	}
	assert.Equal(t, "file name too long", found.Skipped[0].Reason, "the reason")
	if _, err := savedlogs.FindLogs([]string{"x/b/" + strings.Repeat("n", 200)}); !errors.Is(err, savedlogs.ErrNoLogs) || !strings.Contains(err.Error(), "file name too long") {
		t.Errorf("of nothing else: %v", err)
	}
}

func TestFindNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	tree(t, "x/a/test_output.txt", "x/b/patch.diff", "x/b/run_instance.log", "x/c/report.json", "y/notes", "loop -> loop")
	for path, want := range map[string]string{
		"y":       "y: no test_output.txt and no test_output.txt.gz in it or below it",
		"y/notes": "y/notes: not a folder; name a folder with logs",
		"nowhere": "nowhere: no such folder",
		"loop":    "find logs: stat loop: too many levels of symbolic links",
		"x/c":     "x/c: no test_output.txt and no test_output.txt.gz in it or below it",
	} {
		if _, err := savedlogs.FindLogs([]string{"x", path}); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", path, err, want)
		}
	}
	if _, err := savedlogs.FindLogs([]string{"y"}); !errors.Is(err, savedlogs.ErrNoLogs) {
		t.Errorf("error %v, want ErrNoLogs", err)
	}
	found, err := savedlogs.FindLogs([]string{"x"})
	require.NoError(t, err)
	assert.Equal(t, []string{filepath.Join("x", "b"), filepath.Join("x", "c")}, found.WithoutLog, "without a log")
}
