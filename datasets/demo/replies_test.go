package demo_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/datasets/demo"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/local"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/scripted"
)

const marker = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"

var block = regexp.MustCompile("(?s)```bash\n(.*?)\n```")

// play is what came of the replies for one instance.
type play struct {
	replies, formatErrors, failures, timeouts int
	cost                                      model.Cost
	submission                                string // what follows the marker; empty without one
}

// TestRepliesFixTheRepositoriesHere plays every script in a folder of this
// machine, as on one without a container engine. The tests of the repositories
// may fail to run there, for want of pytest; the patches must not depend on it.
func TestRepliesFixTheRepositoriesHere(t *testing.T) {
	for _, in := range instances(t) {
		t.Run(in.ID, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := demo.Unpack(t.Context(), in.ID, dir); err != nil {
				t.Fatal(err)
			}
			box, err := local.New(t.Context(), local.Config{Dir: dir, Timeout: 5 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := box.Close(t.Context()); err != nil {
					t.Error(err)
				}
			}()
			p := perform(t, box, in)
			if p.submission == "" || p.submission != git(t, dir, "diff", "--", source(t, in))+"\n" {
				t.Errorf("submission:\n%s", p.submission)
			}
		})
	}
}

// source is the one file of the program that the maintainers changed.
func source(t *testing.T, in datasets.Instance) string {
	t.Helper()
	var files []string
	for _, m := range changed.FindAllStringSubmatch(in.Patch, -1) {
		if strings.HasSuffix(m[1], ".py") {
			files = append(files, m[1])
		}
	}
	if len(files) != 1 {
		t.Fatalf("%s: the solution changes %q, want one file", in.ID, files)
	}
	return files[0]
}

// perform does what the agent does with the replies, without its limits.
func perform(t *testing.T, box env.Environment, in datasets.Instance) play {
	t.Helper()
	var p play
	for _, reply := range script(t, in.ID) {
		p.replies++
		p.cost += reply.Cost
		blocks := block.FindAllStringSubmatch(reply.Message.Content, -1)
		if len(blocks) != 1 {
			p.formatErrors++
			continue
		}
		res, err := box.Execute(t.Context(), env.Command{Script: blocks[0][1]})
		if err != nil {
			t.Fatalf("reply %d: %v", p.replies, err)
		}
		switch {
		case res.TimedOut:
			p.timeouts++
		case res.ExitCode != 0:
			p.failures++
			t.Logf("reply %d: exit code %d: %s", p.replies, res.ExitCode, res.Output)
		case len(res.Background) > 0:
			t.Errorf("reply %d leaves %v running", p.replies, res.Background)
		}
		p.submission = ""
		if patch, found := strings.CutPrefix(string(res.Output), marker+"\n"); found && res.ExitCode == 0 {
			p.submission = patch
		}
	}
	return p
}

// script asks the scripted model until it has no more to say.
func script(t *testing.T, id string) []model.Reply {
	t.Helper()
	s, err := scripted.Parse("replies.yaml", demo.Replies())
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.For(id)
	if err != nil {
		t.Fatal(err)
	}
	var replies []model.Reply
	for len(replies) < 20 {
		r, err := m.Query(t.Context(), nil)
		if err != nil {
			return replies
		}
		replies = append(replies, r)
	}
	t.Fatalf("%s has no end", id)
	return nil
}
