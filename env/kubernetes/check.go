//go:build kubernetes

package kubernetes

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/minibench/mini/env"
)

// Check reports whether the cluster refuses pods of a configuration: because of Pod
// Security, another admission controller, a quota that is smaller than one pod, or
// because the NetworkPolicy that it names does not exist. It creates nothing. The errors
// are those of Start.
func (c *Cluster) Check(ctx context.Context, cfg Config) error {
	setDefault(&cfg.Network, NetworkNone)
	if err := cfg.validate(c.settings); err != nil {
		return err
	}
	pod, err := c.newPod(cfg, c.settings.mirrored(cfg.Image), &owner{name: "mini-check", uid: "00000000-0000-0000-0000-000000000000"})
	if err != nil {
		return err
	}
	err = c.retry(ctx, "check pods", func(ctx context.Context) error {
		_, err := c.client.CoreV1().Pods(c.namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		switch {
		case isQuota(err) && neverFits(err):
			return configError("memory", "one pod exceeds the quota of the namespace: "+quotaText(err))
		case isQuota(err), apierrors.IsAlreadyExists(err):
			return nil
		case apierrors.IsNotFound(err):
			return configError("kubernetes.namespace", err.Error()+"; create it with kubectl create namespace "+c.namespace)
		case isNoAccount(err):
			return nil // the namespace is new
		}
		return refused(err)
	})
	if err != nil || cfg.Network == NetworkNone || cfg.Network == networkBridge {
		return err
	}
	_, err = c.client.NetworkingV1().NetworkPolicies(c.namespace).Get(ctx, cfg.Network, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return configError("network", "the namespace has no NetworkPolicy "+cfg.Network+`; create it, or write "none" or "bridge"`)
	}
	return c.apiError(ctx, env.StartFailed, "get NetworkPolicy "+cfg.Network, err)
}
