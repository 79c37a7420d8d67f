//go:build kubernetes

package kubetest

import (
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	clienttesting "k8s.io/client-go/testing"
)

// Resources that the cluster does more for than store objects.
var (
	podResource   = v1.SchemeGroupVersion.WithResource("pods")
	quotaResource = v1.SchemeGroupVersion.WithResource("resourcequotas")
	configMaps    = v1.SchemeGroupVersion.WithResource("configmaps")

	// kinds are the kinds whose objects can be deleted as a collection or with their
	// owner.
	kinds = map[schema.GroupVersionResource]schema.GroupVersionKind{
		podResource: v1.SchemeGroupVersion.WithKind("Pod"),
		configMaps:  v1.SchemeGroupVersion.WithKind("ConfigMap"),
		networkingv1.SchemeGroupVersion.WithResource("networkpolicies"): networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"),
	}
)

// react handles a request before the reactors of the fake clientset. The clientset
// holds its lock meanwhile.
func (c *Cluster) react(action clienttesting.Action) (bool, runtime.Object, error) {
	if !c.admit(action.GetVerb(), action.GetResource().Resource, action.GetSubresource()) {
		return true, nil, errDown
	}
	if action.GetSubresource() != "" {
		return false, nil, nil
	}
	switch a := action.(type) {
	case clienttesting.CreateActionImpl:
		obj, err := c.create(a)
		if err != nil {
			return true, nil, err // not obj: a reactor must not return a typed nil
		}
		return true, obj, nil
	case clienttesting.DeleteActionImpl:
		return true, nil, c.delete(a.GetResource(), a.GetNamespace(), a.GetName())
	case clienttesting.DeleteCollectionActionImpl:
		if _, ok := kinds[a.GetResource()]; ok {
			r := a.GetListRestrictions()
			return true, nil, c.deleteAll(a.GetResource(), a.GetNamespace(), func(obj runtime.Object) bool {
				return matches(obj, r.Labels, r.Fields)
			})
		}
	}
	return false, nil, nil
}

// errDown is the error of an API server behind a load balancer that cannot reach it.
var errDown = apierrors.NewServiceUnavailable("the API server is down")

func (c *Cluster) create(a clienttesting.CreateActionImpl) (runtime.Object, error) {
	obj := a.GetObject()
	if review, ok := obj.(*authorizationv1.SelfSubjectAccessReview); ok {
		review.Status.Allowed = true
		return review, nil
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	m.SetNamespace(a.GetNamespace())
	m.SetUID(uuid.NewUUID())
	m.SetCreationTimestamp(now())
	pod, isPod := obj.(*v1.Pod)
	if isPod {
		if err := c.checkQuotas(pod); err != nil {
			return nil, err
		}
		pod.Status = v1.PodStatus{Phase: v1.PodPending}
	}
	gvr := a.GetResource()
	if slices.Contains(a.CreateOptions.DryRun, metav1.DryRunAll) {
		if _, err := c.fake.Tracker().Get(gvr, a.GetNamespace(), m.GetName()); err == nil {
			return nil, apierrors.NewAlreadyExists(gvr.GroupResource(), m.GetName())
		}
		return obj, nil
	}
	if err := c.fake.Tracker().Create(gvr, obj, a.GetNamespace()); err != nil {
		return nil, err
	}
	if isPod {
		c.startPod(pod.DeepCopy())
	}
	return obj, nil
}

// checkQuotas returns the API server's error if one more pod exceeds a quota.
func (c *Cluster) checkQuotas(pod *v1.Pod) error {
	used := int64(0)
	err := c.each(podResource, kinds[podResource], pod.Namespace, func(obj runtime.Object) {
		if p, ok := obj.(*v1.Pod); ok && !terminal(p) {
			used++
		}
	})
	if err != nil {
		return err
	}
	var exceeded error
	err = c.each(quotaResource, v1.SchemeGroupVersion.WithKind("ResourceQuota"), pod.Namespace, func(obj runtime.Object) {
		quota, ok := obj.(*v1.ResourceQuota)
		if !ok {
			return
		}
		if limit, ok := quota.Spec.Hard[v1.ResourcePods]; ok && used+1 > limit.Value() {
			exceeded = apierrors.NewForbidden(podResource.GroupResource(), pod.Name, fmt.Errorf(
				"exceeded quota: %s, requested: pods=1, used: pods=%d, limited: pods=%d", quota.Name, used, limit.Value()))
		}
	})
	if err != nil {
		return err
	}
	return exceeded
}

// delete deletes an object and, as the garbage collector does, what it owns.
func (c *Cluster) delete(gvr schema.GroupVersionResource, namespace, name string) error {
	obj, err := c.fake.Tracker().Get(gvr, namespace, name)
	if err != nil {
		return err
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	if err := c.fake.Tracker().Delete(gvr, namespace, name); err != nil {
		return err
	}
	if gvr == podResource {
		c.stopPod(types.NamespacedName{Namespace: namespace, Name: name})
	}
	if m.GetUID() == "" {
		return nil
	}
	for dependent := range kinds {
		if err := c.deleteAll(dependent, namespace, func(obj runtime.Object) bool { return isOwner(m.GetUID(), obj) }); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) deleteAll(gvr schema.GroupVersionResource, namespace string, match func(runtime.Object) bool) error {
	var names []string
	err := c.each(gvr, kinds[gvr], namespace, func(obj runtime.Object) {
		if m, err := meta.Accessor(obj); err == nil && match(obj) {
			names = append(names, m.GetName())
		}
	})
	if err != nil {
		return err
	}
	for _, name := range names {
		// One of the objects may have owned another.
		if err := c.delete(gvr, namespace, name); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// each calls f for each object of a kind.
func (c *Cluster) each(gvr schema.GroupVersionResource, gvk schema.GroupVersionKind, namespace string, f func(runtime.Object)) error {
	list, err := c.fake.Tracker().List(gvr, gvk, namespace)
	if err != nil {
		return err
	}
	return meta.EachListItem(list, func(obj runtime.Object) error {
		f(obj)
		return nil
	})
}

func isOwner(uid types.UID, obj runtime.Object) bool {
	m, err := meta.Accessor(obj)
	return err == nil && slices.ContainsFunc(m.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == uid })
}

// matches reports whether an object matches selectors, which may be nil.
func matches(obj runtime.Object, label labels.Selector, field fields.Selector) bool {
	m, err := meta.Accessor(obj)
	if err != nil {
		return true // a bookmark or an error
	}
	values := fields.Set{"metadata.name": m.GetName(), "metadata.namespace": m.GetNamespace()}
	if pod, ok := obj.(*v1.Pod); ok {
		values["status.phase"] = string(pod.Status.Phase)
		values["spec.nodeName"] = pod.Spec.NodeName
	}
	return (label == nil || label.Matches(labels.Set(m.GetLabels()))) && (field == nil || field.Matches(values))
}

// now returns the time with the precision of the API.
func now() metav1.Time {
	t := metav1.Now()
	return t.Rfc3339Copy()
}
