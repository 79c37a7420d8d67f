//go:build kubernetes

package kubernetes

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/env/kubernetes/kubetest"
)

// openNetwork gives later pods the network of Docker, and adds another pod there, which
// they reach.
func openNetwork(t *testing.T, c *Cluster, fake *kubetest.Cluster) {
	t.Helper()
	fake.Network = "bridge"
	other := startPod(t, c, Config{Image: dockertest.Image(t), Network: "bridge"})
	address := strings.TrimSpace(run(t, other, "hostname -i"))
	changeStatus(t, fake, other.Name(), func(s *corev1.PodStatus) { s.PodIP = address })
	eventually(t, "the address is known", func() bool { return c.otherPod(&Pod{}) == address })
}

func TestNetworkProven(t *testing.T) {
	t.Parallel()
	c, _ := newFake(t, nil)
	info := startPod(t, c, Config{Image: dockertest.Image(t)}).Info()
	if !strings.HasPrefix(info.NetworkProof, env.NetworkProven) || info.Network {
		t.Errorf("network %v, %q", info.Network, info.NetworkProof)
	}
	for _, address := range []string{"10.96.0.1:443", "169.254.169.254:80", "1.1.1.1:443"} {
		if !strings.Contains(info.NetworkProof, address) {
			t.Errorf("the proof does not mention %s: %s", address, info.NetworkProof)
		}
	}
	if info := startPod(t, c, Config{Image: dockertest.Image(t), Network: "bridge"}).Info(); info.NetworkProof != "" || !info.Network {
		t.Errorf("a pod with a network: network %v, %q", info.Network, info.NetworkProof)
	}
}

// TestNetworkUnproven: pods with an open network are refused. The third of them in a row
// stops the run; a proof in between starts the count again.
func TestNetworkUnproven(t *testing.T) {
	t.Parallel()
	c, fake := newFake(t, nil)
	c.probeLimit = time.Second
	openNetwork(t, c, fake)
	cfg := Config{Image: dockertest.Image(t)}
	refuse := func(status env.Status) {
		t.Helper()
		_, err := c.Start(t.Context(), cfg)
		checkStatus(t, err, status, "does not enforce the NetworkPolicy", "network_required")
	}
	refuse(env.SetupFailed)
	fake.Network = "none"
	startPod(t, c, cfg)
	fake.Network = "bridge"
	for range maxUnproven - 1 {
		refuse(env.SetupFailed)
	}
	refuse(env.SandboxRefused)
}

func TestNetworkNotRequired(t *testing.T) {
	t.Parallel()
	c, fake := newFake(t, func(s *Settings) { s.NetworkRequired = false })
	openNetwork(t, c, fake)
	p := startPod(t, c, Config{Image: dockertest.Image(t)})
	if proof := p.Info().NetworkProof; !strings.HasPrefix(proof, env.NetworkUnproven) {
		t.Errorf("proof %q", proof)
	}
	run(t, p, "true")
}
