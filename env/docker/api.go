package docker

import (
	"context"
	"io"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/docker/client"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// api is all that is used of the Docker client, so that a move to its
// successor stays inside this package.
type api interface {
	Ping(ctx context.Context) (types.Ping, error)
	ClientVersion() string
	DaemonHost() string
	Close() error
	Events(ctx context.Context, o events.ListOptions) (<-chan events.Message, <-chan error)

	ImageInspect(ctx context.Context, ref string, o ...client.ImageInspectOption) (image.InspectResponse, error)
	ImageHistory(ctx context.Context, id string, o ...client.ImageHistoryOption) ([]image.HistoryResponseItem, error)
	ImagePull(ctx context.Context, ref string, o image.PullOptions) (io.ReadCloser, error)
	ImageTag(ctx context.Context, source, target string) error
	ImageRemove(ctx context.Context, ref string, o image.RemoveOptions) ([]image.DeleteResponse, error)
	DiskUsage(ctx context.Context, o types.DiskUsageOptions) (types.DiskUsage, error)
	Info(ctx context.Context) (system.Info, error)

	ContainerCreate(ctx context.Context, c *container.Config, h *container.HostConfig, n *network.NetworkingConfig,
		p *ocispec.Platform, name string) (container.CreateResponse, error)
	ContainerAttach(ctx context.Context, id string, o container.AttachOptions) (types.HijackedResponse, error)
	ContainerWait(ctx context.Context, id string, c container.WaitCondition) (<-chan container.WaitResponse, <-chan error)
	ContainerStart(ctx context.Context, id string, o container.StartOptions) error
	ContainerRemove(ctx context.Context, id string, o container.RemoveOptions) error
	ContainerInspect(ctx context.Context, id string) (container.InspectResponse, error)
	ContainerList(ctx context.Context, o container.ListOptions) ([]container.Summary, error)
	ContainerStatPath(ctx context.Context, id, path string) (container.PathStat, error)
	CopyFromContainer(ctx context.Context, id, path string) (io.ReadCloser, container.PathStat, error)
	CopyToContainer(ctx context.Context, id, path string, content io.Reader, o container.CopyToContainerOptions) error

	ContainerCommit(ctx context.Context, id string, o container.CommitOptions) (container.CommitResponse, error)
	ContainerExecCreate(ctx context.Context, id string, o container.ExecOptions) (container.ExecCreateResponse, error)
	ContainerExecAttach(ctx context.Context, exec string, o container.ExecAttachOptions) (types.HijackedResponse, error)
	ContainerExecInspect(ctx context.Context, exec string) (container.ExecInspect, error)
	ContainerExecResize(ctx context.Context, exec string, o container.ResizeOptions) error

	ImageList(ctx context.Context, o image.ListOptions) ([]image.Summary, error)

	VolumeCreate(ctx context.Context, o volume.CreateOptions) (volume.Volume, error)
	VolumeList(ctx context.Context, o volume.ListOptions) (volume.ListResponse, error)
	VolumeRemove(ctx context.Context, name string, force bool) error

	ServerVersion(ctx context.Context) (types.Version, error)
	NetworkInspect(ctx context.Context, name string, o network.InspectOptions) (network.Inspect, error)
}

var _ api = (*client.Client)(nil)
