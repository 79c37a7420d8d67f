//go:build full && linux

package docker_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/docker/client"
	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// TestSweep uses an engine of its own, because other tests sweep the machine's engine.
func TestSweep(t *testing.T) {
	t.Parallel()
	d := dockertest.StartDaemon(t)
	p := spawnAt(t, d.Host(), docker.Config{Image: dockertest.SmallImage})
	t.Run("in use", func(t *testing.T) { sweepInUse(t, d, p) })
	t.Run("concurrent", func(t *testing.T) { concurrentSweeps(t, d, p) })
	t.Run("owners", func(t *testing.T) { sweepOwners(t, d, p) }) // kills p
}

// engineObjects creates and lists containers and volumes in an engine, for tests of
// Sweep.
type engineObjects struct {
	t   *testing.T
	cli *client.Client
	n   int
}

func newEngineObjects(t *testing.T, d *dockertest.Daemon) *engineObjects {
	c := d.Client()
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return &engineObjects{t: t, cli: c}
}

func (m *engineObjects) container(name string, labels map[string]string) string {
	m.t.Helper()
	_, err := m.cli.ContainerCreate(m.t.Context(), &container.Config{Image: dockertest.SmallImage, Cmd: []string{"true"}, Labels: labels}, nil, nil, nil, name)
	require.NoError(m.t, err)
	return "container " + name
}

func (m *engineObjects) volume(name string, labels map[string]string) string {
	m.t.Helper()
	_, err := m.cli.VolumeCreate(m.t.Context(), volume.CreateOptions{Name: name, Labels: labels})
	require.NoError(m.t, err)
	return "volume " + name
}

// createBoth creates a container and a volume with the same labels.
func (m *engineObjects) createBoth(labels map[string]string) []string {
	m.t.Helper()
	m.n++
	name := fmt.Sprintf("mini-x-%d", m.n)
	return []string{m.container(name, labels), m.volume(name, labels)}
}

// list returns all containers and volumes of the engine, as "kind name".
func (m *engineObjects) list() []string {
	m.t.Helper()
	var found []string
	containers, err := m.cli.ContainerList(m.t.Context(), container.ListOptions{All: true})
	require.NoError(m.t, err)
	for _, c := range containers {
		found = append(found, "container "+strings.TrimPrefix(c.Names[0], "/"))
	}
	volumes, err := m.cli.VolumeList(m.t.Context(), volume.ListOptions{})
	require.NoError(m.t, err)
	for _, v := range volumes.Volumes {
		found = append(found, "volume "+v.Name)
	}
	slices.Sort(found)
	return found
}

func namesOf(left []docker.Leftover) []string {
	var names []string
	for _, l := range left {
		names = append(names, string(l.Kind)+" "+l.Name)
	}
	slices.Sort(names)
	return names
}

// ownerLabel returns the owner label of a running process, and a function that returns
// the label with one field changed.
func ownerLabel(t *testing.T, m *engineObjects, p *process) (label string, other func(field string, value any) string) {
	t.Helper()
	c, err := m.cli.ContainerInspect(t.Context(), p.container)
	require.NoError(t, err)
	label = c.Config.Labels["mini.owner"]
	return label, func(field string, value any) string {
		var o map[string]any
		require.NoError(t, json.Unmarshal([]byte(label), &o))
		o[field] = value
		b, err := json.Marshal(o)
		require.NoError(t, err)
		return string(b)
	}
}

