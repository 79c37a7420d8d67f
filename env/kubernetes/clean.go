//go:build kubernetes

package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/minibench/mini/env"
)

// Leftover is an object that a mini process left behind.
type Leftover struct {
	Kind string `json:"kind"` // "owner" (with its pods) or "helper"
	Name string `json:"name"`
	// Process is the process that created it; Seen is its last heartbeat.
	Process string    `json:"owner,omitempty"`
	Seen    time.Time `json:"seen,omitzero"`
	// Pods is the number of pods that belong to it.
	Pods int `json:"pods,omitempty"`
}

func (l Leftover) String() string {
	if l.Kind == "helper" {
		return "ConfigMap " + l.Name + " (helper)"
	}
	pods := fmt.Sprintf("%d pods", l.Pods)
	if l.Pods == 1 {
		pods = "1 pod"
	}
	return fmt.Sprintf("%s with %s, of %s, last seen %s", l.Name, pods, l.Process, l.Seen.Local().Format(time.DateTime))
}

// CleanOptions select what is removed besides what killed processes left behind.
type CleanOptions struct {
	// IncludeHelpers removes the ConfigMaps with the helper, which mini creates again,
	// unless a process may need them for its next pod.
	IncludeHelpers bool
	IncludeAlive   bool // owners whose process may still run
}

// ListLeftovers lists what Clean would remove.
func (c *Cluster) ListLeftovers(ctx context.Context, opts CleanOptions) ([]Leftover, error) {
	list, _, err := c.classify(ctx, opts)
	return list, err
}

// ListKept lists what Clean would keep because its process may still run.
func (c *Cluster) ListKept(ctx context.Context, opts CleanOptions) ([]Leftover, error) {
	_, kept, err := c.classify(ctx, opts)
	return kept, err
}

// classify lists what Clean would remove, and what it would keep.
func (c *Cluster) classify(ctx context.Context, opts CleanOptions) (list, kept []Leftover, err error) {
	owners, err := c.listOwners(ctx)
	if err != nil {
		return nil, nil, c.apiError(ctx, env.StartFailed, "list ConfigMaps", err)
	}
	pods, err := c.client.CoreV1().Pods(c.namespace).List(ctx, metav1.ListOptions{LabelSelector: labelOwner})
	if err != nil {
		return nil, nil, c.apiError(ctx, env.StartFailed, "list pods", err)
	}
	count := map[string]int{}
	for _, p := range pods.Items {
		count[p.Labels[labelOwner]]++
	}
	for _, m := range owners {
		seen, err := time.Parse(time.RFC3339, m.Annotations[annotationBeat])
		if err != nil {
			seen = m.CreationTimestamp.Time
		}
		l := Leftover{"owner", m.Name, m.Annotations[annotationProcess], seen, count[m.Name]}
		if time.Since(seen) > maxSilence || opts.IncludeAlive {
			list = append(list, l)
		} else {
			kept = append(kept, l)
		}
	}
	if !opts.IncludeHelpers {
		return list, kept, nil
	}
	helpers, err := c.client.CoreV1().ConfigMaps(c.namespace).List(ctx, metav1.ListOptions{LabelSelector: labelHelper})
	if err != nil {
		return list, kept, c.apiError(ctx, env.StartFailed, "list ConfigMaps", err)
	}
	isUsed := len(kept) > 0
	for _, m := range helpers.Items {
		l := Leftover{Kind: "helper", Name: m.Name}
		if isUsed {
			kept = append(kept, l)
		} else {
			list = append(list, l)
		}
	}
	return list, kept, nil
}

// Clean removes what the options select, and returns it.
func (c *Cluster) Clean(ctx context.Context, opts CleanOptions) ([]Leftover, error) {
	list, err := c.ListLeftovers(ctx, opts)
	if err != nil {
		return nil, err
	}
	var removed []Leftover
	var errs []error
	for _, l := range list {
		if err := c.deleteOwner(ctx, l.Name); err != nil { // helpers are ConfigMaps too
			errs = append(errs, err)
			continue
		}
		removed = append(removed, l)
	}
	return removed, errors.Join(errs...)
}

// Sweep removes what killed processes left behind.
func (c *Cluster) Sweep(ctx context.Context) ([]Leftover, error) { return c.Clean(ctx, CleanOptions{}) }

// isGone reports whether an error means that the object does not exist.
func isGone(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsGone(err) }

// isQuota reports whether a pod was refused because the quota is used up.
func isQuota(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota")
}
