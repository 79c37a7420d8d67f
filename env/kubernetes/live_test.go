//go:build kubernetes && kubernetes_live

package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/envtest"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// liveImage is the image of the tests; the nodes must have it or be able to pull it.
func liveImage() string {
	if image := os.Getenv("MINI_TEST_IMAGE"); image != "" {
		return image
	}
	return "mini-base:latest"
}

// live connects to the cluster of KUBECONFIG.
func live(t testing.TB, change func(*Settings)) *Cluster {
	t.Helper()
	if os.Getenv("KUBECONFIG") == "" {
		t.Fatal("set KUBECONFIG to a cluster for tests")
	}
	s := Settings{CPURequest: resource.MustParse("10m")}
	if change != nil {
		change(&s)
	}
	c, err := Open(t.Context(), s)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c
}

func TestLiveConformance(t *testing.T) {
	c := live(t, nil)
	envtest.Run(t, func(t *testing.T) env.Environment {
		return startPod(t, c, Config{Image: liveImage()})
	}, envtest.WithoutCapability(envtest.ProcessLimit, "the node limits the processes of a pod"),
		envtest.WithMemory(func(t *testing.T) env.Environment {
			return startPod(t, c, Config{Image: liveImage(), MemoryBytes: 96 << 20, ShmBytes: 16 << 20})
		}))
}

// TestLiveMany: 50 pods start at once, and each runs a command.
func TestLiveMany(t *testing.T) {
	c := live(t, nil)
	const n = 50
	var group errgroup.Group
	begin := time.Now()
	pods := make([]*Pod, n)
	for i := range pods {
		group.Go(func() error {
			p, err := c.Start(t.Context(), Config{Image: liveImage(), MemoryBytes: 64 << 20, Network: networkBridge})
			if err != nil {
				return err
			}
			pods[i] = p
			res, err := p.Execute(t.Context(), env.Command{Script: "hostname"})
			if err == nil && strings.TrimSpace(string(res.Output)) != p.Name() {
				err = fmt.Errorf("pod %s says %q", p.Name(), res.Output)
			}
			return err
		})
	}
	assert.NoError(t, group.Wait())
	t.Logf("%d pods have a result after %s", n, time.Since(begin).Round(time.Millisecond))
	var closing errgroup.Group
	for _, p := range pods {
		if p != nil {
			closing.Go(func() error { return p.Close(context.WithoutCancel(t.Context())) })
		}
	}
	assert.NoError(t, closing.Wait())
}

// TestLiveNetworkProof: without enforcement the start is refused; with rules in the node
// that drop what pods send, the proof succeeds.
func TestLiveNetworkProof(t *testing.T) {
	n := testNode(t)
	c := live(t, func(s *Settings) { s.NetworkRequired = true })
	cfg := Config{Image: liveImage(), Network: NetworkNone}
	_, err := c.Start(t.Context(), cfg)
	if e, ok := errors.AsType[*env.Error](err); !ok || e.Status != env.SetupFailed || !strings.Contains(err.Error(), "does not enforce") {
		t.Errorf("without enforcement: %v", err)
	}
	n.dropPackets(t)
	p := startPod(t, c, cfg)
	if !strings.HasPrefix(p.Info().NetworkProof, env.NetworkProven) {
		t.Errorf("proof is %q", p.Info().NetworkProof)
	}
	t.Log(p.Info().NetworkProof)
}
