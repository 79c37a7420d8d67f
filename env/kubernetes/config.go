//go:build kubernetes

package kubernetes

import (
	"errors"
	"os/exec"
	"path"
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/minibench/mini/env"
)

// Security profiles of pods.
const (
	// Baseline passes the Pod Security level "baseline": root with the capabilities
	// that package managers, tar and su need.
	Baseline = "baseline"
	// Restricted passes the Pod Security level "restricted": no root.
	Restricted = "restricted"
	// UserNamespace is Baseline in a user namespace: root in the pod is no user of the
	// node.
	UserNamespace = "user_namespace"
)

// Ways to bring the helper into a pod.
const (
	HelperConfigMap = "configmap" // in ConfigMaps; the image needs sh, cat and chmod
	HelperImage     = "image"     // by an init container from Settings.HelperImage
)

// Networks of pods, besides those that a NetworkPolicy of the user describes.
const (
	NetworkNone   = "none"   // the pod may not communicate
	networkBridge = "bridge" // the network of the cluster
)

// Settings describe the cluster and what all pods have in common. The zero value is the
// current context of the user's kubeconfig, or the cluster that mini itself runs in.
type Settings struct {
	Kubeconfig, Context, Namespace string

	Security           string // a profile; "" means Baseline
	Labels             map[string]string
	Annotations        map[string]string
	NodeSelector       map[string]string // kubernetes.io/arch defaults to amd64
	Tolerations        []corev1.Toleration
	Affinity           *corev1.Affinity
	PriorityClass      string
	Queue              string // of Kueue
	ServiceAccount     string // its token is never mounted
	ImagePullSecrets   []string
	ImagePullPolicy    corev1.PullPolicy // "" means IfNotPresent
	RegistryMirror     string            // replaces the registry of all images
	CPURequest         resource.Quantity
	EphemeralStorage   resource.Quantity
	DoNotDisrupt       bool // ask autoscalers to leave the pods alone
	PodPatch           []byte
	Helper             string // HelperConfigMap or HelperImage; "" means the former
	HelperImage        string
	HelperDir          string // has the helper's binaries; "" means the embedded ones
	NetworkRequired    bool   // a pod with NetworkNone must prove it
	MaxPods, MaxStarts int    // at once; 0 means no limit and 50
	QPS                float32
	Burst              int
	// ScheduleTimeout limits the wait for a node, PullTimeout that for the image, and
	// StartTimeout that for the container and the helper.
	ScheduleTimeout, PullTimeout, StartTimeout time.Duration
	// Lease is how long a pod lives without a connection.
	Lease time.Duration
	// Guard, if not nil, returns the command of a process that calls Guard with its
	// standard input. Start runs it, so that nothing is left if this process is killed.
	Guard func(namespace, owner string) *exec.Cmd
	// Waiting, if not nil, is called when the reason changes for which the start of a
	// pod waits.
	Waiting func(instance, reason string)
}

// Defaults of Settings.
const (
	DefaultMaxStarts       = 50
	DefaultQPS             = 50
	DefaultBurst           = 100
	DefaultScheduleTimeout = 30 * time.Minute
	DefaultPullTimeout     = 10 * time.Minute
	DefaultStartTimeout    = 2 * time.Minute
	DefaultLease           = 2 * time.Minute
)

func (s Settings) withDefaults() Settings {
	setDefault(&s.Security, Baseline)
	setDefault(&s.Helper, HelperConfigMap)
	setDefault(&s.ImagePullPolicy, corev1.PullIfNotPresent)
	setDefault(&s.MaxStarts, DefaultMaxStarts)
	setDefault(&s.QPS, DefaultQPS)
	setDefault(&s.Burst, DefaultBurst)
	setDefault(&s.ScheduleTimeout, DefaultScheduleTimeout)
	setDefault(&s.PullTimeout, DefaultPullTimeout)
	setDefault(&s.StartTimeout, DefaultStartTimeout)
	setDefault(&s.Lease, DefaultLease)
	if s.Waiting == nil {
		s.Waiting = func(string, string) {}
	}
	return s
}

func setDefault[T comparable](value *T, def T) {
	var zero T
	if *value == zero {
		*value = def
	}
}

