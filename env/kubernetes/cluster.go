//go:build kubernetes

package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/internal/version"
)

// Cluster starts sandboxes in one namespace of a cluster. Its methods are safe for
// concurrent use.
type Cluster struct {
	settings  Settings
	namespace string
	client    kubernetes.Interface
	config    *rest.Config
	exec      rest.Interface // for exec requests
	spdyOnly  atomic.Bool    // WebSocket does not work
	pods      watcher
	starts    chan struct{} // a slot for each pod in creation
	slots     chan struct{} // a slot for each pod; nil means no limit
	stop      context.CancelFunc
	workers   sync.WaitGroup
	warnings  *warnings
	ctx       context.Context //nolint:containedctx // ends with Close

	mu       sync.Mutex
	current  *owner            // nil before the first start
	digests  map[string]string // by image: the name with the digest that the first pod got
	exceeded map[string]bool   // instances whose sandbox exceeded its own limit once
	unproven int               // failed network proofs in a row

	probeLimit, lossPeriod time.Duration // the constants, except in tests
}

// quietKlog keeps the log of client-go off the terminal.
var quietKlog = sync.OnceFunc(func() { klog.SetLogger(logr.Discard()) })

// Open connects to the cluster. The error is an *env.ConfigError (see env.ConfigErrors) if the
// settings are wrong, and an *env.Error if the cluster does not answer.
func Open(ctx context.Context, s Settings) (*Cluster, error) {
	c, err := Connect(s)
	if err != nil {
		return nil, err
	}
	if err := c.ping(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Connect is Open without a request to the cluster.
func Connect(s Settings) (*Cluster, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	config, namespace, err := load(s)
	if err != nil {
		return nil, err
	}
	return connect(s, config, namespace)
}

// load reads the kubeconfig, or the credentials of the pod in which mini runs.
func load(s Settings) (*rest.Config, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = s.Kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: s.Context}
	overrides.Context.Namespace = s.Namespace
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	config, err := loader.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, "", configError("kubernetes.kubeconfig", "there is no kubeconfig; set KUBECONFIG or this key to its file")
	}
	if err != nil {
		key := "kubernetes.kubeconfig"
		if s.Context != "" {
			key = "kubernetes.context"
		}
		return nil, "", configError(key, err.Error()+"; check with kubectl get pods")
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, "", configError("kubernetes.namespace", err.Error())
	}
	s = s.withDefaults()
	config.QPS, config.Burst = s.QPS, s.Burst
	config.UserAgent = "mini/" + version.Version
	return config, namespace, nil
}

// connect makes a Cluster without a request.
func connect(s Settings, config *rest.Config, namespace string) (*Cluster, error) {
	config.WarningHandler = &warnings{} // the clients copy the configuration
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, configError("kubernetes.kubeconfig", err.Error())
	}
	return newCluster(s, client, config, namespace)
}

func newCluster(s Settings, client kubernetes.Interface, config *rest.Config, namespace string) (*Cluster, error) {
	quietKlog()
	s = s.withDefaults()
	exec, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, configError("kubernetes.kubeconfig", err.Error())
	}
	c := &Cluster{
		settings: s, namespace: namespace, client: client, config: config, exec: exec.RESTClient(),
		starts: make(chan struct{}, s.MaxStarts), digests: map[string]string{}, exceeded: map[string]bool{},
		probeLimit: probeLimit, lossPeriod: lossPeriod,
	}
	c.pods.changed.L = &c.pods.mu
	c.warnings, _ = config.WarningHandler.(*warnings)
	if s.MaxPods > 0 {
		c.slots = make(chan struct{}, s.MaxPods)
	}
	c.ctx, c.stop = context.WithCancel(context.Background())
	return c, nil
}

// Namespace is the namespace of the pods.
func (c *Cluster) Namespace() string { return c.namespace }

// Host is the address of the API server.
func (c *Cluster) Host() string { return c.config.Host }

// ping checks that the API server answers and knows the namespace and the user.
func (c *Cluster) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := c.listOwners(ctx)
	if err != nil {
		return c.apiError(ctx, env.DaemonUnavailable, "connect to the cluster "+c.config.Host, err)
	}
	return nil
}

// Close deletes the owner, and with it all pods that are left.
func (c *Cluster) Close() error {
	c.mu.Lock()
	o := c.current
	c.current = nil
	c.mu.Unlock()
	c.stop()
	c.workers.Wait()
	if o == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	err := c.deleteOwner(ctx, o.name)
	o.stopGuard()
	if err != nil {
		return fmt.Errorf("close cluster: %w", err)
	}
	return nil
}

// warnings collects the warnings of the API server, such as those about Pod Security.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
	if len(w.texts) > maxWarnings {
		w.texts = w.texts[1:]
	}
}

const maxWarnings = 20

// take returns the warnings since the last call; none if w is nil.
func (w *warnings) take() []string {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	texts := w.texts
	w.texts = nil
	return texts
}
