//go:build kubernetes

package kubetest_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"

	"github.com/minibench/mini/env/kubernetes/kubetest"
)

// transports are the ways of client-go to run a command.
var transports = map[string]func(t *testing.T, c *kubetest.Cluster, name string, o *v1.PodExecOptions) remotecommand.Executor{
	"websocket": func(t *testing.T, c *kubetest.Cluster, name string, o *v1.PodExecOptions) remotecommand.Executor {
		e, err := remotecommand.NewWebSocketExecutor(c.REST, http.MethodGet, execURL(t, c, name, o))
		if err != nil {
			t.Fatal(err)
		}
		return e
	},
	"spdy": func(t *testing.T, c *kubetest.Cluster, name string, o *v1.PodExecOptions) remotecommand.Executor {
		client, err := kubernetes.NewForConfig(c.REST)
		if err != nil {
			t.Fatal(err)
		}
		e, err := remotecommand.NewSPDYExecutor(c.REST, http.MethodPost, client.CoreV1().RESTClient().Post().
			Resource("pods").Namespace(c.Namespace).Name(name).SubResource("exec").VersionedParams(o, scheme.ParameterCodec).URL())
		if err != nil {
			t.Fatal(err)
		}
		return e
	},
}

func execURL(t *testing.T, c *kubetest.Cluster, name string, o *v1.PodExecOptions) string {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.REST)
	if err != nil {
		t.Fatal(err)
	}
	return client.CoreV1().RESTClient().Get().Resource("pods").Namespace(c.Namespace).Name(name).
		SubResource("exec").VersionedParams(o, scheme.ParameterCodec).URL().String()
}

// eachTransport runs a test with both.
func eachTransport(t *testing.T, c *kubetest.Cluster, test func(t *testing.T, run func(ctx context.Context, pod string, stdin io.Reader, stdout, stderr io.Writer, command ...string) error)) {
	for name, transport := range transports {
		t.Run(name, func(t *testing.T) {
			test(t, func(ctx context.Context, pod string, stdin io.Reader, stdout, stderr io.Writer, command ...string) error {
				o := &v1.PodExecOptions{Command: command, Stdin: stdin != nil, Stdout: stdout != nil, Stderr: stderr != nil}
				return transport(t, c, pod, o).StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: stdin, Stdout: stdout, Stderr: stderr})
			})
		})
	}
}

func TestExec(t *testing.T) {
	c := kubetest.New(t)
	startPod(t, c, newPod(t, "p", sleep))
	content := make([]byte, 5<<20)
	_, _ = rand.Read(content)
	eachTransport(t, c, func(t *testing.T, run func(context.Context, string, io.Reader, io.Writer, io.Writer, ...string) error) {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		var stdout, stderr bytes.Buffer
		if err := run(ctx, "p", bytes.NewReader(content), &stdout, &stderr, "cat"); err != nil {
			t.Fatalf("cat: %v: %s", err, &stderr)
		}
		if !bytes.Equal(stdout.Bytes(), content) {
			t.Errorf("cat: %d bytes came back of %d, or others", stdout.Len(), len(content))
		}

		stdout.Reset()
		err := run(ctx, "p", nil, &stdout, &stderr, "bash", "-c", "echo out; echo error >&2; exit 7")
		var exit exec.CodeExitError
		if !errors.As(err, &exit) || exit.Code != 7 || stdout.String() != "out\n" || stderr.String() != "error\n" {
			t.Errorf("error %v, stdout %q, stderr %q", err, &stdout, &stderr)
		}

		// The command ends while stdin is open and full.
		stdin, writer := io.Pipe()
		go func() {
			for err := error(nil); err == nil; {
				_, err = writer.Write(content)
			}
		}()
		stdout.Reset()
		if err := run(ctx, "p", stdin, &stdout, nil, "head", "-c", "1000000"); err != nil || stdout.Len() != 1_000_000 {
			t.Errorf("head: error %v, %d bytes", err, stdout.Len())
		}
		_ = stdin.Close() // never fails
	})
	counts := c.RequestCount()
	if counts["get pods/exec"] != 3 || counts["create pods/exec"] != 3 {
		t.Errorf("requests: %v", counts)
	}
}

func TestExecErrors(t *testing.T) {
	c := kubetest.New(t)
	startPod(t, c, newPod(t, "p", sleep))
	startPod(t, c, newPod(t, "ended", sleep))
	c.KillContainer("ended")
	c.SetPending(func(*v1.Pod) (string, string) { return v1.PodReasonUnschedulable, "no nodes" })
	create(t, c, newPod(t, "pending", sleep))
	eachTransport(t, c, func(t *testing.T, run func(context.Context, string, io.Reader, io.Writer, io.Writer, ...string) error) {
		for pod, want := range map[string]string{
			"absent":  `pods "absent" not found`,
			"ended":   `container not found ("main")`,
			"pending": "pod pending does not have a host assigned",
		} {
			if err := run(t.Context(), pod, nil, io.Discard, nil, "true"); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v, want %q", pod, err, want)
			}
		}
		c.SetDown(true)
		defer c.SetDown(false)
		if err := run(t.Context(), "p", nil, io.Discard, nil, "true"); err == nil || !strings.Contains(err.Error(), "the API server is down") {
			t.Errorf("down: error %v", err)
		}
	})
}

// TestCut cuts streams and kills containers while commands run.
func TestCut(t *testing.T) {
	c := kubetest.New(t)
	tests := map[string]func(pod string){
		"cut":    func(string) { c.CutStreams() },
		"kill":   c.KillContainer,
		"delete": func(pod string) { c.Disrupt(pod, "DeletionByTaintManager") },
	}
	for name, cut := range tests {
		t.Run(name, func(t *testing.T) {
			eachTransport(t, c, func(t *testing.T, run func(context.Context, string, io.Reader, io.Writer, io.Writer, ...string) error) {
				pod := strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-"))
				startPod(t, c, newPod(t, pod, sleep))
				ctx, cancel := context.WithTimeout(t.Context(), timeout)
				defer cancel()
				stdin, writer := io.Pipe()
				defer writer.Close()
				reader, stdout := io.Pipe()
				ended := make(chan error, 1)
				go func() { ended <- run(ctx, pod, stdin, stdout, nil, "cat") }()
				echo := make([]byte, 5)
				if _, err := writer.Write([]byte("hello")); err != nil {
					t.Fatal(err)
				}
				if _, err := io.ReadFull(reader, echo); err != nil || string(echo) != "hello" {
					t.Fatalf("echo %q: %v", echo, err)
				}
				cut(pod)
				select {
				case err := <-ended:
					t.Logf("error %v", err) // it may be nil: a lost stream looks like an end
				case <-time.After(timeout):
					t.Fatal("the stream goes on")
				}
				if ctx.Err() != nil {
					t.Error(ctx.Err())
				}
			})
		})
	}
}
