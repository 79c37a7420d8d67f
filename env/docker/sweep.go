package docker

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/volume"

	"github.com/minibench/mini/env"
)

// Sweep removes the containers, in any state, that mini left behind: those of
// a process of this host that is gone. It never touches what has a living
// owner, belongs to another host, or was not made by mini. Containers of a
// PID namespace that cannot be seen from here are removed only when they have
// stopped and expired. It returns the names of what it removed.
func (e *Engine) Sweep(ctx context.Context) (removed []string, err error) {
	list, err := e.api.ContainerList(ctx, container.ListOptions{
		All:     true,
		Filters: filters.NewArgs(filters.Arg("label", labelOwner)),
	})
	if err != nil {
		return nil, failure(ctx, env.StartFailed, "list containers", err)
	}
	var errs []error
	for _, c := range list {
		if !e.abandoned(c, time.Now()) {
			continue
		}
		if err := e.remove(ctx, c.ID); err != nil {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, displayName(c))
	}
	return removed, errors.Join(errs...)
}

func (e *Engine) abandoned(c container.Summary, now time.Time) bool {
	o, ok := parseOwner(c.Labels[labelOwner])
	if !ok {
		return false
	}
	switch e.owner.sees(o) {
	case dead:
		return true
	case unknown:
		expires, err := time.Parse(time.RFC3339, c.Labels[labelExpires])
		return err == nil && now.After(expires) && c.State != container.StateRunning && c.State != container.StatePaused
	default:
		return false
	}
}

func displayName(c container.Summary) string {
	if len(c.Names) == 0 {
		return c.ID
	}
	return strings.TrimPrefix(c.Names[0], "/")
}

// volumePattern matches what volumeName makes. Labels would not do: an engine
// that misses a volume at a container's creation makes it without any.
var volumePattern = regexp.MustCompile(`^mini-helper-[0-9a-f]{16}-[a-z0-9]+$`)

// Clean is Sweep, and removes the volumes of other helpers than this mini's
// own as well, or with all of every helper. A volume in use stays. It returns
// the names of what it removed.
func (e *Engine) Clean(ctx context.Context, all bool) (removed []string, err error) {
	removed, err = e.Sweep(ctx)
	errs := []error{err}
	list, err := e.api.VolumeList(ctx, volume.ListOptions{Filters: filters.NewArgs(filters.Arg("name", "mini-helper-"))})
	if err != nil {
		return removed, errors.Join(append(errs, failure(ctx, env.StartFailed, "list volumes", err))...)
	}
	own := e.ownVolumes()
	for _, v := range list.Volumes {
		if !volumePattern.MatchString(v.Name) || (!all && slices.Contains(own, v.Name)) {
			continue
		}
		err := e.api.VolumeRemove(ctx, v.Name, false)
		switch {
		case err == nil:
			e.setFilled(v.Name, false)
			removed = append(removed, v.Name)
		case errdefs.IsConflict(err), errdefs.IsNotFound(err): // in use, or removed by another
		default:
			errs = append(errs, failure(ctx, env.StartFailed, "remove volume "+v.Name, err))
		}
	}
	return removed, errors.Join(errs...)
}

// ownVolumes are those of the helpers that this mini carries.
func (e *Engine) ownVolumes() []string {
	var names []string
	for _, arch := range []string{"amd64", "arm64"} {
		if b, err := e.helper(arch); err == nil { // one that was not built has no volume
			names = append(names, b.volumeName())
		}
	}
	return names
}