// sweepOwners: Sweep removes what belongs to dead owners only.
func sweepOwners(t *testing.T, d *dockertest.Daemon, p *process) {
	e, m := d.Engine(docker.EngineConfig{}), newEngineObjects(t, d)
	label, other := ownerLabel(t, m, p)
	later, earlier := time.Now().Add(time.Hour).Format(time.RFC3339), time.Now().Add(-time.Hour).Format(time.RFC3339)
	labels := func(owner, expires string) map[string]string {
		return map[string]string{"mini.owner": owner, "mini.expires": expires, "mini.instance": "a__b-1", "mini.run": "r"}
	}
	of := func(uid int, labels map[string]string) map[string]string {
		labels["mini.uid"] = strconv.Itoa(uid)
		return labels
	}
	owned := m.createBoth(labels(label, earlier))
	unknown := slices.Concat(
		m.createBoth(labels(other("space", "pid:[1]"), later)),
		m.createBoth(labels(other("boot", "x"), later)),
		m.createBoth(of(os.Getuid(), labels(other("space", ""), later))),
	)
	keep := map[string][]string{
		"living owner":             owned,
		"other host":               m.createBoth(labels(other("host", "0123456789abcdef"), earlier)),
		"owner may live":           unknown,
		"of another user, perhaps": m.createBoth(of(os.Getuid()+1, labels(other("space", "pid:[1]"), later))),
		"label that means nothing": m.createBoth(labels("me", earlier)),
		"only its name is like it": m.createBoth(nil),
		"another label":            m.createBoth(map[string]string{"mini.instance": "a__b-1", "minimal.owner": label}),
		"running":                  {"container " + p.container},
	}
	sweep := map[string][]string{
		"process id used again":    m.createBoth(labels(other("start", "1"), later)),
		"other boot, expired":      m.createBoth(labels(other("boot", "x"), earlier)),
		"no such process":          m.createBoth(labels(other("pid", 1<<30), later)),
		"other namespace, expired": m.createBoth(labels(other("space", "pid:[1]"), earlier)),
	}
	want := slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Values(sweep))...)))
	stays := slices.Concat(slices.Collect(maps.Values(keep))...)

	planned, err := e.ListLeftovers(t.Context(), docker.CleanOptions{})
	if err != nil || !slices.Equal(namesOf(planned), want) {
		t.Errorf("would be removed: %q, %v; want %q", namesOf(planned), err, want)
	}
	removed, err := e.Sweep(t.Context())
	if err != nil || !slices.Equal(namesOf(removed), want) {
		t.Errorf("said to be removed: %q, %v; want %q", namesOf(removed), err, want)
	}
	for _, l := range removed {
		if s := l.String(); !strings.Contains(s, "instance a__b-1") || !strings.Contains(s, "run r") || !strings.Contains(s, "process ") || !strings.Contains(s, " old") {
			t.Errorf("%q lacks the instance, the run, the owner or the age", s)
		}
	}
	existing := m.list()
	for _, name := range stays {
		if !slices.Contains(existing, name) {
			t.Errorf("%s was removed", name)
		}
	}
	for _, name := range want {
		if slices.Contains(existing, name) {
			t.Errorf("%s was not removed", name)
		}
	}
	p.kill()
	if removed, err = e.Sweep(t.Context()); err != nil {
		t.Error(err)
	}
	for _, name := range owned {
		if !slices.Contains(namesOf(removed), name) {
			t.Errorf("after the death of its owner, %s was not removed; removed were %q", name, namesOf(removed))
		}
	}
	// Clean with IncludeUnknown also removes objects whose owner may be running, except those
	// of other users.
	slices.Sort(unknown)
	removed, err = e.Clean(t.Context(), docker.CleanOptions{IncludeUnknown: true})
	if err != nil || !slices.Equal(namesOf(removed), unknown) {
		t.Errorf("of unknown owners, removed %q, %v; want %q", namesOf(removed), err, unknown)
	}
	for _, l := range removed {
		if s := l.String(); !l.OwnerUnknown || !strings.Contains(s, ", which may still run") || strings.Contains(s, "gone") {
			t.Errorf("%q does not say that its owner may run", s)
		}
	}
}

// sweepInUse: Sweep does not remove a volume that is in use. It removes containers
// first, because they use volumes.
func sweepInUse(t *testing.T, d *dockertest.Daemon, p *process) {
	e, m := d.Engine(docker.EngineConfig{}), newEngineObjects(t, d)
	_, other := ownerLabel(t, m, p)
	dead := map[string]string{"mini.owner": other("pid", 1<<30)}
	createUser := func(name string, volume string, labels map[string]string) {
		_, err := m.cli.ContainerCreate(t.Context(), &container.Config{Image: dockertest.SmallImage, Cmd: []string{"true"}, Labels: labels},
			&container.HostConfig{Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: volume, Target: "/v"}}}, nil, nil, name)
		require.NoError(t, err)
	}
	m.volume("of-the-user", dead)
	createUser("users-own", "of-the-user", nil)
	m.volume("of-the-dead", dead)
	createUser("dead-too", "of-the-dead", dead)
	removed, err := e.Sweep(t.Context())
	if want := []string{"container dead-too", "volume of-the-dead"}; err != nil || !slices.Equal(namesOf(removed), want) {
		t.Errorf("removed %q, %v; want %q", namesOf(removed), err, want)
	}
	err = errors.Join(m.cli.ContainerRemove(t.Context(), "users-own", container.RemoveOptions{}), m.cli.VolumeRemove(t.Context(), "of-the-user", false))
	if err != nil {
		t.Error(err)
	}
}

// concurrentSweeps: two concurrent sweeps remove all leftovers, and each is in the
// result of the sweep that removed it.
func concurrentSweeps(t *testing.T, d *dockertest.Daemon, p *process) {
	const leftovers = 30
	first, second, m := d.Engine(docker.EngineConfig{}), d.Engine(docker.EngineConfig{}), newEngineObjects(t, d)
	_, other := ownerLabel(t, m, p)
	dead := map[string]string{"mini.owner": other("pid", 1<<30)}
	var makers errgroup.Group
	makers.SetLimit(4)
	for i := range leftovers {
		makers.Go(func() error {
			_, err := m.cli.ContainerCreate(t.Context(), &container.Config{Image: dockertest.SmallImage, Cmd: []string{"true"}, Labels: dead}, nil, nil, nil, fmt.Sprintf("left-%d", i))
			return err
		})
	}
	require.NoError(t, makers.Wait())
	var g errgroup.Group
	lists := make([][]docker.Leftover, 2)
	for i, e := range []*docker.Engine{first, second} {
		g.Go(func() (err error) {
			lists[i], err = e.Sweep(t.Context())
			return err
		})
	}
	assert.NoError(t, g.Wait())
	// Sometimes the engine reports the same removal to both.
	assert.Equal(t, leftovers, len(slices.Compact(namesOf(slices.Concat(lists...)))), "said to be removed")
	for _, name := range m.list() {
		if strings.HasPrefix(name, "container left-") {
			t.Errorf("%s is still there", name)
		}
	}
}
