//go:build kubernetes

package kubetest

import (
	"cmp"
	"context"
	"strconv"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/volume"
	v1 "k8s.io/api/core/v1"
)

// label is the label of containers and volumes. Its value is the name of the test and
// the address of the API server.
const label = "mini.kubetest"

// maxPIDs is the limit of processes of a container.
const maxPIDs = 512

func (c *Cluster) labels(pod *v1.Pod) map[string]string {
	return map[string]string{label: c.labelValue(), label + ".pod": pod.Name}
}

func (c *Cluster) labelValue() string { return c.t.Name() + " " + c.host }

// Leftovers returns the number of containers and volumes in the engine.
func (c *Cluster) Leftovers() int {
	c.t.Helper()
	ctx, mine := context.WithoutCancel(c.t.Context()), filters.NewArgs(filters.Arg("label", label+"="+c.labelValue()))
	list, err := c.docker.ContainerList(ctx, container.ListOptions{All: true, Filters: mine})
	if err != nil {
		c.t.Errorf("list containers: %v", err)
	}
	volumes, err := c.docker.VolumeList(ctx, volume.ListOptions{Filters: mine})
	if err != nil {
		c.t.Errorf("list volumes: %v", err)
	}
	return len(list) + len(volumes.Volumes)
}

// containerConfig translates the first container of a pod, or an init container.
func (c *Cluster) containerConfig(pod *v1.Pod, spec *v1.Container, m containerMounts) (*container.Config, *container.HostConfig) {
	config := &container.Config{
		Hostname:    pod.Name,
		Image:       spec.Image,
		Entrypoint:  spec.Command,
		Cmd:         spec.Args,
		Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
		Labels:      c.labels(pod),
		// The kubelet sets these in all pods.
		Env: []string{"KUBERNETES_SERVICE_HOST=10.96.0.1", "KUBERNETES_SERVICE_PORT=443"},
	}
	for _, e := range spec.Env {
		config.Env = append(config.Env, e.Name+"="+e.Value)
	}
	pids := int64(maxPIDs)
	host := &container.HostConfig{
		LogConfig:   container.LogConfig{Type: "none"},
		NetworkMode: container.NetworkMode(c.Network),
		Mounts:      m.mounts,
		Tmpfs:       m.tmpfs,
		Resources:   container.Resources{PidsLimit: &pids},
	}
	if memory, ok := spec.Resources.Limits[v1.ResourceMemory]; ok {
		host.Memory, host.MemorySwap = memory.Value(), memory.Value()
	}
	if cpu, ok := spec.Resources.Limits[v1.ResourceCPU]; ok {
		// Not NanoCPUs: the engine refuses more than the machine has.
		host.CPUPeriod, host.CPUQuota = 100_000, cpu.MilliValue()*100
	}
	setSecurity(config, host, spec.SecurityContext)
	return config, host
}

// setSecurity applies the security context of a container. That of the pod is ignored.
func setSecurity(config *container.Config, host *container.HostConfig, ctr *v1.SecurityContext) {
	if ctr == nil {
		return
	}
	if ctr.RunAsUser != nil {
		config.User = strconv.FormatInt(*ctr.RunAsUser, 10)
	}
	if ctr.RunAsGroup != nil {
		config.User = cmp.Or(config.User, "0") + ":" + strconv.FormatInt(*ctr.RunAsGroup, 10)
	}
	if ctr.Capabilities != nil {
		for _, name := range ctr.Capabilities.Drop {
			host.CapDrop = append(host.CapDrop, string(name))
		}
		for _, name := range ctr.Capabilities.Add {
			host.CapAdd = append(host.CapAdd, string(name))
		}
	}
	if ctr.AllowPrivilegeEscalation != nil && !*ctr.AllowPrivilegeEscalation {
		host.SecurityOpt = append(host.SecurityOpt, "no-new-privileges")
	}
	if ctr.ReadOnlyRootFilesystem != nil {
		host.ReadonlyRootfs = *ctr.ReadOnlyRootFilesystem
	}
}
