package docker_test

import (
	"strings"
	"testing"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
)

func TestValidate(t *testing.T) {
	const gib = 1 << 30
	for name, tt := range map[string]struct {
		config docker.Config
		want   string // in the error; empty means valid
	}{
		"plain":      {docker.Config{}, ""},
		"everything": {docker.Config{Platform: "linux/arm64/v8", Dir: "/w", CPUs: 0.5, MemoryBytes: -1, PIDs: -1, CapAdd: []string{"NET_RAW"}}, ""},
		"all of isolation": {docker.Config{
			User: "1000:1000", Network: "container:web-1", Runtime: "runsc", ReadOnly: true, ShmBytes: gib, MemoryBytes: 4 * gib,
			Tmpfs: map[string]int64{"/run": 1 << 20}, Ulimits: []docker.Ulimit{{"nofile", 1024, 4096}, {"core", 0, 0}, {"stack", -1, -1}},
			Mounts: []docker.Mount{{Source: "/srv/data", Target: "/data"}, {Source: `C:\data`, Target: "/more", ReadWrite: true}},
		}, ""},

		"platform":        {docker.Config{Platform: "arm64"}, `platform: "arm64" is not of the form linux/amd64`},
		"relative dir":    {docker.Config{Dir: "w"}, `cwd: "w" is not absolute`},
		"variable":        {docker.Config{Env: map[string]string{"A=B": ""}}, `env: "A=B"`},
		"NUL in a value":  {docker.Config{Env: map[string]string{"A": "\x00"}}, `env: "A"`},
		"user":            {docker.Config{User: "a b"}, `user: "a b" is not a user; write "name", "1000"`},
		"user, an option": {docker.Config{User: "-x"}, "user"},
		"no shell":        {docker.Config{Interpreter: []string{""}}, "interpreter"},
		"network":         {docker.Config{Network: "a b"}, `network: "a b" is not a network; write "none", "bridge"`},
		"no container":    {docker.Config{Network: "container:"}, "network"},
		"runtime":         {docker.Config{Runtime: "run sc"}, "runtime"},
		"timeout":         {docker.Config{Timeout: -1}, "timeout"},

		"little memory": {docker.Config{MemoryBytes: 1 << 20}, "memory: 1MiB is less than the 16MiB"},
		"cpus":          {docker.Config{CPUs: -1}, "cpus: -1 is not"},
		"hardly a cpu":  {docker.Config{CPUs: 0.001}, "cpus: 0.001"},
		"few pids":      {docker.Config{PIDs: 3}, "pids_limit: 3 is less than the 16"},
		"shm":           {docker.Config{ShmBytes: -1}, "shm_size: -1 is negative"},
		"all in shm":    {docker.Config{MemoryBytes: gib, ShmBytes: gib}, "shm_size: 1GiB, /dev/shm included, is not less than memory (1GiB)"},
		"all in tmpfs":  {docker.Config{MemoryBytes: gib, Tmpfs: map[string]int64{"/a": gib / 2, "/b": gib / 2}}, "tmpfs: 1.062GiB"},
		"unbounded":     {docker.Config{MemoryBytes: -1, ShmBytes: 100 * gib}, ""},
		// Default sizes are reduced if the memory limit is small.
		"small and plain": {docker.Config{MemoryBytes: 32 << 20, ReadOnly: true}, ""},

		"nproc":              {docker.Config{Ulimits: []docker.Ulimit{{"nproc", 9, 9}}}, "ulimits.nproc: it counts the processes of a user in all containers"},
		"no such limit":      {docker.Config{Ulimits: []docker.Ulimit{{"files", 9, 9}}}, `ulimits: unknown limit "files"; the limits are core,`},
		"soft above hard":    {docker.Config{Ulimits: []docker.Ulimit{{"nofile", 9, 8}}}, "ulimits.nofile: the soft limit 9 is above the hard one, 8"},
		"soft without bound": {docker.Config{Ulimits: []docker.Ulimit{{"nofile", -1, 8}}}, "ulimits.nofile"},
		"negative limit":     {docker.Config{Ulimits: []docker.Ulimit{{"nofile", -2, -1}}}, "ulimits.nofile"},

		"tracing":           {docker.Config{CapAdd: []string{"SYS_PTRACE"}}, "cap_add: SYS_PTRACE lets commands forge"},
		"tracing, as Cap_":  {docker.Config{CapAdd: []string{"cap_sys_ptrace"}}, "forge"},
		"every capability":  {docker.Config{CapAdd: []string{"all"}}, "forge"},
		"kernel modules":    {docker.Config{CapAdd: []string{"SYS_MODULE"}}, "cap_add: SYS_MODULE lets commands change or read the kernel"},
		"ports":             {docker.Config{CapAdd: []string{"SYS_RAWIO"}}, "the kernel of the machine"},
		"programs in it":    {docker.Config{CapAdd: []string{"BPF"}}, "the kernel of the machine"},
		"rules of access":   {docker.Config{CapAdd: []string{"MAC_ADMIN"}}, "the kernel of the machine"},
		"file handles":      {docker.Config{CapAdd: []string{"CAP_DAC_READ_SEARCH"}}, "cap_add: DAC_READ_SEARCH lets commands read files of the machine"},
		"restoring":         {docker.Config{CapAdd: []string{"CHECKPOINT_RESTORE"}}, "forge"},
		"reboot":            {docker.Config{CapAdd: []string{"SYS_BOOT"}}, "cap_add: SYS_BOOT lets commands disturb the machine"},
		"modules by force":  {docker.Config{CapAdd: []string{"SYS_MODULE"}, AllowUnsafe: true}, ""},
		"dropped":           {docker.Config{CapDrop: []string{"SYS_MODULE", "SYS_BOOT"}}, ""},
		"tracing by force":  {docker.Config{CapAdd: []string{"SYS_PTRACE"}, AllowUnsafe: true}, ""},
		"no such to add":    {docker.Config{CapAdd: []string{"NET_ROW"}}, `cap_add: unknown capability "NET_ROW"`},
		"no such to drop":   {docker.Config{CapDrop: []string{"KILLS"}}, `cap_drop: unknown capability "KILLS"`},
		"as Docker has it":  {docker.Config{CapDrop: []string{"CAP_KILL"}, CapAdd: []string{}}, ""},
		"several, in order": {docker.Config{Dir: "w", CPUs: -1, CapAdd: []string{"x"}}, "cwd: \"w\" is not absolute; start it with /\ncpus: -1 is not a number of processors; use at least 0.01, or 0 for no limit\ncap_add"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.config.Image = "a"
			checkValidate(t, tt.config, tt.want)
		})
	}
	checkValidate(t, docker.Config{}, "image: it is missing")
}

