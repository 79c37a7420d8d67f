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
	"time"

	"go.uber.org/goleak"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/datasets/demo"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/evaluate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeSandboxes starts sandboxes in memory. In those of the zero value, every patch
// applies and every test of the row passes.
type fakeSandboxes struct {
	image, arch string
	// start returns the error of start number n, from 1; may be nil.
	start func(ctx context.Context, n int) error
	// execute runs a command in sandbox number n with respond. It returns known =
	// false for the default behaviour.
	execute func(ctx context.Context, b *fakeSandbox, n int, c env.Command) (res env.Result, known bool, err error)

	mu        sync.Mutex
	starts    int
	openCount int
	started   []*fakeSandbox
}

type fakeSandbox struct {
	factory  *fakeSandboxes
	n        int
	in       datasets.Instance
	mu       sync.Mutex
	commands []string          // executed commands, joined with spaces
	files    map[string]string // files that Put has written
}

func (f *fakeSandboxes) Start(ctx context.Context, in datasets.Instance) (env.Environment, error) {
	f.mu.Lock()
	f.starts++
	n := f.starts
	f.mu.Unlock()
	if f.start != nil {
		if err := f.start(ctx, n); err != nil {
			return nil, err
		}
	}
	b := &fakeSandbox{factory: f, n: n, in: in, files: map[string]string{}}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.openCount++
	f.started = append(f.started, b)
	return b, nil
}

// identifiedSandboxes are fakeSandboxes that implement evaluate.ImageIdentifier.
type identifiedSandboxes struct{ *fakeSandboxes }

func (f identifiedSandboxes) Identify(context.Context, datasets.Instance) (evaluate.Image, error) {
	return evaluate.Image{ID: f.image, Arch: f.arch}, nil
}

func (b *fakeSandbox) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	what := strings.Join(append(slices.Clone(c.Interpreter), c.Script), " ")
	b.mu.Lock()
	b.commands = append(b.commands, what)
	b.mu.Unlock()
	if b.factory.execute != nil {
		if res, known, err := b.factory.execute(ctx, b, b.n, c); known {
			return res, err
		}
	}
	if what == "/bin/bash /eval.sh" {
		return respond(c, logOf(b.in, "PASSED", 0), env.Result{})
	}
	return respond(c, "done\n", env.Result{})
}

// respond writes an output to the command's Sink, or to the result if there is none.
func respond(c env.Command, text string, res env.Result) (env.Result, error) {
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

func (b *fakeSandbox) Info() env.Info {
	return env.Info{Machine: "x86_64", Release: "6.1", Dir: "/testbed", ImageID: b.factory.image, ImageArch: b.factory.arch, Image: b.in.ImageName()}
}

func (b *fakeSandbox) Close(context.Context) error {
	b.factory.mu.Lock()
	defer b.factory.mu.Unlock()
	b.factory.openCount--
	return nil
}

func (b *fakeSandbox) Put(_ context.Context, dir string, tree io.Reader) error {
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

func (b *fakeSandbox) Get(context.Context, string, io.Writer) error { return errors.ErrUnsupported }

// logOf returns the log of a script in which all tests of the row have the same status.
func logOf(in datasets.Instance, status string, code int) string {
	var b strings.Builder
	b.WriteString("+ cd /testbed\n+ : '>>>>> Start Test Output'\n")
	for _, test := range slices.Concat(in.FailToPass, in.PassToPass) {
		fmt.Fprintf(&b, "%s %s\n", status, test)
	}
	fmt.Fprintf(&b, "+ SWEBENCH_TEST_EXIT_CODE=%d\n+ : '>>>>> End Test Output'\n+ echo '>>>>> Test Exit Code: %d'\n>>>>> Test Exit Code: %d\n", code, code, code)
	return b.String()
}

// rows returns the rows of the demo.
func rows(t testing.TB) []datasets.Instance {
	t.Helper()
	set, err := datasets.Load(t.Context(), []datasets.Source{datasets.Embedded("demo", demo.Rows())}, datasets.AllRows)
	if err != nil {
		t.Fatal(err)
	}
	return set.Instances
}

// row returns the demo's row for the ledger.
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

// evaluation runs evaluations in its own folder.
type evaluation struct {
	t      testing.TB
	dir    string
	config evaluate.Config
	events []runner.Event
}

func newEvaluation(t testing.TB, sandboxes evaluate.Sandboxes) *evaluation {
	t.Helper()
	return &evaluation{t: t, dir: t.TempDir(), config: evaluate.Config{
		Sandboxes: sandboxes, RunID: "r1", Workers: 1, MiniVersion: "1.0", Network: "none", Profile: "test", SigningKey: []byte("the user's"),
		Timeout: 30 * time.Minute, Retries: runner.Retries{MaxTries: 3},
	}}
}

// run evaluates tasks in one session on the folder.
func (b *evaluation) run(ctx context.Context, tasks ...evaluate.Task) evaluate.Summary {
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
