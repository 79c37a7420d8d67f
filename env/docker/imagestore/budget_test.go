package imagestore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/env/docker/imagestore"
	"github.com/minibench/mini/env/docker/registrytest"
)

const mb = 1 << 20

func TestADozenImagesForManyWorkersArePulledOnceEach(t *testing.T) {
	r := registrytest.Start(t)
	refs := dozen(t, r, 12, 64<<10)
	s, _ := open(t, imagestore.Config{Prefetch: 3})
	defer s.Prefetch(t.Context(), needs(refs))()
	var workers errgroup.Group
	workers.SetLimit(6)
	for i := range 36 { // three instances an image
		workers.Go(func() error {
			img, release, err := s.Ensure(t.Context(), imagestore.Request{Ref: refs[i/3]})
			if err != nil {
				return err
			}
			defer release()
			if !strings.Contains(img.Digest, "@sha256:") || len(img.Layers) != 2 {
				return fmt.Errorf("%s came as %+v", refs[i/3], img)
			}
			return nil
		})
	}
	if err := workers.Wait(); err != nil {
		t.Fatal(err)
	}
	// The engine fetches a layer once for each pull that needs it.
	seen := map[string]int{}
	for _, asked := range r.Requests() {
		if strings.HasPrefix(asked, "GET ") && strings.Contains(asked, "/manifests/sha256:") || strings.HasPrefix(asked, "HEAD ") && strings.HasSuffix(asked, "/manifests/latest") {
			seen[asked]++
		}
	}
	for _, ref := range refs {
		name := strings.TrimSuffix(strings.TrimPrefix(ref, r.Host+"/"), ":latest")
		if n := seen["HEAD /v2/"+name+"/manifests/latest"]; n < 1 || n > 2 { // mini's question and the engine's own
			t.Errorf("%s was asked for %d times", name, n)
		}
	}
}

func TestPullsAheadStayAFewAhead(t *testing.T) {
	r := registrytest.Start(t)
	refs := dozen(t, r, 12, 16<<10)
	c := dockertest.Client(t)
	s, _ := open(t, imagestore.Config{Prefetch: 3})
	stop := s.Prefetch(t.Context(), needs(refs))
	defer stop()
	eventually(t, "the first three are here", func() bool { return here(t, c, refs[0]) && here(t, c, refs[1]) && here(t, c, refs[2]) })
	_, release := ensure(t, s, refs[0])
	defer release()
	eventually(t, "the fourth is here", func() bool { return here(t, c, refs[3]) })
	stop()
	for _, ref := range refs[4:] {
		if here(t, c, ref) {
			t.Errorf("%s was pulled too early", ref)
		}
	}
}

// The budget holds three images and what they share. Those go first that this
// run does not need again, then those it needs last; never what is in use, nor
// what mini did not pull, or somebody else has given a name.
func TestBudgetRemovesTheLeastNeeded(t *testing.T) {
	r := registrytest.Start(t)
	refs := dozen(t, r, 7, mb)
	c := dockertest.Client(t)
	pullByHand(t, refs[6])
	s, said := open(t, imagestore.Config{Budget: 4*mb + mb/2})
	_, keep := ensure(t, s, refs[0]) // in use all along
	defer keep()
	for _, ref := range refs[1:3] {
		_, release := ensure(t, s, ref)
		release()
	}
	stop := s.Prefetch(t.Context(), needs([]string{refs[3], refs[1], refs[4]}))
	_, release := ensure(t, s, refs[3])
	release()
	if !here(t, c, refs[0]) || !here(t, c, refs[1]) || here(t, c, refs[2]) {
		t.Errorf("used: %t, needed: %t, done: %t; want the last to be gone only", here(t, c, refs[0]), here(t, c, refs[1]), here(t, c, refs[2]))
	}
	stop()
	other := strings.TrimSuffix(refs[1], ":latest") + ":mine"
	registrytest.RemoveOnCleanup(t, c, other)
	if err := c.ImageTag(t.Context(), refs[1], other); err != nil {
		t.Fatal(err)
	}
	for _, ref := range refs[4:6] {
		_, release := ensure(t, s, ref)
		release()
	}
	for _, ref := range []string{refs[0], refs[1], other, refs[6]} {
		if !here(t, c, ref) {
			t.Errorf("%s is gone, which was in use, named by somebody, or not mini's", ref)
		}
	}
	if len(said.of(imagestore.Removed)) == 0 {
		t.Error("nobody was told")
	}
	for _, n := range said.all {
		t.Logf("%s %s: %s", n.Kind, n.Image, n.Text)
	}
}