func TestValidateMounts(t *testing.T) {
	tmpfs := func(target string, size int64) docker.Config {
		return docker.Config{Tmpfs: map[string]int64{target: size}}
	}
	mount := func(source, target string) docker.Config {
		return docker.Config{Mounts: []docker.Mount{{Source: source, Target: target}}}
	}
	forced := mount("/var/run/docker.sock", "/s")
	forced.AllowUnsafe = true
	const taken, socket, kernel = "cannot be replaced", "gives commands access to the engine's socket", "access to the machine's kernel"
	for name, tt := range map[string]struct {
		config docker.Config
		want   string
	}{
		"tmpfs":               {tmpfs("/tmp", 1), ""},
		"no size":             {tmpfs("/tmp", 0), `tmpfs: "/tmp" has no size; write {/tmp: 64m}`},
		"relative tmpfs":      {tmpfs("tmp", 1), `tmpfs: "tmp" is not a valid target`},
		"tmpfs, not clean":    {tmpfs("/tmp/../proc", 1), "without . and .."},
		"tmpfs, an option":    {tmpfs("/tmp:suid", 1), "not a valid target"},
		"tmpfs at the root":   {tmpfs("/", 1), taken},
		"tmpfs at /proc":      {tmpfs("/proc", 1), taken},
		"tmpfs in /sys":       {tmpfs("/sys/fs", 1), taken},
		"tmpfs at the helper": {tmpfs("/.mini", 1), taken},
		"tmpfs beside it":     {tmpfs("/.mini2", 1), ""},
		"tmpfs at /dev/shm":   {tmpfs("/dev/shm", 1), "set shm_size"},

		"mount":               {mount("/srv", "/srv"), ""},
		"relative source":     {mount("srv", "/srv"), `mounts: "srv" is not an absolute path`},
		"relative target":     {mount("/srv", "srv"), `mounts: "srv" is not a valid target`},
		"mount at the root":   {mount("/srv", "/"), taken},
		"mount at the helper": {mount("/srv", "/.mini/h"), taken},
		"at its meeting":      {mount("/srv", "/.mini-meeting"), taken},
		"mount at /dev":       {mount("/srv", "/dev/x"), taken},
		"twice": {docker.Config{
			Tmpfs: map[string]int64{"/a": 1}, Mounts: []docker.Mount{{Source: "/srv", Target: "/a"}},
		}, `mounts: "/a" is used twice`},

		"the engine's socket": {mount("/var/run/docker.sock", "/s"), socket},
		"podman's":            {mount("/run/podman/podman.sock", "/s"), socket},
		"a user's":            {mount("/run/user/1000/docker.sock", "/s"), socket},
		"a user's, podman's":  {mount("/run/user/1000/podman/podman.sock", "/s"), socket},
		"a user's folder":     {mount("/run/user/1000", "/s"), socket},
		"podman's folder":     {mount("/var/run/user/1000/podman/", "/s"), socket},
		"users' folders":      {mount("/run/user", "/s"), socket},
		"beside a user's":     {mount("/run/user/1000/cache", "/s"), ""},
		"work in a home":      {mount("/home/u/work", "/s"), ""},
		"a folder above it":   {mount("/run", "/s"), socket},
		"in another spelling": {mount("/srv/../run/", "/s"), socket},
		"the machine":         {mount("/", "/s"), socket},
		"by force":            {forced, ""},
		"the machine's /proc": {mount("/proc", "/s"), kernel},
		"a part of /sys":      {mount("/sys/fs/cgroup", "/s"), kernel},
		"a disk":              {mount("/dev/sda", "/s"), kernel},
	} {
		t.Run(name, func(t *testing.T) {
			tt.config.Image = "a"
			checkValidate(t, tt.config, tt.want)
		})
	}
}

