//go:build kubernetes

package kubernetes

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/minibench/mini/env/helper/pod"
)

// Paths in a pod.
const (
	helperDir  = "/.mini"
	helperPath = helperDir + "/" + pod.Binary
	partsDir   = "/.mini-parts"
	// toolDir contains mini-tool, a symbolic link to the helper.
	toolDir = helperDir + "/" + pod.ToolDir
)

// Labels and annotations of the objects that this package creates.
const (
	labelManaged       = "app.kubernetes.io/managed-by"
	labelOwner         = "mini.owner"     // name of the owner
	labelNetwork       = "mini.network"   // "none": the pod may not communicate
	labelHelper        = "mini.helper"    // of ConfigMaps: the start of the helper's hash
	annotationRun      = "mini.run"       // Config.Run
	annotationInstance = "mini.instance"  // Config.Instance
	annotationProcess  = "mini.process"   // of owners: the process
	annotationBeat     = "mini.heartbeat" // of owners: RFC 3339
	labelQueue         = "kueue.x-k8s.io/queue-name"
	labelArch          = "kubernetes.io/arch"
	managedBy          = "mini"
)

// containerName is the name of the sandbox's container.
const containerName = "sandbox"

// Times added to Config.TimeLimit for the deadline of a pod.
const (
	deadlineSlack   = 10 * time.Minute
	defaultDeadline = 48 * time.Hour
)

// defaultCapAdd are the capabilities that package managers, tar and su need. All pass
// the Pod Security level "baseline".
var defaultCapAdd = []string{"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETUID", "SETGID", "SETFCAP", "KILL"}

// podName returns a unique name.
func podName(owner string) string {
	return owner + "-" + strings.ToLower(rand.Text()[:10])
}

// newPod returns the pod of a sandbox. image may be a digest of c.Image.
func (c *Cluster) newPod(cfg Config, image string, o *owner) (*corev1.Pod, error) {
	s := c.settings
	labels := maps.Clone(s.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[labelManaged], labels[labelOwner] = managedBy, o.name
	if cfg.Network == NetworkNone {
		labels[labelNetwork] = NetworkNone
	}
	if s.Queue != "" {
		labels[labelQueue] = s.Queue
	}
	annotations := maps.Clone(s.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotationInstance], annotations[annotationRun] = cfg.Instance, cfg.Run
	if s.DoNotDisrupt {
		annotations["karpenter.sh/do-not-disrupt"] = "true"
		annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] = "false"
	}
	container := corev1.Container{
		Name: containerName, Image: image, ImagePullPolicy: s.ImagePullPolicy,
		Command:   []string{helperPath, pod.ServeArg},
		Resources: s.resources(cfg),
	}
	container.SecurityContext = securityContext(cfg, s.Security)
	spec := corev1.PodSpec{
		RestartPolicy:                 corev1.RestartPolicyNever, // a replaced container is another sandbox
		AutomountServiceAccountToken:  new(false),
		EnableServiceLinks:            new(false),
		ServiceAccountName:            s.ServiceAccount,
		TerminationGracePeriodSeconds: new(int64(2)),
		ActiveDeadlineSeconds:         new(int64(s.deadline(cfg) / time.Second)),
		NodeSelector:                  s.nodeSelector(),
		Tolerations:                   s.Tolerations,
		Affinity:                      s.Affinity,
		PriorityClassName:             s.PriorityClass,
		SecurityContext:               &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
	}
	if cfg.Runtime != "" {
		spec.RuntimeClassName = &cfg.Runtime
	}
	if s.Security == UserNamespace {
		spec.HostUsers = new(false)
	}
	for _, name := range s.ImagePullSecrets {
		spec.ImagePullSecrets = append(spec.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	addMemoryVolumes(&spec, &container, cfg)
	c.addHelper(&spec, &container, o.helper)
	spec.Containers = []corev1.Container{container}
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: podName(o.name), Namespace: c.namespace, Labels: labels, Annotations: annotations,
			OwnerReferences: o.references(),
		},
		Spec: spec,
	}
	return patchPod(p, s.PodPatch)
}

