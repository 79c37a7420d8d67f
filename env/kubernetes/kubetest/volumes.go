//go:build kubernetes

package kubetest

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/volume"
	v1 "k8s.io/api/core/v1"
)

// volumes are the volumes of one pod. The files of ConfigMaps are in a temporary
// directory, which containers get as a bind mount. An emptyDir is a tmpfs, or a Docker
// volume if it is not in memory or if the pod has init containers, which must see the
// same files.
type volumes struct {
	c       *Cluster
	labels  map[string]string
	dirs    map[string]string          // by name of the volume: the directory
	tmpfs   map[string]string          // by name of the volume: the mount options
	named   map[string]string          // by name of the volume: the Docker volume
	unknown map[string]v1.VolumeSource // not supported
}

// containerMounts are the volume mounts of a container.
type containerMounts struct {
	mounts []mount.Mount
	tmpfs  map[string]string
}

// newVolumes makes the volumes of a pod. An error usually means a ConfigMap that is
// missing or lacks a key.
func (c *Cluster) newVolumes(ctx context.Context, p *pod) (*volumes, error) {
	vs := &volumes{
		c: c, labels: c.labels(p.spec),
		dirs: map[string]string{}, tmpfs: map[string]string{}, named: map[string]string{},
		unknown: map[string]v1.VolumeSource{},
	}
	for _, v := range p.spec.Spec.Volumes {
		if err := vs.add(ctx, p.spec, v); err != nil {
			return vs, err
		}
	}
	return vs, nil
}

func (vs *volumes) add(ctx context.Context, pod *v1.Pod, v v1.Volume) error {
	switch {
	case v.Projected != nil:
		return vs.addFiles(pod, v.Name, v.Projected.Sources)
	case v.EmptyDir != nil && v.EmptyDir.Medium == v1.StorageMediumMemory && len(pod.Spec.InitContainers) == 0:
		vs.tmpfs[v.Name] = "rw,exec,nosuid,nodev,mode=0777"
		if limit := v.EmptyDir.SizeLimit; limit != nil && !limit.IsZero() {
			vs.tmpfs[v.Name] += fmt.Sprintf(",size=%d", limit.Value())
		}
	case v.EmptyDir != nil:
		created, err := vs.c.docker.VolumeCreate(context.WithoutCancel(ctx), volume.CreateOptions{Labels: vs.labels})
		if err != nil {
			return err
		}
		vs.named[v.Name] = created.Name
		return vs.setMode(ctx, pod.Spec.Containers[0].Image, created.Name)
	default:
		vs.unknown[v.Name] = v.VolumeSource
	}
	return nil
}

// addFiles makes a volume with the content of ConfigMaps.
func (vs *volumes) addFiles(pod *v1.Pod, name string, sources []v1.VolumeProjection) error {
	dir, err := os.MkdirTemp(vs.c.dir, "volume-")
	if err != nil {
		return err
	}
	vs.dirs[name] = dir
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // users of the container read it
		return err
	}
	for _, s := range sources {
		if s.ConfigMap == nil {
			return fmt.Errorf("volume %s: kubetest projects only configMaps", name)
		}
		if err := vs.c.writeConfigMap(dir, pod.Namespace, s.ConfigMap); err != nil {
			return fmt.Errorf("MountVolume.SetUp failed for volume %q : %w", name, err)
		}
	}
	return nil
}

func (c *Cluster) writeConfigMap(dir, namespace string, source *v1.ConfigMapProjection) error {
	obj, err := c.fake.Tracker().Get(configMaps, namespace, source.Name)
	if err != nil {
		return err
	}
	configMap, ok := obj.(*v1.ConfigMap)
	if !ok {
		return fmt.Errorf("configmap %s is a %T", source.Name, obj)
	}
	content := maps.Clone(configMap.BinaryData)
	if content == nil {
		content = map[string][]byte{}
	}
	for key, text := range configMap.Data {
		content[key] = []byte(text)
	}
	items := source.Items
	if items == nil {
		for key := range content {
			items = append(items, v1.KeyToPath{Key: key, Path: key})
		}
	}
	for _, item := range items {
		data, ok := content[item.Key]
		if !ok {
			return fmt.Errorf("configmap references non-existent config key: %s", item.Key)
		}
		path := filepath.Join(dir, item.Path)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return err
		}
		if err := os.Chmod(path, 0o644); err != nil { //nolint:gosec // users of the container read it
			return err
		}
	}
	return nil
}

// of returns the mounts of a container.
func (vs *volumes) of(spec *v1.Container) (containerMounts, error) {
	m := containerMounts{tmpfs: map[string]string{}}
	for _, vm := range spec.VolumeMounts {
		if dir, ok := vs.dirs[vm.Name]; ok {
			m.mounts = append(m.mounts, mount.Mount{
				Type: mount.TypeBind, Source: dir, Target: vm.MountPath, ReadOnly: true,
			})
		} else if options, ok := vs.tmpfs[vm.Name]; ok {
			if vm.ReadOnly {
				options += ",ro"
			}
			m.tmpfs[vm.MountPath] = options
		} else if name, ok := vs.named[vm.Name]; ok {
			m.mounts = append(m.mounts, mount.Mount{
				Type: mount.TypeVolume, Source: name, Target: vm.MountPath, ReadOnly: vm.ReadOnly,
				VolumeOptions: &mount.VolumeOptions{NoCopy: true},
			})
		} else if source, ok := vs.unknown[vm.Name]; ok {
			return m, fmt.Errorf("volume %s: kubetest supports only projected and emptyDir: %s", vm.Name, &source)
		} else {
			return m, fmt.Errorf("volume %s does not exist", vm.Name)
		}
	}
	return m, nil
}

// setMode makes a new Docker volume writable for all users, as an emptyDir is. The
// engine changes modes only in containers, so it takes one, which is not started.
func (vs *volumes) setMode(ctx context.Context, image, name string) error {
	const target = "volume"
	created, err := vs.c.docker.ContainerCreate(context.WithoutCancel(ctx), &container.Config{Image: image, Cmd: []string{"none"}, Labels: vs.labels},
		&container.HostConfig{Mounts: []mount.Mount{{
			Type: mount.TypeVolume, Source: name, Target: "/" + target, VolumeOptions: &mount.VolumeOptions{NoCopy: true},
		}}}, nil, nil, "")
	if cerrdefs.IsNotFound(err) {
		return nil // the image is missing, which is reported later
	}
	if err != nil {
		return err
	}
	defer vs.c.removeContainer(ctx, created.ID)
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: target + "/", Mode: 0o777}); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return vs.c.docker.CopyToContainer(context.WithoutCancel(ctx), created.ID, "/", &archive, container.CopyToContainerOptions{})
}

// remove removes the volumes. No container may use them.
func (vs *volumes) remove(ctx context.Context) {
	for _, dir := range vs.dirs {
		if err := os.RemoveAll(dir); err != nil {
			vs.c.t.Errorf("remove volume: %v", err)
		}
	}
	for _, name := range vs.named {
		if err := vs.c.docker.VolumeRemove(context.WithoutCancel(ctx), name, true); err != nil {
			vs.c.t.Errorf("remove volume: %v", err)
		}
	}
}