// checkValidate compares the error of Validate with the wanted text. Each error must
// have a key.
func checkValidate(t *testing.T, c docker.Config, want string) {
	t.Helper()
	err := c.Validate()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("err = %v, want one with %q", err, want)
	}
	if err == nil {
		return
	}
	found := env.ConfigErrors(err)
	if lines := strings.Split(err.Error(), "\n"); len(found) != len(lines) {
		t.Errorf("%d errors in %q", len(found), lines)
	}
	for _, m := range found {
		if m.Key == "" || m.Text == "" || strings.Contains(m.Text, "\n") {
			t.Errorf("%+v", m)
		}
	}
}

func TestWarnings(t *testing.T) {
	for name, tt := range map[string]struct {
		config docker.Config
		want   string // in the only warning; empty means none
	}{
		"plain":        {docker.Config{Dir: "/testbed"}, ""},
		"host network": {docker.Config{Network: "host"}, "network: with host, commands reach every service"},
		"shared":       {docker.Config{Network: "container:a"}, "network: commands share the network of container:a"},
		"half in shm":  {docker.Config{MemoryBytes: 1 << 30, ShmBytes: 600 << 20}, "may use 600MiB of the 1GiB memory"},
		"hidden":       {docker.Config{Dir: "/testbed", Tmpfs: map[string]int64{"/testbed": 1 << 20}}, "tmpfs: /testbed starts empty"},
		"hidden above": {docker.Config{Dir: "/w/repo", Tmpfs: map[string]int64{"/w": 1 << 20}}, "hides the image's files in /w/repo"},
		"beside it":    {docker.Config{Dir: "/work", Tmpfs: map[string]int64{"/w": 1 << 20}}, ""},
		"read-only":    {docker.Config{Dir: "/testbed", ReadOnly: true}, "read_only: commands cannot change files in /testbed"},
		"read-only, over a mount": {docker.Config{
			Dir: "/testbed", ReadOnly: true, Mounts: []docker.Mount{{Source: "/srv", Target: "/testbed"}},
		}, "read_only: commands cannot change"},
		"read-only, over a writable one": {docker.Config{
			Dir: "/testbed/a", ReadOnly: true, Mounts: []docker.Mount{{Source: "/srv", Target: "/testbed", ReadWrite: true}},
		}, ""},
		"gVisor":         {docker.Config{Runtime: "runsc-kvm"}, "runtime: some releases of runsc-kvm"},
		"without KILL":   {docker.Config{CapAdd: []string{"CHOWN"}}, "cap_add: without KILL"},
		"KILL dropped":   {docker.Config{CapDrop: []string{"cap_kill"}, CapAdd: []string{}}, "cap_add: without KILL"},
		"nothing at all": {docker.Config{CapDrop: []string{}, CapAdd: []string{}}, ""},
		"mounts that are not held": {docker.Config{
			CapAdd: []string{"KILL", "cap_sys_admin"}, AllowUnsafe: true, Mounts: []docker.Mount{{Source: "/srv", Target: "/a"}},
		}, "cap_add: with SYS_ADMIN, commands can make read-only mounts writable"},
		"mounts that ALL does not hold": {docker.Config{
			CapAdd: []string{"all"}, AllowUnsafe: true, Mounts: []docker.Mount{{Source: "/srv", Target: "/a"}},
		}, "cap_add: with SYS_ADMIN"},
		"ALL but SYS_ADMIN": {docker.Config{
			CapAdd: []string{"ALL"}, CapDrop: []string{"SYS_ADMIN"}, AllowUnsafe: true, Mounts: []docker.Mount{{Source: "/srv", Target: "/a"}},
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tt.config.Image = "a"
			checkValidate(t, tt.config, "")
			got := tt.config.Warnings()
			if tt.want == "" && len(got) > 0 || tt.want != "" && (len(got) != 1 || !strings.Contains(got[0], tt.want)) {
				t.Errorf("warnings %q, want one with %q", got, tt.want)
			}
		})
	}
}