// resources returns the limits and reservations of a sandbox.
func (s Settings) resources(cfg Config) corev1.ResourceRequirements {
	r := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	if cfg.MemoryBytes > 0 {
		memory := *resource.NewQuantity(cfg.MemoryBytes, resource.BinarySI)
		r.Requests[corev1.ResourceMemory], r.Limits[corev1.ResourceMemory] = memory, memory
	}
	if cfg.CPUs > 0 {
		r.Limits[corev1.ResourceCPU] = *resource.NewMilliQuantity(int64(cfg.CPUs*1000), resource.DecimalSI)
	}
	if !s.CPURequest.IsZero() {
		r.Requests[corev1.ResourceCPU] = s.CPURequest
		if limit, ok := r.Limits[corev1.ResourceCPU]; ok && limit.Cmp(s.CPURequest) < 0 {
			r.Requests[corev1.ResourceCPU] = limit
		}
	}
	if !s.EphemeralStorage.IsZero() {
		r.Limits[corev1.ResourceEphemeralStorage] = s.EphemeralStorage
		// A reservation of the whole limit would leave most of a node's disk unused.
		r.Requests[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(s.EphemeralStorage.Value()/10, resource.BinarySI)
	}
	return r
}

func (s Settings) deadline(cfg Config) time.Duration {
	if cfg.TimeLimit <= 0 {
		return defaultDeadline
	}
	return cfg.TimeLimit + s.PullTimeout + s.StartTimeout + deadlineSlack
}

// nodeSelector selects nodes with the helper's architecture.
func (s Settings) nodeSelector() map[string]string {
	selector := map[string]string{labelArch: "amd64"}
	maps.Copy(selector, s.NodeSelector)
	return selector
}

func securityContext(cfg Config, profile string) *corev1.SecurityContext {
	s := &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(cfg.NewPrivileges && profile != Restricted),
		ReadOnlyRootFilesystem:   new(cfg.ReadOnly),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	if profile == Restricted {
		s.RunAsNonRoot = new(true)
	} else {
		if cfg.CapDrop != nil {
			s.Capabilities.Drop = capabilities(cfg.CapDrop)
		}
		add := cfg.CapAdd
		if add == nil {
			add = defaultCapAdd
		}
		s.Capabilities.Add = capabilities(add)
	}
	if uid, gid, ok := parseUser(cfg.User); ok {
		s.RunAsUser = &uid
		if gid >= 0 {
			s.RunAsGroup = &gid
		}
	}
	return s
}

func capabilities(names []string) []corev1.Capability {
	var list []corev1.Capability
	for _, name := range names {
		list = append(list, corev1.Capability(strings.TrimPrefix(strings.ToUpper(name), "CAP_")))
	}
	return list
}

// parseUser parses "uid", "uid:gid" or "root". gid is -1 if it is not given.
func parseUser(user string) (uid, gid int64, ok bool) {
	if user == "" {
		return 0, -1, false
	}
	if user == "root" {
		return 0, -1, true
	}
	first, second, hasGroup := strings.Cut(user, ":")
	uid, err := strconv.ParseInt(first, 10, 64)
	gid = -1
	if err == nil && hasGroup {
		gid, err = strconv.ParseInt(second, 10, 64)
	}
	return uid, gid, err == nil
}

// addMemoryVolumes adds the tmpfs file systems of the sandbox.
func addMemoryVolumes(spec *corev1.PodSpec, container *corev1.Container, cfg Config) {
	sizes := maps.Clone(cfg.Tmpfs)
	if sizes == nil {
		sizes = map[string]int64{}
	}
	if cfg.ShmBytes > 0 {
		sizes["/dev/shm"] = cfg.ShmBytes
	}
	if _, ok := sizes["/tmp"]; cfg.ReadOnly && !ok {
		sizes["/tmp"] = defaultTmpBytes
	}
	for i, target := range slices.Sorted(maps.Keys(sizes)) {
		name := fmt.Sprintf("tmpfs-%d", i)
		spec.Volumes = append(spec.Volumes, memoryVolume(name, sizes[target]))
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: target})
	}
}

// defaultTmpBytes is the size of /tmp if the file system is read-only, in bytes.
const defaultTmpBytes = 256 << 20

func memoryVolume(name string, bytes int64) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{
		Medium: corev1.StorageMediumMemory, SizeLimit: resource.NewQuantity(bytes, resource.BinarySI),
	}}}
}

// patchPod applies the user's patch, which must leave alone what mini relies on.
func patchPod(p *corev1.Pod, patch []byte) (*corev1.Pod, error) {
	if len(patch) == 0 {
		return p, nil
	}
	original, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	patched, err := strategicpatch.StrategicMergePatch(original, patch, corev1.Pod{})
	if err != nil {
		return nil, configError("kubernetes.pod_patch", err.Error())
	}
	result := &corev1.Pod{}
	if err := json.Unmarshal(patched, result); err != nil {
		return nil, configError("kubernetes.pod_patch", err.Error())
	}
	for _, check := range []struct {
		what    string
		changed bool
	}{
		{"metadata.name", result.Name != p.Name || result.Namespace != p.Namespace},
		{"metadata.ownerReferences", len(result.OwnerReferences) != 1 || result.OwnerReferences[0] != p.OwnerReferences[0]},
		{"the labels of mini", result.Labels[labelOwner] != p.Labels[labelOwner] || result.Labels[labelNetwork] != p.Labels[labelNetwork]},
		{"the command of the container sandbox", !slices.ContainsFunc(result.Spec.Containers, func(c corev1.Container) bool {
			return c.Name == containerName && slices.Equal(c.Command, p.Spec.Containers[0].Command) && len(c.Args) == 0
		})},
		{"spec.restartPolicy", result.Spec.RestartPolicy != corev1.RestartPolicyNever},
		{"spec.shareProcessNamespace", result.Spec.ShareProcessNamespace != nil && *result.Spec.ShareProcessNamespace},
		{"spec.hostPID", result.Spec.HostPID},
		{"spec.hostNetwork", result.Spec.HostNetwork},
	} {
		if check.changed {
			return nil, configError("kubernetes.pod_patch", "it may not change "+check.what)
		}
	}
	return result, nil
}

// mirrored returns the name of an image in the mirror.
func (s Settings) mirrored(image string) string {
	if s.RegistryMirror == "" {
		return image
	}
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return image // the kubelet reports it
	}
	return strings.TrimSuffix(s.RegistryMirror, "/") + strings.TrimPrefix(named.String(), reference.Domain(named))
}
