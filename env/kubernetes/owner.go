//go:build kubernetes

package kubernetes

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// beatInterval is the time between two heartbeats of an owner.
	beatInterval = 5 * time.Minute
	// maxSilence is the age of a heartbeat after which the owner's process is dead.
	maxSilence = 3 * beatInterval
)

// owner is the ConfigMap to which everything that this process creates belongs.
type owner struct {
	name      string
	uid       types.UID
	helper    helperBinary
	stopGuard func()
}

// references makes an object belong to the owner.
func (o *owner) references() []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: o.name, UID: o.uid}}
}

// ensureOwner returns the owner. The first call creates it, with what all pods need:
// the helper, the network policy and the watch.
func (c *Cluster) ensureOwner(ctx context.Context) (*owner, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != nil {
		return c.current, nil
	}
	if c.ctx.Err() != nil {
		return nil, fmt.Errorf("start pod: %w", c.ctx.Err())
	}
	helper, err := c.deliverHelper(ctx)
	if err != nil {
		return nil, err
	}
	host, _ := os.Hostname() // only information
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name:   "mini-" + strings.ToLower(rand.Text()[:8]),
		Labels: map[string]string{labelManaged: managedBy},
		Annotations: map[string]string{
			annotationBeat: now(), annotationProcess: fmt.Sprintf("process %d on %s", os.Getpid(), host),
		},
	}}
	m.Labels[labelOwner] = m.Name
	var created *corev1.ConfigMap
	err = c.retry(ctx, "create ConfigMap "+m.Name, func(ctx context.Context) error {
		var err error
		created, err = c.client.CoreV1().ConfigMaps(c.namespace).Create(ctx, m, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // the response to an earlier try was lost
			created, err = c.client.CoreV1().ConfigMaps(c.namespace).Get(ctx, m.Name, metav1.GetOptions{})
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	o := &owner{name: m.Name, uid: created.UID, helper: helper}
	if o.stopGuard, err = c.startGuard(o.name); err != nil {
		return nil, errors.Join(err, c.deleteOwner(ctx, o.name))
	}
	err = c.denyNetwork(ctx, o)
	if err == nil {
		err = c.watchPods(ctx, o)
	}
	if err != nil {
		err = errors.Join(err, c.deleteOwner(context.WithoutCancel(ctx), o.name))
		o.stopGuard()
		return nil, err
	}
	c.workers.Go(func() { c.beat(o.name) }) //nolint:contextcheck // until Close
	c.current = o
	return o, nil
}

func now() string { return time.Now().UTC().Format(time.RFC3339) }

// beat renews the heartbeat of the owner until the cluster is closed.
func (c *Cluster) beat(name string) {
	for sleep(c.ctx, beatInterval) {
		ctx, cancel := context.WithTimeout(c.ctx, requestTimeout)
		m, err := c.client.CoreV1().ConfigMaps(c.namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			m.Annotations[annotationBeat] = now()
			_, _ = c.client.CoreV1().ConfigMaps(c.namespace).Update(ctx, m, metav1.UpdateOptions{}) // the next beat tries again
		}
		cancel()
	}
}

// denyNetwork creates the policy for pods without a network: nothing may enter or leave
// them. Other policies that select the pods could still allow something.
func (c *Cluster) denyNetwork(ctx context.Context, o *owner) error {
	policy := &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{
			Name: o.name, Labels: map[string]string{labelManaged: managedBy, labelOwner: o.name}, OwnerReferences: o.references(),
		},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{labelOwner: o.name, labelNetwork: NetworkNone}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		},
	}
	return c.retry(ctx, "create NetworkPolicy "+o.name, func(ctx context.Context) error {
		_, err := c.client.NetworkingV1().NetworkPolicies(c.namespace).Create(ctx, policy, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}

func (c *Cluster) listOwners(ctx context.Context) ([]corev1.ConfigMap, error) {
	list, err := c.client.CoreV1().ConfigMaps(c.namespace).List(ctx, metav1.ListOptions{LabelSelector: labelOwner})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// deleteOwner deletes an owner. The garbage collector of the cluster deletes what
// belongs to it.
func (c *Cluster) deleteOwner(ctx context.Context, name string) error {
	return c.retry(ctx, "delete ConfigMap "+name, func(ctx context.Context) error {
		err := c.client.CoreV1().ConfigMaps(c.namespace).Delete(ctx, name, metav1.DeleteOptions{
			PropagationPolicy: new(metav1.DeletePropagationBackground),
		})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}