func pullByHand(t *testing.T, ref string) {
	t.Helper()
	e := dockertest.EngineWith(t, docker.EngineConfig{})
	box, err := e.Start(t.Context(), docker.Config{Image: ref, Instance: t.Name()})
	if box != nil {
		defer box.Close(t.Context())
	}
	if !here(t, dockertest.Client(t), ref) {
		t.Fatal(err)
	}
}

func TestBudgetBelowOneImage(t *testing.T) {
	r := registrytest.Start(t)
	refs := dozen(t, r, 1, mb)
	s, _ := open(t, imagestore.Config{Budget: mb})
	err := s.CheckBudget(t.Context(), needs(refs))
	if status(err) != env.PullFailed || !strings.Contains(err.Error(), "more than the budget of 1.05 MB") {
		t.Errorf("err = %v", err)
	}
	if _, _, err := s.Ensure(t.Context(), needs(refs)[0]); status(err) != env.PullFailed {
		t.Errorf("err = %v", err)
	}
	// What no registry can tell is found out when it has arrived.
	unpacked := r.Push(t, "mini-test/zeros", registrytest.Image(t, "", registrytest.Files(t, map[string][]byte{"zeros": make([]byte, 3*mb)})))
	registrytest.RemoveOnCleanup(t, dockertest.Client(t), unpacked)
	_, _, err = s.Ensure(t.Context(), imagestore.Request{Ref: unpacked})
	if status(err) != env.PullFailed || !strings.Contains(err.Error(), "3.15 MB, more than the budget") {
		t.Errorf("err = %v", err)
	}
	if here(t, dockertest.Client(t), unpacked) {
		t.Error("it was left in the engine")
	}
}

// Where all is in use, who needs more waits until something is given back.
func TestBudgetIsWaitedFor(t *testing.T) {
	r := registrytest.Start(t)
	refs := dozen(t, r, 2, mb)
	s, said := open(t, imagestore.Config{Budget: 2*mb + mb/2})
	_, release := ensure(t, s, refs[0])
	var waiting sync.WaitGroup
	waiting.Go(func() {
		_, release, err := s.Ensure(t.Context(), imagestore.Request{Ref: refs[1], Requester: "second"})
		if err != nil {
			t.Error(err)
			return
		}
		release()
	})
	eventually(t, "the second waits", func() bool { return len(said.of(imagestore.WaitingForSpace)) == 1 })
	release()
	waiting.Wait()
	if here(t, dockertest.Client(t), refs[0]) {
		t.Error("the first was not removed")
	}
	if n := said.of(imagestore.Resumed); len(n) != 1 || n[0].Requester != "second" {
		t.Errorf("the end of the wait was told as %+v", n)
	}
}

