package configs

import (
	"encoding/json"
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
)

// Kubernetes configures sandboxes of the class "kubernetes". The other settings of
// Environment apply to them too, except Mounts, Ulimits, PidsLimit and Platform.
type Kubernetes struct {
	// Context, Kubeconfig and Namespace select the cluster and the namespace; empty means
	// kubectl's.
	Context    string `yaml:"context" json:"context,omitempty"`
	Kubeconfig string `yaml:"kubeconfig" json:"kubeconfig,omitempty"`
	Namespace  string `yaml:"namespace" json:"namespace,omitempty"`
	// Security is "baseline", "restricted" (no root; Environment.User is required) or
	// "user_namespace" (root in the pod is an unprivileged user on the node).
	Security string `yaml:"security" json:"security,omitempty" check:"oneof=baseline|restricted|user_namespace"`
	// NetworkRequired ends an attempt if the network is "none" and the sandbox cannot prove
	// that it has none. It has no effect on other networks.
	NetworkRequired bool `yaml:"network_required" json:"network_required"`
	// Labels and Annotations are added to each pod.
	Labels      map[string]string `yaml:"labels" json:"labels,omitempty"`
	Annotations map[string]string `yaml:"annotations" json:"annotations,omitempty"`
	// NodeSelector, Tolerations and Affinity are those of a pod's spec.
	NodeSelector  map[string]string `yaml:"node_selector" json:"node_selector,omitempty"`
	Tolerations   []map[string]any  `yaml:"tolerations" json:"tolerations,omitempty"`
	Affinity      map[string]any    `yaml:"affinity" json:"affinity,omitempty"`
	PriorityClass string            `yaml:"priority_class" json:"priority_class,omitempty"`
	// Queue is the name of a LocalQueue of Kueue.
	Queue string `yaml:"queue" json:"queue,omitempty"`
	// DoNotDisrupt asks autoscalers not to remove the node of a pod.
	DoNotDisrupt bool `yaml:"do_not_disrupt" json:"do_not_disrupt"`
	// MaxPods limits the pods of a run; 0 means no limit besides the workers. MaxStarts limits
	// the pods that are being created.
	MaxPods   int `yaml:"max_pods" json:"max_pods,omitempty" check:"min=0" hint:"0 means no limit"`
	MaxStarts int `yaml:"max_starts" json:"max_starts,omitempty" check:"min=1"`
	// QPS and Burst limit the requests to the API server, per second.
	QPS   float64 `yaml:"qps" json:"qps,omitempty" check:"positive"`
	Burst int     `yaml:"burst" json:"burst,omitempty" check:"min=1"`
	// ScheduleTimeout limits the wait for a node, StartTimeout the time from the start of
	// the container to the helper's first message, in seconds. A sandbox ends when mini has
	// been disconnected for Lease seconds.
	ScheduleTimeout float64 `yaml:"schedule_timeout" json:"schedule_timeout,omitempty" check:"seconds"`
	StartTimeout    float64 `yaml:"start_timeout" json:"start_timeout,omitempty" check:"seconds"`
	Lease           float64 `yaml:"lease" json:"lease,omitempty" check:"seconds"`
	// ImagePullSecrets are names of secrets in the namespace. ImagePullPolicy is "Always",
	// "IfNotPresent" or "Never".
	ImagePullSecrets []string `yaml:"image_pull_secrets" json:"image_pull_secrets,omitempty"`
	ImagePullPolicy  string   `yaml:"image_pull_policy" json:"image_pull_policy,omitempty" check:"oneof=Always|IfNotPresent|Never"`
	// RegistryMirror replaces the registry of images: HOST[:PORT][/PATH].
	RegistryMirror string `yaml:"registry_mirror" json:"registry_mirror,omitempty"`
	// EphemeralStorage limits the disk space of a pod, as a quantity of Kubernetes; empty
	// means no limit.
	EphemeralStorage string `yaml:"ephemeral_storage" json:"ephemeral_storage,omitempty"`
	// Helper is how the helper gets into a pod: "configmap", or "image" for HelperImage.
	Helper      string `yaml:"helper" json:"helper,omitempty" check:"oneof=configmap|image"`
	HelperImage string `yaml:"helper_image" json:"helper_image,omitempty"`
	// ServiceAccount is the pod's service account, without its token; empty means the
	// namespace's default.
	ServiceAccount string `yaml:"service_account" json:"service_account,omitempty"`
	// CPURequest is the number of CPUs that the scheduler reserves; Environment.CPUs is the
	// limit.
	CPURequest float64 `yaml:"cpu_request" json:"cpu_request,omitempty" check:"positive"`
	// DisruptionRetries is the number of attempts at an instance, and of runs of an
	// evaluation, that the cluster may disrupt without using up a try.
	DisruptionRetries int `yaml:"disruption_retries" json:"disruption_retries,omitempty" check:"min=0" hint:"0 means that each disruption counts as a try"`
	// PodPatch is a strategic merge patch that is applied to each pod.
	PodPatch map[string]any `yaml:"pod_patch" json:"pod_patch,omitempty"`
}

// kubernetesClass is the class of environments that Kubernetes configures.
const kubernetesClass = "kubernetes"

// UsesCluster reports whether sandboxes of a class are pods of a cluster.
func UsesCluster(class string) bool { return class == kubernetesClass }

var (
	// namespaceName matches the names of namespaces (RFC 1123 labels).
	namespaceName = lazyregexp.New(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	// quantity matches the quantities of Kubernetes that are useful for a size.
	quantity = lazyregexp.New(`^[0-9]+(\.[0-9]+)?([kMGTPE]|[KMGTPE]i)?$`)
)

// validateKubernetes checks the syntax of the section environment.kubernetes. Settings
// that need each other are checked only if the section applies.
func (r *Resolved) validateKubernetes() []error {
	e, k := r.Environment, r.Environment.Kubernetes
	const section = "environment.kubernetes."
	var errs []error
	addError := func(key, format string, args ...any) {
		errs = append(errs, r.errorf(section+key, format, args...))
	}
	if k.Namespace != "" && !namespaceName.MatchString(k.Namespace) {
		addError("namespace", "%.80q is not the name of a namespace", k.Namespace)
	}
	if k.EphemeralStorage != "" && (!quantity.MatchString(k.EphemeralStorage) || strings.Trim(k.EphemeralStorage, "0.kKMGTPEi") == "") {
		addError("ephemeral_storage", `%.60q is not a size; write "10Gi" or "500M"`, k.EphemeralStorage)
	}
	if strings.Contains(k.RegistryMirror, "://") || strings.ContainsAny(k.RegistryMirror, "@ ") {
		addError("registry_mirror", "write HOST, HOST:PORT or HOST:PORT/PATH, without a scheme or a user")
	}
	for _, f := range []struct {
		key   string
		value any
	}{{"tolerations", k.Tolerations}, {"affinity", k.Affinity}, {"pod_patch", k.PodPatch}} {
		if _, err := json.Marshal(f.value); err != nil { // YAML allows keys and numbers that JSON lacks
			addError(f.key, "the keys must be strings, and the values must be possible in JSON")
		}
	}
	if e.Class != kubernetesClass {
		return errs
	}
	if k.Helper == "image" && k.HelperImage == "" {
		addError("helper", "helper_image is not set; name the image that has the helper, or set helper to configmap")
	}
	if k.Security == "restricted" && e.User == "" {
		addError("security", "restricted pods do not run as root; set environment.user")
	}
	return errs
}
