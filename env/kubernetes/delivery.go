//go:build kubernetes

package kubernetes

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/minibench/mini/env/helper/binaries"
	"github.com/minibench/mini/env/helper/pod"
)

// partSize is the size of the parts of the helper in ConfigMaps, which may have 1 MiB.
const partSize = 900 << 10

// partKey is the key of a part in its ConfigMap.
const partKey = "part"

// helperVolume is the size limit of the volume with the helper, in bytes.
const helperVolume = 16 << 20

// helperBinary is the helper for the nodes of the pods.
type helperBinary struct {
	hash  string
	parts []string // names of the ConfigMaps, in order; none with HelperImage
}

// deliverHelper makes sure that the namespace has the helper. The ConfigMaps are
// immutable, named after their content, and shared by all runs.
func (c *Cluster) deliverHelper(ctx context.Context) (helperBinary, error) {
	arch := c.settings.nodeSelector()[labelArch]
	binary, hash, err := loadHelper(c.settings.HelperDir, arch)
	if err != nil {
		return helperBinary{}, configError("kubernetes.node_selector", err.Error())
	}
	h := helperBinary{hash: hash}
	if c.settings.Helper == HelperImage {
		return h, nil
	}
	for i := 0; len(binary) > 0; i++ {
		n := min(len(binary), partSize)
		name := fmt.Sprintf("mini-helper-%s-%d", hash[:16], i)
		m := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{labelManaged: managedBy, labelHelper: hash[:16]}},
			Immutable:  new(true),
			BinaryData: map[string][]byte{partKey: binary[:n]},
		}
		if err := c.ensureConfigMap(ctx, m); err != nil {
			return h, err
		}
		h.parts, binary = append(h.parts, name), binary[n:]
	}
	return h, nil
}

// loadHelper is binaries.Load without what replaces a missing helper elsewhere: mini itself
// is too large for pods.
func loadHelper(dir, arch string) (binary []byte, hash string, err error) {
	binary, hash, err = binaries.Load(dir, arch)
	if err == nil && len(binary) > helperVolume {
		err = errors.New("this mini was built without the helper for pods: build it with `make build-kubernetes`")
	}
	return binary, hash, err
}

// ensureConfigMap creates a ConfigMap unless it exists.
func (c *Cluster) ensureConfigMap(ctx context.Context, m *corev1.ConfigMap) error {
	return c.retry(ctx, "create ConfigMap "+m.Name, func(ctx context.Context) error {
		_, err := c.client.CoreV1().ConfigMaps(c.namespace).Get(ctx, m.Name, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return err
		}
		_, err = c.client.CoreV1().ConfigMaps(c.namespace).Create(ctx, m, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil // another process was faster
		}
		return err
	})
}

// addHelper adds the helper to a pod.
func (c *Cluster) addHelper(spec *corev1.PodSpec, container *corev1.Container, h helperBinary) {
	spec.Volumes = append(spec.Volumes, memoryVolume("mini", helperVolume))
	mount := corev1.VolumeMount{Name: "mini", MountPath: helperDir}
	if c.settings.Helper == HelperImage {
		initial := corev1.Container{
			Name: "helper", Image: c.settings.HelperImage, ImagePullPolicy: c.settings.ImagePullPolicy,
			Command: []string{"/" + pod.Binary, pod.InstallArg, helperDir}, VolumeMounts: []corev1.VolumeMount{mount},
			SecurityContext: container.SecurityContext, Resources: container.Resources,
		}
		spec.InitContainers = append(spec.InitContainers, initial)
		container.VolumeMounts = append(container.VolumeMounts, mount)
		return
	}
	var sources []corev1.VolumeProjection
	for i, name := range h.parts {
		sources = append(sources, corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: name},
			Items:                []corev1.KeyToPath{{Key: partKey, Path: fmt.Sprintf("%02d", i)}},
		}})
	}
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "mini-parts", VolumeSource: corev1.VolumeSource{
		Projected: &corev1.ProjectedVolumeSource{Sources: sources},
	}})
	container.VolumeMounts = append(container.VolumeMounts, mount, corev1.VolumeMount{Name: "mini-parts", MountPath: partsDir, ReadOnly: true})
	// A mount of the ConfigMap could not be executed: its files may lack the
	// permission, and the helper has several parts.
	script := fmt.Sprintf("cat %s/[0-9]* >%s && chmod 755 %[2]s && exec %[2]s %s", partsDir, helperPath, pod.ServeArg)
	container.Command = []string{"sh", "-c", script}
}