// Validate returns all errors that can be found without a cluster, joined, as
// *env.ConfigError values. Package configs checks words and the name of the namespace.
func (s Settings) Validate() error {
	s = s.withDefaults()
	var errs env.ConfigErrorList
	for name, value := range s.Labels {
		if len(validation.IsQualifiedName(name)) > 0 || len(validation.IsValidLabelValue(value)) > 0 {
			errs.Add("kubernetes.labels", "%.60q: %.60q is not a label", name, value)
		}
	}
	for name := range s.Annotations {
		if len(validation.IsQualifiedName(name)) > 0 {
			errs.Add("kubernetes.annotations", "%.60q is not the name of an annotation", name)
		}
	}
	if s.Queue != "" && len(validation.IsValidLabelValue(s.Queue)) > 0 {
		errs.Add("kubernetes.queue", "%.60q is not the name of a queue", s.Queue)
	}
	if s.Lease < 10*time.Second {
		errs.Add("kubernetes.lease", "%s is too short; write at least 10", s.Lease)
	}
	return errors.Join(errs...)
}

// Config describes one sandbox. Only Image is required.
type Config struct {
	Image string
	// Dir is the working directory of commands; "" means the image's.
	Dir string
	// Env is added to the image's variables. The values do not appear in the pod.
	Env map[string]string
	// User runs the commands, as "uid" or "uid:gid"; "" means the image's USER.
	User string
	// Interpreter is the shell and its flags; Start fails if the image lacks it. Empty
	// means bash -c, or sh -c in an image without bash.
	Interpreter []string
	// Timeout is the default timeout of a command; zero means one minute.
	Timeout time.Duration
	// Network is NetworkNone, or "bridge" for the network of the cluster, or the name
	// of a NetworkPolicy of the user. "" means NetworkNone.
	Network string
	// MemoryBytes limits and reserves memory; zero or less means no limit.
	MemoryBytes int64
	CPUs        float64 // limits the processor time; zero means no limit
	ShmBytes    int64   // size of /dev/shm; zero means the node's default
	// Tmpfs maps directories to the size in bytes of a tmpfs there.
	Tmpfs    map[string]int64
	ReadOnly bool // makes the image's file system read-only, except /tmp
	// Runtime is the name of a RuntimeClass.
	Runtime string
	// CapDrop and CapAdd change the capabilities of the profile; nil means those of the
	// profile.
	CapDrop, CapAdd []string
	NewPrivileges   bool // lets set-uid programs gain privileges
	// TimeLimit is the maximum duration of the attempt; the pod ends some time after
	// it. Zero means two days.
	TimeLimit time.Duration
	// Run and Instance are written to the pod's annotations.
	Run, Instance string
}

var (
	userPattern    = regexp.MustCompile(`^[0-9]+(:[0-9]+)?$`)
	networkPattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)
)

// validate checks a sandbox's configuration with the settings of the cluster.
func (c Config) validate(s Settings) error {
	var errs env.ConfigErrorList
	if c.Image == "" {
		errs.Add("image", "it is missing")
	}
	if c.Dir != "" && !path.IsAbs(c.Dir) {
		errs.Add("cwd", "%.80q is not absolute; start it with /", c.Dir)
	}
	switch {
	case c.User == "root":
	case c.User != "" && !userPattern.MatchString(c.User):
		errs.Add("user", `%.60q has no numbers; pods need "1000" or "1000:1000"`, c.User)
	}
	if s.Security == Restricted && (c.User == "" || c.User == "root" || isRoot(c.User)) {
		errs.Add("user", "the profile restricted does not run as root; set a number, or choose another kubernetes.security")
	}
	if c.Network != "" && !networkPattern.MatchString(c.Network) {
		errs.Add("network", `%.60q is not a network of a pod; write "none", "bridge" or the name of a NetworkPolicy`, c.Network)
	}
	if c.MemoryBytes > 0 && c.MemoryBytes < minMemory {
		errs.Add("memory", "%d bytes are too few; give at least 32m", c.MemoryBytes)
	}
	return errors.Join(errs...)
}

// minMemory has room for the helper, a shell and a command, in bytes.
const minMemory = 32 << 20

func isRoot(user string) bool {
	uid, _, _ := parseUser(user)
	return uid == 0
}

// configError returns an error about a setting.
func configError(key, text string) error { return &env.ConfigError{Key: key, Text: text} }
