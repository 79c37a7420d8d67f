//go:build kubernetes

package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper"
	"github.com/minibench/mini/env/helper/link"
)

// Pod is a running sandbox. It implements env.Environment and env.Files.
type Pod struct {
	cluster       *Cluster
	config        Config
	name          string
	state         *podState
	pod           *corev1.Pod // as it was when the container started
	running       time.Time   // when this process saw that it had started
	link          *link.Conn
	stopTransport context.CancelCauseFunc
	workers       sync.WaitGroup
	connections   atomic.Int32
	ready         chan struct{} // closed by setReady: connected for the first time, or ended before
	setReady      func()
	releaseSlot   func() // nil without a limit
	info          env.Info

	closeMu sync.Mutex
	closed  bool
	mu      sync.Mutex
	client  *helper.Client // nil before the handshake
	reason  error          // why the conversation has ended, if this side knows
	lossErr error          // the same as an *env.Error
}

var (
	_ env.Environment = (*Pod)(nil)
	_ env.Files       = (*Pod)(nil)
)

// Name is the name of the pod.
func (p *Pod) Name() string { return p.name }

// fullName is the namespace and the name of the pod, for messages.
func (p *Pod) fullName() string { return p.cluster.namespace + "/" + p.name }

// Info describes the sandbox.
func (p *Pod) Info() env.Info { return p.info }

// Reconnections is how often the connection to the pod was lost and made again.
func (p *Pod) Reconnections() int { return max(0, int(p.connections.Load())-1) }

// setClient stores the client, unless the conversation has ended.
func (p *Pod) setClient(client *helper.Client) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.client = client
	if p.reason != nil {
		client.CloseWithError(p.reason)
	}
}

// end ends the conversation with a reason.
func (p *Pod) end(reason error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reason != nil {
		return
	}
	p.reason = reason
	if p.client != nil {
		p.client.CloseWithError(reason)
	} else {
		_ = p.link.Close() // never fails; ends the handshake
	}
	p.setReady()
}

// endReason returns why the conversation has ended, if this side knows, and otherwise err.
func (p *Pod) endReason(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reason != nil {
		return p.reason
	}
	return err
}

// Execute runs one command; see env.Environment. If the sandbox is lost, the error is
// an *env.Error, and every later call returns the same error.
func (p *Pod) Execute(ctx context.Context, cmd env.Command) (env.Result, error) {
	cmd.Tools = helper.WrapTools(cmd.Tools, p.info, func(ctx context.Context, nested env.Environment, cmd env.Command) (env.Result, error) {
		res, err := nested.Execute(ctx, cmd)
		return p.checkResult(ctx, res, err)
	})
	res, err := p.client.Execute(ctx, cmd)
	return p.checkResult(ctx, res, err)
}

// checkResult maps a transport error to an *env.Error, and detects a full disk.
func (p *Pod) checkResult(ctx context.Context, res env.Result, err error) (env.Result, error) {
	switch {
	case err == nil && res.ExitCode != 0 && res.DiskFull:
		return res, &env.Error{
			Status: env.HostDiskFull, Op: "execute command in pod " + p.fullName(),
			Err: errors.New("a command failed, and the disk that holds the container's files is full"),
		}
	case err == nil:
		return res, nil
	case p.client.Err() == nil: // the sandbox is usable: ctx ended, or the sink failed
		return res, fmt.Errorf("execute command: %w", err)
	}
	return res, p.wrapLoss(ctx, err)
}

// Put copies files into the sandbox; see env.Files.
func (p *Pod) Put(ctx context.Context, dir string, tree io.Reader) error {
	return p.wrapLoss(ctx, p.client.Put(ctx, dir, tree))
}

// Get copies files out of the sandbox; see env.Files.
func (p *Pod) Get(ctx context.Context, path string, tree io.Writer) error {
	return p.wrapLoss(ctx, p.client.Get(ctx, path, tree))
}

func (p *Pod) wrapLoss(ctx context.Context, err error) error {
	return p.client.MapError(ctx, err, func(cause error) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.lossErr == nil {
			p.lossErr = p.lossError("execute command in pod "+p.fullName(), cause)
		}
		return p.lossErr
	})
}

// lossError maps the end of the conversation to the reason why the sandbox was lost.
func (p *Pod) lossError(op string, err error) *env.Error {
	if known, ok := errors.AsType[*env.Error](err); ok { // the pod has ended
		e := *known
		e.Op = op
		if e.Status == env.SandboxLimitExceeded && !p.cluster.exceededBefore(p.config.Instance) {
			e.Status = env.ContainerDied
		}
		return &e
	}
	switch {
	case errors.Is(err, helper.ErrFrame):
		return &env.Error{
			Status: env.ProtocolViolation, Op: op, Err: err,
			Hint: "a process in the sandbox may have interfered with the helper's connection; do not trust its results",
		}
	case errors.Is(err, helper.ErrMismatch):
		return &env.Error{Status: env.StartFailed, Op: op, Err: err, Hint: "run mini clean --kubernetes --all; mini delivers the helper again"}
	case errors.Is(err, errUnreachable):
		return &env.Error{Status: env.DaemonUnavailable, Op: op, Err: err, Hint: hintCluster}
	}
	return &env.Error{Status: env.ContainerDied, Op: op, Err: err}
}

// exceededBefore reports whether a sandbox of an instance exceeded its own limit
// before, and remembers that one has now.
func (c *Cluster) exceededBefore(instance string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.exceeded[instance]
	c.exceeded[instance] = true
	return before
}

// extendDeadline gives the report of a command more time while there is no connection.
// keepConnected limits that time.
func (p *Pod) extendDeadline() time.Duration {
	if p.link.Down() > 0 {
		return longestReconnect
	}
	return 0
}

// Close kills every process in the pod and deletes it.
func (p *Pod) Close(ctx context.Context) error {
	p.closeMu.Lock()
	defer p.closeMu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	return p.teardown(ctx)
}

// teardown frees all resources, also those of a pod whose start failed.
func (p *Pod) teardown(ctx context.Context) error {
	p.mu.Lock()
	client := p.client
	p.mu.Unlock()
	if client != nil {
		_ = client.Close() // never fails
	} else {
		_ = p.link.Close() // likewise
	}
	if p.stopTransport != nil {
		p.stopTransport(env.ErrClosed) // or it would connect again
	}
	err := p.delete(context.WithoutCancel(ctx))
	p.workers.Wait()
	p.cluster.pods.remove(p.name)
	if p.releaseSlot != nil {
		p.releaseSlot()
	}
	if err != nil {
		return fmt.Errorf("close sandbox: %w", err)
	}
	return nil
}

// deleteTimeout limits the deletion of a pod, which the end of the owner repeats.
const deleteTimeout = 20 * time.Second

// delete deletes the pod. It does not wait until the node has ended it.
func (p *Pod) delete(ctx context.Context) error {
	if p.name == "" {
		return nil // not even requested
	}
	ctx, cancel := context.WithTimeout(ctx, deleteTimeout)
	defer cancel()
	return p.cluster.retry(ctx, "delete pod "+p.name, func(ctx context.Context) error {
		err := p.cluster.client.CoreV1().Pods(p.cluster.namespace).Delete(ctx, p.name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))})
		if isGone(err) {
			return nil
		}
		return err
	})
}
