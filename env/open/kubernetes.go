//go:build kubernetes

package envopen

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/kubernetes"
	"github.com/minibench/mini/internal/text"
)

// GuardCommand is the subcommand of mini kubernetes that runs kubernetes.Guard.
const GuardCommand = "guard"

// ClusterSettings returns the settings of the cluster. It ignores invalid values, which
// the validation of the configuration has reported.
func ClusterSettings(cfg *configs.Resolved) (kubernetes.Settings, error) {
	k := cfg.Environment.Kubernetes
	s := kubernetes.Settings{
		Kubeconfig: k.Kubeconfig, Context: k.Context, Namespace: k.Namespace,
		Security: k.Security, Labels: k.Labels, Annotations: k.Annotations, NodeSelector: k.NodeSelector,
		PriorityClass: k.PriorityClass, Queue: k.Queue, ServiceAccount: k.ServiceAccount,
		ImagePullSecrets: k.ImagePullSecrets, ImagePullPolicy: corev1.PullPolicy(k.ImagePullPolicy), RegistryMirror: k.RegistryMirror,
		CPURequest: *resource.NewMilliQuantity(int64(k.CPURequest*1000), resource.DecimalSI), DoNotDisrupt: k.DoNotDisrupt,
		Helper: k.Helper, HelperImage: k.HelperImage, HelperDir: cfg.Environment.HelperDir,
		NetworkRequired: k.NetworkRequired, MaxPods: k.MaxPods, MaxStarts: k.MaxStarts, QPS: float32(k.QPS), Burst: k.Burst,
		ScheduleTimeout: configs.Duration(k.ScheduleTimeout), StartTimeout: configs.Duration(k.StartTimeout), Lease: configs.Duration(k.Lease),
	}
	if _, set := cfg.UserOrigin("environment.pull_timeout"); set { // mini's default is for an engine, which reports progress
		s.PullTimeout = configs.Duration(cfg.Environment.PullTimeout)
	}
	var errs []configs.KeyError
	addError := func(key string, err error) {
		if err != nil {
			errs = append(errs, configs.KeyError{Key: "environment.kubernetes." + key, Text: err.Error()})
		}
	}
	var err error
	if k.EphemeralStorage != "" {
		s.EphemeralStorage, err = resource.ParseQuantity(k.EphemeralStorage)
		addError("ephemeral_storage", err)
	}
	addError("tolerations", convertYAML(k.Tolerations, &s.Tolerations))
	if len(k.Affinity) > 0 {
		addError("affinity", convertYAML(k.Affinity, &s.Affinity))
	}
	if len(k.PodPatch) > 0 {
		s.PodPatch, err = json.Marshal(k.PodPatch)
		addError("pod_patch", err)
	}
	if errs != nil {
		return s, cfg.KeyErrors(errs...)
	}
	return s, nil
}

// convertYAML converts a value of a configuration to a type of the Kubernetes API.
func convertYAML[T any](value any, to *T) error {
	b, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, to)
}

// cluster adapts a kubernetes.Cluster to the settings of containers.
type cluster struct {
	*kubernetes.Cluster
	cfg *configs.Resolved
}

func openCluster(ctx context.Context, cfg *configs.Resolved, w io.Writer, o Observer) (Cluster, error) {
	s, err := ClusterSettings(cfg)
	if err != nil {
		return nil, err
	}
	s.Waiting = o.Waiting
	if program, err := os.Executable(); err == nil {
		s.Guard = func(namespace, owner string) *exec.Cmd {
			return exec.Command(program, "kubernetes", GuardCommand, //nolint:gosec,noctx // this program; it outlives any context
				"--kubeconfig", s.Kubeconfig, "--context", s.Context, "--namespace", namespace, owner)
		}
	}
	opened, err := kubernetes.Open(ctx, s)
	if err != nil {
		return nil, configErrors(cfg, err)
	}
	removed, err := opened.Sweep(ctx)
	for _, l := range removed {
		_, _ = fmt.Fprintln(w, "mini: removed leftovers of a killed mini:", text.Printable(l.String())) // best effort
	}
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return cluster{opened, cfg}, nil
}

// Check implements sandboxes.
func (c cluster) Check(ctx context.Context, container docker.Config) error {
	return configErrors(c.cfg, c.Cluster.Check(ctx, podConfig(container, 0)))
}

// Start implements sandboxes.
func (c cluster) Start(ctx context.Context, container docker.Config, limit time.Duration) (env.Environment, error) {
	pod, err := c.Cluster.Start(ctx, podConfig(container, limit))
	if err != nil {
		return nil, err // avoid returning a typed nil
	}
	return pod, nil
}

// podConfig returns the settings of a container as those of a pod.
func podConfig(c docker.Config, limit time.Duration) kubernetes.Config {
	return kubernetes.Config{
		Image: c.Image, Dir: c.Dir, Env: c.Env, User: c.User, Interpreter: c.Interpreter, Timeout: c.Timeout, Network: c.Network,
		MemoryBytes: c.MemoryBytes, CPUs: c.CPUs, ShmBytes: c.ShmBytes, Tmpfs: c.Tmpfs, ReadOnly: c.ReadOnly, Runtime: c.Runtime,
		CapDrop: c.CapDrop, CapAdd: c.CapAdd, NewPrivileges: c.NewPrivileges, TimeLimit: limit, Run: c.Run, Instance: c.Instance,
	}
}

// ConnectCluster prepares a connection to the configured cluster, without a request, and
// returns the settings that all its pods share. It is for commands that examine or clean
// a cluster.
func ConnectCluster(cfg *configs.Resolved, change func(*kubernetes.Settings)) (*kubernetes.Cluster, kubernetes.Config, error) {
	pod := podConfig(parseContainer(cfg.Environment), 0)
	s, err := ClusterSettings(cfg)
	if err != nil {
		return nil, pod, err
	}
	if change != nil {
		change(&s)
	}
	c, err := kubernetes.Connect(s)
	return c, pod, configErrors(cfg, err)
}
