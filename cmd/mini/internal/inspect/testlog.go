package inspect

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/runner/verdicts"
)

// maxLog is how much of a log is read, from its end, in bytes.
const maxLog = 2 << 20

// testLog is the log of the newest evaluation of what a trajectory submitted: its
// end first, since that has the results. There is always something to show.
func testLog(t *Trajectory) []*Section {
	page := &Page{}
	run := t.Item.Run
	if run == "" {
		page.add(Note, "", "no test log: this file is not in a run of mini's; mini import makes one of it, and mini eval -p RUN judges it")
		return page.Sections
	}
	s := &Source{runs: map[string]*judged{}}
	s.judge(run, nil)
	on := func(v verdict) bool { return v.sha256 == t.sha256 && t.sha256 != "" && v.model == t.model }
	v := s.judged(run).on(t.Item.ID, on)
	switch {
	case v != nil:
	case t.sha256 == "":
		page.add(Note, "", "no test log: there is no submission to be judged")
		return page.Sections
	default:
		v = s.judged(run).on(t.Item.ID, func(v verdict) bool { return v.sample == t.sample && v.model == t.model })
		if v == nil {
			page.add(Note, "", "no test log: nobody has judged this submission; mini eval -p "+quote(run)+" does")
			return page.Sections
		}
		page.add(Alarm, "", "this verdict is on an earlier submission of the instance")
	}
	head := "verdict: " + string(v.class)
	if v.reason != "" {
		head += ", " + v.reason
	}
	kind := Note
	if v.class != verdicts.Resolved {
		kind = Alarm
	}
	page.add(kind, "", head)
	page.failed(run, t.Item.ID, v)
	page.log(run, v)
	return page.Sections
}

// failed names the first of the tests that failed.
func (p *Page) failed(run, id string, v *verdict) {
	tests, err := verdicts.ReadFailed(run, v.dir, id)
	if err != nil {
		p.add(Note, "", err.Error())
	}
	for _, list := range report.FailedLists(tests) {
		text := list.Head
		for _, name := range list.Tests {
			text += "\n  " + report.Printable(name)
		}
		if list.More > 0 {
			text += fmt.Sprintf("\n  ... and %d more; mini report %s -i %s --json has all", list.More, quote(run), quote(id))
		}
		p.add(Alarm, "", text)
	}
}

func (p *Page) log(run string, v *verdict) {
	if v.dir == "" || !filepath.IsLocal(filepath.FromSlash(v.dir)) {
		p.add(Note, "", "no test log: nothing was run for this verdict")
		return
	}
	path := filepath.Join(run, filepath.FromSlash(v.dir), "test_output.txt")
	text, left, err := tailOf(path)
	if err != nil {
		p.add(Note, "", "no test log: "+err.Error())
		return
	}
	p.add(Note, "", path)
	if left > 0 {
		p.add(Note, "", fmt.Sprintf("... the first %s bytes of it are not shown", amount(left)))
	}
	p.add(Output, "test log", text)
}

// tailOf is the end of a file that may be anybody's, and how much is before it.
func tailOf(path string) (text string, left int64, err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", 0, err
	}
	if !info.Mode().IsRegular() {
		return "", 0, fmt.Errorf("%s is not a plain file", path)
	}
	f, err := os.Open(path) //nolint:gosec // G304: reading the log of the named run is the purpose
	if err != nil {
		return "", 0, err
	}
	defer f.Close() //nolint:errcheck // read only
	left = max(0, info.Size()-maxLog)
	data, err := io.ReadAll(io.NewSectionReader(f, left, maxLog))
	if err != nil {
		return "", 0, err
	}
	if left > 0 {
		if _, rest, ok := strings.Cut(string(data), "\n"); ok {
			left += int64(len(data) - len(rest))
			return rest, left, nil
		}
	}
	return string(data), left, nil
}

// patchOf is the patch of a trajectory, as sections.
func patchOf(t *Trajectory) []*Section {
	page := &Page{}
	page.add(Note, "", t.PatchFrom)
	page.add(Diff, "", t.Patch)
	return page.Sections
}
