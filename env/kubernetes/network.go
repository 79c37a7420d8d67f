//go:build kubernetes

package kubernetes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper/pod"
)

const (
	// probeLimit is how long a pod may take to lose its network: some network plugins
	// enforce policies late.
	probeLimit = 10 * time.Second
	// maxUnproven is the number of failed proofs in a row that stops the run.
	maxUnproven = 3
)

// proveNetwork checks that the pod cannot communicate, if it should not, before the
// first command runs.
func (p *Pod) proveNetwork(ctx context.Context) error {
	if p.config.Network != NetworkNone {
		return nil
	}
	c := p.cluster
	limit := c.probeLimit
	if !c.settings.NetworkRequired {
		limit = 0 // one round tells; nothing depends on it
	}
	reached, blocked, err := p.probe(ctx, limit)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return &env.Error{Status: env.SetupFailed, Op: "probe the network of pod " + p.fullName(), Err: err}
	}
	failures := c.countProof(len(reached) == 0)
	if len(reached) == 0 {
		p.info.NetworkProof = env.NetworkProven + "no answer from " + strings.Join(blocked, ", ")
		return nil
	}
	p.info.NetworkProof = env.NetworkUnproven + "answers from " + strings.Join(reached, ", ")
	if !c.settings.NetworkRequired {
		return nil
	}
	e := &env.Error{
		Status: env.SetupFailed, Op: "start pod " + p.fullName(),
		Err: fmt.Errorf("the pod should have no network, but reached %s: the cluster does not enforce the NetworkPolicy", strings.Join(reached, ", ")),
		Hint: "use a network plugin that enforces policies, or accept that attempts may use the network: " +
			"environment.kubernetes.network_required: false",
	}
	if failures >= maxUnproven {
		e.Status = env.SandboxRefused
	}
	return e
}

// countProof counts failed proofs in a row.
func (c *Cluster) countProof(proven bool) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unproven++
	if proven {
		c.unproven = 0
	}
	return c.unproven
}

// probe runs the helper's probe in the pod.
func (p *Pod) probe(ctx context.Context, limit time.Duration) (reached, blocked []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit+greetTimeout)
	defer cancel()
	command := []string{helperPath, pod.ProbeArg, limit.String()}
	if ip := p.cluster.otherPod(p); ip != "" {
		command = append(command, net.JoinHostPort(ip, "80"))
	}
	for ctx.Err() == nil { // the stream may break
		reached, blocked, err = p.cluster.probeOnce(ctx, p.name, command)
		if err == nil {
			return reached, blocked, nil
		}
		sleep(ctx, firstReconnect)
	}
	return nil, nil, err
}

// maxProbeOutput limits the output of the probe, in bytes.
const maxProbeOutput = 64 << 10

func (c *Cluster) probeOnce(ctx context.Context, name string, command []string) (reached, blocked []string, err error) {
	conn, err := c.openExec(ctx, name, command...)
	if err != nil {
		return nil, nil, err
	}
	defer conn.Close()                                      //nolint:errcheck // the end of the output tells
	defer context.AfterFunc(ctx, func() { conn.Close() })() //nolint:errcheck // ends the read
	var out bytes.Buffer
	_, _ = io.Copy(&out, io.LimitReader(conn, maxProbeOutput)) // "done" tells whether it is complete
	text, isComplete := strings.CutSuffix(out.String(), "done\n")
	if !isComplete {
		_ = conn.Close() // never fails
		if err := conn.failure(); err != nil {
			return nil, nil, fmt.Errorf("the probe did not finish: %w", err)
		}
		return nil, nil, errors.New("the probe did not finish: the stream was lost")
	}
	for line := range strings.Lines(text) {
		result, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		if result == "blocked" {
			blocked = append(blocked, name)
		} else {
			reached = append(reached, name)
		}
	}
	return reached, blocked, nil
}

// otherPod returns the address of another running pod of this process, or "".
func (c *Cluster) otherPod(p *Pod) string {
	c.pods.mu.Lock()
	defer c.pods.mu.Unlock()
	for name, state := range c.pods.states {
		if other, gone, _ := state.get(); name != p.name && other != nil && !gone && other.Status.PodIP != "" && endState(other) == nil {
			return other.Status.PodIP
		}
	}
	return ""
}
