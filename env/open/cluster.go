package envopen

import (
	"context"
	"errors"
	"io"
	"reflect"
	"time"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
)

// Cluster starts sandboxes as pods. Builds with the tag kubernetes have one.
type Cluster interface {
	// Check reports whether the cluster refuses pods with these settings.
	Check(ctx context.Context, c docker.Config) error
	// Start starts a pod with the settings of a container, for an attempt of at most
	// limit; zero means no limit.
	Start(ctx context.Context, c docker.Config, limit time.Duration) (env.Environment, error)
	Close() error
}

// connectCluster connects to the configured cluster, unless s has it already, and
// removes what killed mini processes left behind.
func (s *Sandboxes) connectCluster(ctx context.Context, cfg *configs.Resolved, w io.Writer, o Observer) error {
	if err := CheckSettings(cfg, cfg.Environment.Class); err != nil {
		return err
	}
	if s.cluster != nil && reflect.DeepEqual(s.clusterSettings, cfg.Environment.Kubernetes) {
		return nil
	}
	cluster, err := openCluster(ctx, cfg, w, o)
	if err != nil {
		return err
	}
	s.cluster, s.clusterSettings, s.release = cluster, cfg.Environment.Kubernetes, cluster.Close
	return nil
}

// pods makes s start sandboxes as pods.
func (s *Sandboxes) pods(ctx context.Context, cfg *configs.Resolved, run string, w io.Writer, o Observer) error {
	s.Engine, s.Images = nil, nil
	if err := s.connectCluster(ctx, cfg, w, o); err != nil {
		return err
	}
	base, err := ContainerConfig(cfg, run)
	if err == nil {
		err = s.cluster.Check(ctx, WithPlaceholderImage(base))
	}
	if err != nil {
		return errors.Join(err, s.Close())
	}
	limit := configs.Duration(cfg.Agent.WallTimeLimit)
	s.start = func(ctx context.Context, in datasets.Instance) (env.Environment, keepFunc, error) {
		c := base
		c.Instance, c.Image = in.ID, ImageName(cfg, in)
		o.Starting(in.ID, c.Image)
		sandbox, err := s.cluster.Start(ctx, c, limit)
		return sandbox, nil, err
	}
	return nil
}

// HasImages reports whether the sandboxes run in containers of images, and not in
// folders of this machine.
func (s *Sandboxes) HasImages() bool { return s.Engine != nil || s.cluster != nil }

// UsesCluster reports whether the sandboxes are pods of a cluster.
func (s *Sandboxes) UsesCluster() bool { return s.cluster != nil }

// CheckContainer reports whether the engine or the cluster supports the settings.
func (s *Sandboxes) CheckContainer(ctx context.Context, c docker.Config) error {
	if s.UsesCluster() {
		return s.cluster.Check(ctx, c)
	}
	return s.Engine.Check(ctx, c)
}

// StartContainer starts another container, which is no attempt's sandbox, for at most
// limit; zero means no limit.
func (s *Sandboxes) StartContainer(ctx context.Context, c docker.Config, limit time.Duration) (env.Environment, error) {
	var sandbox env.Environment
	var err error
	if s.UsesCluster() {
		sandbox, err = s.cluster.Start(ctx, c, limit)
	} else {
		sandbox, err = s.Engine.Start(ctx, c)
	}
	if err != nil {
		return nil, err // avoid returning a typed nil
	}
	return s.track(ctx, sandbox, nil), nil
}
