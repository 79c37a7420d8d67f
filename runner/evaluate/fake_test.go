package evaluate_test

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/datasets/demo"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/evaluate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeBoxes are sandboxes in memory. The zero value starts boxes in which every
// patch applies and every test of the row passes.
type fakeBoxes struct {
	image, arch string
	// start fails the n-th start, counted from 1.
	start func(ctx context.Context, n int) error
	// play runs a command of the n-th box, and says whether it knew it. Output
	// goes where say puts it.
	play func(ctx context.Context, b *fakeBox, n int, c env.Command) (res env.Result, known bool, err error)

	mu     sync.Mutex
	starts int
	open   int
	boxes  []*fakeBox
}

type fakeBox struct {
	of    *fakeBoxes
	n     int
	in    datasets.Instance
	mu    sync.Mutex
	ran   []string          // what was run, as one text each
	files map[string]string // what was put in
}

func (f *fakeBoxes) Start(ctx context.Context, in datasets.Instance) (env.Environment, error) {
	f.mu.Lock()
	f.starts++
	n := f.starts
	f.mu.Unlock()
	if f.start != nil {
		if err := f.start(ctx, n); err != nil {
			return nil, err
		}
	}
	b := &fakeBox{of: f, n: n, in: in, files: map[string]string{}}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open++
	f.boxes = append(f.boxes, b)
	return b, nil
}

// identified are fakeBoxes that know their image beforehand.
type identified struct{ *fakeBoxes }

func (f identified) Identify(context.Context, datasets.Instance) (evaluate.Image, error) {
	return evaluate.Image{ID: f.image, Arch: f.arch}, nil
}

func (b *fakeBox) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	what := strings.Join(append(slices.Clone(c.Interpreter), c.Script), " ")
	b.mu.Lock()
	b.ran = append(b.ran, what)
	b.mu.Unlock()
	if b.of.play != nil {
		if res, known, err := b.of.play(ctx, b, b.n, c); known {
			return res, err
		}
	}
	if what == "/bin/bash /eval.sh" {
		return say(c, logOf(b.in, "PASSED", 0), env.Result{})
	}
	return say(c, "done\n", env.Result{})
}

// say gives an output to whom it is for.
func say(c env.Command, text string, res env.Result) (env.Result, error) {
	res.Bytes = int64(len(text))
	if c.Sink == nil {
		res.Output = []byte(text)
		return res, nil
	}
	if _, err := io.WriteString(c.Sink, text); err != nil {
		return res, fmt.Errorf("%w: %w", env.ErrSink, err)
	}
	return res, nil
}

func (b *fakeBox) Info() env.Info {
	return env.Info{Machine: "x86_64", Release: "6.1", Dir: "/testbed", ImageID: b.of.image, ImageArch: b.of.arch, Image: b.in.ImageName()}
}

func (b *fakeBox) Close(context.Context) error {
	b.of.mu.Lock()
	defer b.of.mu.Unlock()
	b.of.open--
	return nil
}

func (b *fakeBox) Put(_ context.Context, dir string, tree io.Reader) error {
	r := tar.NewReader(tree)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		b.files[path.Join(dir, h.Name)] = string(data)
	}
}

func (b *fakeBox) Get(context.Context, string, io.Writer) error { return errors.ErrUnsupported }

// logOf is the log of a script in which all tests of the row end alike.
func logOf(in datasets.Instance, status string, code int) string {
	var b strings.Builder
	b.WriteString("+ cd /testbed\n+ : '>>>>> Start Test Output'\n")
	for _, test := range slices.Concat(in.FailToPass, in.PassToPass) {
		fmt.Fprintf(&b, "%s %s\n", status, test)
	}
	fmt.Fprintf(&b, "+ SWEBENCH_TEST_EXIT_CODE=%d\n+ : '>>>>> End Test Output'\n+ echo '>>>>> Test Exit Code: %d'\n>>>>> Test Exit Code: %d\n", code, code, code)
	return b.String()
}

// rows are those of the demo.
func rows(t testing.TB) []datasets.Instance {
	t.Helper()
	set, err := datasets.Load(t.Context(), []datasets.Source{datasets.Embedded("demo", demo.Rows())}, datasets.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	return set.Instances
}

// row is that of the ledger.
func row(t testing.TB) datasets.Instance {
	t.Helper()
	for _, in := range rows(t) {
		if in.ID == "minidemo__ledger-17" {
			return in
		}
	}
	t.Fatal("the demo has no ledger")
	return datasets.Instance{}
}

// bench is an evaluation in a folder of its own.
type bench struct {
	t      testing.TB
	dir    string
	config evaluate.Config
	events []runner.Event
}

func newBench(t testing.TB, boxes evaluate.Sandboxes) *bench {
	t.Helper()
	return &bench{t: t, dir: t.TempDir(), config: evaluate.Config{
		Sandboxes: boxes, RunID: "r1", Workers: 1, MiniVersion: "1.0", Network: "none", Profile: "test", Key: []byte("the user's"),
	}}
}

// run evaluates tasks, as one session in the folder.
func (b *bench) run(ctx context.Context, tasks ...evaluate.Task) evaluate.Summary {
	b.t.Helper()
	folder, err := runner.Open(b.dir)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() {
		if err := folder.Close(); err != nil {
			b.t.Error(err)
		}
	}()
	c := b.config
	b.events = nil
	c.Folder, c.Log = folder, runner.NewLog(folder, func(e runner.Event) { b.events = append(b.events, e) })
	s, err := evaluate.Run(ctx, c, tasks)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}
