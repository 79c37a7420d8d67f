package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/volume"
	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/internal/lazyregexp"
)

// sweepers bounds how many leftovers are removed at once. An engine removes few
// containers side by side, however many it is asked to.
const sweepers = 8

// Sweep removes what mini left behind in the engine: containers in any state,
// with their anonymous volumes, and volumes, whose label names a process of this
// host that is proven to be dead. It never touches what may have
// a living owner, belongs to another host, or does not have the label. What
// belongs to another boot or PID namespace is removed only when it is not in use
// and has expired. It returns what it removed; what another mini removes at the
// same time is in that one's list.
func (e *Engine) Sweep(ctx context.Context) ([]Leftover, error) { return e.Clean(ctx, Thorough{}) }

// Thorough says what Clean removes beyond what Sweep does.
type Thorough struct {
	Helpers bool   // the volumes with helpers that are not in use; they are made anew
	Kept    bool   // the images of sandboxes that this user kept on this host (see Container.Keep)
	Run     string // with Kept: only those of this run, as in Config.Run
	// Unknown adds what may be another's: whose owner belongs to another boot or
	// PID namespace, so that it may run, and with Kept the images of which no
	// label names the user.
	Unknown bool
}

// Clean is Sweep, and removes what was asked for as well.
func (e *Engine) Clean(ctx context.Context, t Thorough) ([]Leftover, error) {
	left, err := e.Cleanable(ctx, t)
	if err != nil {
		return nil, err
	}
	return e.removeAll(ctx, left)
}

// leftovers is what Sweep would remove. Containers come first: they hold the
// volumes they use.
func (e *Engine) leftovers(ctx context.Context, alsoUnknown bool) ([]Leftover, error) {
	ours := filters.NewArgs(filters.Arg("label", labelOwner))
	containers, err := e.api.ContainerList(ctx, container.ListOptions{All: true, Filters: ours})
	if err != nil {
		return nil, failure(ctx, env.StartFailed, "list containers", err)
	}
	volumes, err := e.api.VolumeList(ctx, volume.ListOptions{Filters: ours})
	if err != nil {
		return nil, failure(ctx, env.StartFailed, "list volumes", err)
	}
	var left []Leftover
	add := func(l Leftover, labels map[string]string, inUse bool) {
		o, ok := parseOwner(labels[labelOwner])
		if !ok {
			return
		}
		if !e.abandoned(o, labels, inUse) {
			if !alsoUnknown || e.owner.sees(o) != unknown || ofAnother(labels[labelUser]) {
				return
			}
			l.Unknown = true
		}
		l.Run, l.Instance, l.Owner = labels[labelRun], labels[labelInstance], fmt.Sprintf("process %d", o.PID)
		left = append(left, l)
	}
	for _, c := range containers {
		inUse := c.State == container.StateRunning || c.State == container.StatePaused
		add(Leftover{Kind: KindContainer, Name: displayName(c), State: c.State, Created: time.Unix(c.Created, 0), id: c.ID}, c.Labels, inUse)
	}
	for _, v := range volumes.Volumes {
		add(Leftover{Kind: KindVolume, Name: v.Name, Created: parseTime(v.CreatedAt), id: v.Name}, v.Labels, false)
	}
	return left, nil
}

// Cleanable is what Clean would remove, but for what is in use.
func (e *Engine) Cleanable(ctx context.Context, t Thorough) ([]Leftover, error) {
	left, err := e.leftovers(ctx, t.Unknown)
	if err != nil {
		return nil, err
	}
	if t.Helpers {
		list, err := e.api.VolumeList(ctx, volume.ListOptions{Filters: filters.NewArgs(filters.Arg("name", "mini-helper-"))})
		if err != nil {
			return nil, failure(ctx, env.StartFailed, "list volumes", err)
		}
		for _, v := range list.Volumes {
			if volumePattern.MatchString(v.Name) {
				left = append(left, Leftover{Kind: KindVolume, Name: v.Name, Created: parseTime(v.CreatedAt), Helper: true, id: v.Name})
			}
		}
	}
	if !t.Kept {
		return left, nil
	}
	kept, err := e.Kept(ctx, t.Run, "")
	for _, k := range kept {
		if k.Host != e.owner.Host || ofAnother(k.User) || k.User == "" && !t.Unknown {
			continue
		}
		left = append(left, Leftover{Kind: KindImage, Name: k.Image, Run: k.Run, Instance: k.Instance, Created: k.Since, Unknown: k.User == "", id: k.Image})
	}
	return left, err
}

// ofAnother says that a label names another user than this process's.
func ofAnother(uid string) bool { return uid != "" && uid != strconv.Itoa(os.Getuid()) }

func (e *Engine) abandoned(o owner, labels map[string]string, inUse bool) bool {
	switch e.owner.sees(o) {
	case dead:
		return true
	case unknown:
		expires, err := time.Parse(time.RFC3339, labels[labelExpires])
		return err == nil && time.Now().After(expires) && !inUse
	default:
		return false
	}
}

// removeAll removes what it can, containers before what they use, and returns
// what it removed in the order in which it was given.
func (e *Engine) removeAll(ctx context.Context, left []Leftover) ([]Leftover, error) {
	done, errs := make([]bool, len(left)), make([]error, len(left))
	for _, containers := range []bool{true, false} {
		var g errgroup.Group
		g.SetLimit(sweepers)
		for i, l := range left {
			if (l.Kind == KindContainer) != containers {
				continue
			}
			g.Go(func() error {
				if ctx.Err() == nil {
					done[i], errs[i] = e.removeLeftover(ctx, l)
				}
				return nil // one that stays does not keep the others
			})
		}
		_ = g.Wait() // errs has them
	}
	var removed []Leftover
	for i, l := range left {
		if done[i] {
			removed = append(removed, l)
		}
	}
	return removed, errors.Join(append(errs, context.Cause(ctx))...)
}

// removeLeftover says whether it was this call that removed it.
func (e *Engine) removeLeftover(ctx context.Context, l Leftover) (bool, error) {
	var err error
	switch l.Kind {
	case KindContainer:
		return e.remove(ctx, l.id, removeTimeout)
	case KindVolume:
		err = e.api.VolumeRemove(ctx, l.id, false)
	case KindImage:
		_, err = e.api.ImageRemove(ctx, l.id, image.RemoveOptions{PruneChildren: true})
	}
	switch {
	case err == nil:
		e.setFilled(l.id, false)
		return true, nil
	case errdefs.IsConflict(err) && l.Kind == KindImage:
		return false, fmt.Errorf("remove image %s: a container is made of it; end that first", l.Name)
	case errdefs.IsNotFound(err), errdefs.IsConflict(err), errdefs.IsPermissionDenied(err):
		return false, nil // removed by another, or in use
	}
	return false, failure(ctx, env.StartFailed, fmt.Sprintf("remove %s %s", l.Kind, l.Name), err)
}

func displayName(c container.Summary) string {
	if len(c.Names) == 0 {
		return c.ID
	}
	return strings.TrimPrefix(c.Names[0], "/")
}

// parseTime is the zero time for what is none.
func parseTime(s string) time.Time {
	t, _ := time.Parse(time.RFC3339, s)
	return t
}

// volumePattern matches what volumeName makes. Labels would not do: an engine
// that misses a volume at a container's creation makes it without any.
var volumePattern = lazyregexp.New(`^mini-helper-[0-9a-f]{16}-[a-z0-9]+$`)

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
