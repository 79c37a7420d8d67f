//go:build kubernetes

package kubernetes

import (
	"context"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/minibench/mini/env"
)

// ServerVersion returns the version of the API server, such as "v1.34.4". It needs no
// rights in the namespace.
func (c *Cluster) ServerVersion(ctx context.Context) (string, error) {
	type answer struct {
		version string
		err     error
	}
	got := make(chan answer, 1)
	go func() { // the request has no context
		info, err := c.client.Discovery().ServerVersion()
		if err != nil {
			got <- answer{"", err}
			return
		}
		got <- answer{info.GitVersion, nil}
	}()
	select {
	case a := <-got:
		return a.version, c.apiError(ctx, env.DaemonUnavailable, "connect to the cluster "+c.config.Host, a.err)
	case <-ctx.Done():
		return "", c.apiError(ctx, env.DaemonUnavailable, "connect to the cluster "+c.config.Host, ctx.Err())
	}
}

// NamespaceInfo is what is known about the namespace.
type NamespaceInfo struct {
	// Unknown means that the user may not read the namespace, so that it is not known
	// whether it exists.
	Unknown bool
	Missing bool
	// PodSecurity is the level of Pod Security that the namespace enforces; "" if none.
	PodSecurity string
	Terminating bool
}

// podSecurityLabel is the label of a namespace with the level that it enforces.
const podSecurityLabel = "pod-security.kubernetes.io/enforce"

// DescribeNamespace reads the namespace.
func (c *Cluster) DescribeNamespace(ctx context.Context) (NamespaceInfo, error) {
	n, err := c.client.CoreV1().Namespaces().Get(ctx, c.namespace, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return NamespaceInfo{Missing: true}, nil
	case apierrors.IsForbidden(err):
		return NamespaceInfo{Unknown: true}, nil
	case err != nil:
		return NamespaceInfo{}, c.apiError(ctx, env.DaemonUnavailable, "read the namespace", err)
	}
	return NamespaceInfo{PodSecurity: n.Labels[podSecurityLabel], Terminating: n.DeletionTimestamp != nil}, nil
}

// MissingVerbs returns the verbs of a right that the user does not have.
func (c *Cluster) MissingVerbs(ctx context.Context, r Right) ([]string, error) {
	var missing []string
	for _, verb := range r.Verbs {
		attributes := &authorizationv1.ResourceAttributes{
			Namespace: c.namespace, Verb: verb, Group: r.Group, Resource: r.Resource, Subresource: r.Subresource,
		}
		if r.Resource == "namespaces" {
			attributes.Name = c.namespace
		}
		review, err := c.client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes},
		}, metav1.CreateOptions{})
		if err != nil {
			return nil, c.apiError(ctx, env.DaemonUnavailable, "review rights", err)
		}
		if !review.Status.Allowed {
			missing = append(missing, verb)
		}
	}
	return missing, nil
}

// Bound is a quota or a limit range of the namespace, compared with one pod.
type Bound struct {
	Name string // "quota compute"
	Text string // its values: "pods 3 of 10, requests.memory 4Gi of 8Gi"
	// Room is how many more pods it has room for, from 0; -1 means that it does not
	// limit their number.
	Room int
	// Excess says which value of one pod it will never admit; "" if none.
	Excess string
}

// ListBounds returns the quotas and limit ranges of the namespace, compared with a pod
// of cfg. The user may lack the right to read them; then the error has hintRights.
func (c *Cluster) ListBounds(ctx context.Context, cfg Config) ([]Bound, error) {
	quotas, err := c.client.CoreV1().ResourceQuotas(c.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, c.apiError(ctx, env.DaemonUnavailable, "list quotas", err)
	}
	ranges, err := c.client.CoreV1().LimitRanges(c.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, c.apiError(ctx, env.DaemonUnavailable, "list limit ranges", err)
	}
	needs := c.settings.resources(cfg)
	var bounds []Bound
	for _, q := range quotas.Items {
		bounds = append(bounds, quotaBound(q, needs))
	}
	for _, r := range ranges.Items {
		bounds = append(bounds, rangeBound(r, needs))
	}
	return bounds, nil
}

// quotaBound compares a quota with a pod. A quota with scopes may not apply to the pods.
func quotaBound(q corev1.ResourceQuota, needs corev1.ResourceRequirements) Bound {
	b := Bound{Name: "quota " + q.Name, Room: -1}
	hasScopes := len(q.Spec.Scopes) > 0 || q.Spec.ScopeSelector != nil
	var texts []string
	for _, name := range sortedNames(q.Status.Hard) {
		hard, used := q.Status.Hard[name], q.Status.Used[name]
		texts = append(texts, string(name)+" "+used.String()+" of "+hard.String())
		need, ok := quotaNeed(name, needs)
		if !ok || hasScopes {
			continue
		}
		if need.Cmp(hard) > 0 {
			b.Excess = string(name) + " " + need.String()
		}
		free := hard.AsApproximateFloat64() - used.AsApproximateFloat64()
		room := max(0, int(free/need.AsApproximateFloat64()+1e-9))
		if b.Room < 0 || room < b.Room {
			b.Room = room
		}
	}
	b.Text = strings.Join(texts, ", ")
	if hasScopes {
		b.Text += " (for some pods only)"
	}
	return b
}

// quotaNeed returns how much of a quota's resource a pod uses. It is not ok for a
// resource that pods do not use.
func quotaNeed(name corev1.ResourceName, needs corev1.ResourceRequirements) (resource.Quantity, bool) {
	list, key := needs.Requests, strings.TrimPrefix(string(name), "requests.")
	if limit, ok := strings.CutPrefix(string(name), "limits."); ok {
		list, key = needs.Limits, limit
	}
	if key == "pods" || key == "count/pods" {
		return resource.MustParse("1"), true
	}
	need, ok := list[corev1.ResourceName(key)]
	return need, ok && !need.IsZero()
}

// rangeBound compares a limit range with the container of a pod.
func rangeBound(r corev1.LimitRange, needs corev1.ResourceRequirements) Bound {
	b := Bound{Name: "limit range " + r.Name, Room: -1}
	var texts []string
	for _, item := range r.Spec.Limits {
		if item.Type != corev1.LimitTypeContainer && item.Type != corev1.LimitTypePod {
			continue
		}
		for _, name := range sortedNames(item.Max) {
			most := item.Max[name]
			texts = append(texts, string(name)+" at most "+most.String())
			if limit, ok := needs.Limits[name]; ok && limit.Cmp(most) > 0 {
				b.Excess = string(name) + " " + limit.String()
			}
		}
		for _, name := range sortedNames(item.Min) {
			least := item.Min[name]
			texts = append(texts, string(name)+" at least "+least.String())
			if request, ok := needs.Requests[name]; ok && request.Cmp(least) < 0 {
				b.Excess = string(name) + " " + request.String()
			}
		}
	}
	b.Text = strings.Join(texts, ", ")
	return b
}

func sortedNames(list corev1.ResourceList) []corev1.ResourceName {
	var names []corev1.ResourceName
	for name := range list {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