// memory is the file in which it stands what was pulled.
func memory(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(dir + "/*.json")
	if err != nil || len(files) != 1 {
		return ""
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Two minis share what they remember: neither removes what the other needs.
func TestTwoStoresRespectEachOther(t *testing.T) {
	r := registrytest.Start(t)
	refs := dozen(t, r, 3, mb)
	c := dockertest.Client(t)
	dir := t.TempDir()
	first, _ := open(t, imagestore.Config{Dir: dir})
	_, release := ensure(t, first, refs[0])
	// The other one is this process too, so it must be told apart by hand.
	other := otherProcess(t, dir, imagestore.Config{Budget: 2*mb + mb/2, NoWait: true})
	if _, _, err := other.Ensure(t.Context(), imagestore.Request{Ref: refs[1]}); status(err) != env.PullFailed || !here(t, c, refs[0]) {
		t.Errorf("err = %v, and the image that is in use is here: %t", err, here(t, c, refs[0]))
	}
	pruned, err := other.Prune(t.Context(), nil, false)
	if err != nil || len(pruned.Images) != 1 || pruned.Images[0].Removed || pruned.Images[0].KeptReason == "" {
		t.Errorf("pruned = %+v, %v", pruned, err)
	}
	release()
	_, release, err = other.Ensure(t.Context(), imagestore.Request{Ref: refs[1]})
	if err != nil {
		t.Fatal(err)
	}
	release()
	if here(t, c, refs[0]) {
		t.Error("what nobody needs any more was kept")
	}
}

func TestPruneTakesOnlyWhatMiniPulled(t *testing.T) {
	r := registrytest.Start(t)
	refs := dozen(t, r, 4, 64<<10)
	c := dockertest.Client(t)
	pullByHand(t, refs[0])
	s, _ := open(t, imagestore.Config{})
	for _, ref := range refs {
		_, release := ensure(t, s, ref)
		release()
	}
	keep := needs(refs[1:2])
	dry, err := s.Prune(t.Context(), keep, true)
	if err != nil || len(dry.Images) != 3 || !here(t, c, refs[3]) {
		t.Fatalf("dry run: %+v, %v", dry, err)
	}
	done, err := s.Prune(t.Context(), keep, false)
	if err != nil || len(done.Images) != 3 {
		t.Fatalf("%+v, %v", done, err)
	}
	for i, want := range []bool{true, true, false, false} {
		if here(t, c, refs[i]) != want {
			t.Errorf("%s is here: %t, want %t", refs[i], !want, want)
		}
	}
}

// A disk that is nearly full lets starts wait, and fails none.
func TestFloorOfTheDisk(t *testing.T) {
	r := registrytest.Start(t)
	refs := dozen(t, r, 1, 16<<10)
	s, said := open(t, imagestore.Config{MinFree: 1 << 60})
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("over")
	var waiting sync.WaitGroup
	waiting.Go(func() {
		if _, _, err := s.Ensure(ctx, imagestore.Request{Ref: refs[0], Requester: "one"}); !errors.Is(err, over) {
			t.Errorf("err = %v", err)
		}
	})
	eventually(t, "it waits", func() bool { return len(said.of(imagestore.WaitingForSpace)) == 1 })
	cancel(over)
	waiting.Wait()
	if text := said.of(imagestore.WaitingForSpace)[0].Text; !strings.Contains(text, "free on the engine's disk") || !strings.Contains(text, "Ctrl-C") {
		t.Errorf("it says %q", text)
	}
	hasty, _ := open(t, imagestore.Config{MinFree: 1 << 60, NoWait: true})
	if _, _, err := hasty.Ensure(t.Context(), imagestore.Request{Ref: refs[0]}); status(err) != env.HostDiskFull {
		t.Errorf("err = %v", err)
	}
}

func TestPlan(t *testing.T) {
	r := registrytest.Start(t)
	refs := dozen(t, r, 3, 100<<10)
	foreign := r.Push(t, "mini-test/foreign", registrytest.Image(t, "s390x", registrytest.Layer(t, 1<<10)))
	s, _ := open(t, imagestore.Config{})
	_, release := ensure(t, s, refs[0])
	defer release()
	p, err := s.Plan(t.Context(), needs([]string{refs[0], refs[1], refs[1], refs[2], foreign, r.Host + "/mini-test/none", "127.0.0.1:1/x"}))
	if err != nil {
		t.Fatal(err)
	}
	if p.Present != 1 || p.Pull != 5 || p.Unknown != 2 || p.Images[1].Instances != 2 {
		t.Errorf("%+v", p)
	}
	// The shared layer is here: only their own are to be fetched.
	if n := p.PullBytes; n < 200<<10 || n > 230<<10 {
		t.Errorf("%d bytes are to be pulled, want two layers of 100 KiB", n)
	}
	for i, want := range []string{"", "", "", "linux/s390x", "no such image", "not checked"} {
		if got := p.Images[i].Problem; (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: problem %q, want %q", p.Images[i].Image, got, want)
		}
	}
	if p.FreeBytes == nil {
		t.Log("what is free is not known here")
	}
}
