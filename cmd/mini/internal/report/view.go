package report

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/convert"
	"github.com/minibench/mini/cmd/mini/internal/rows"
	"github.com/minibench/mini/cmd/mini/internal/web"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env/scratch"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/trajectories/formats"
)

// defaultPort is the first port that mini view tries.
const defaultPort = 7340

// viewOptions holds the flags of mini view.
type viewOptions struct {
	host     string
	port     int
	instance string
	step     int
	stepSet  bool
}

// NewView returns the command mini view.
func NewView(a *app.App) *cobra.Command {
	o := &viewOptions{}
	cmd := &cobra.Command{
		Use:   "view [RUN | TRAJECTORY]...",
		Short: "Show runs in a web browser",
		Long: `Serves pages about runs on this machine until Ctrl-C: the runs, their instances,
every step of every attempt, and their comparison. The pages follow a run that is
still running, and change nothing but the labels and notes that you set on them.

RUN is the folder of a run or a folder that contains runs. Without arguments
mini view shows the newest run of ` + cmdutil.DefaultRunsDir + `, and the others behind it. RUN may also be a session of mini or any trajectory that mini import reads: a
file, a folder, or the number of a row of mini inspect. The pages show these as
they are now.

The address that mini view prints contains a secret word, without which
other users of this machine cannot open the pages. Other machines cannot connect:
forward the port with ssh -L, or listen on another address with --host.`,
		Example: `  mini view runs/first
  mini view runs/first runs/second
  mini view runs/first -i django__django-11099 --step 12
  mini view ~/.local/state/mini`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.stepSet = cmd.Flags().Changed("step")
			return o.run(cmd.Context(), a, args)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.port, "port", defaultPort, "listen on this `PORT`, or on the next free one; 0: any")
	f.StringVar(&o.host, "host", "127.0.0.1", "listen on this `ADDRESS`")
	f.StringVarP(&o.instance, "instance", "i", "", "print the address of the instance with this `ID`, or the only one whose id contains it")
	f.IntVar(&o.step, "step", 0, "with -i: print the address of step `N`")
	return cmd
}

func (o *viewOptions) run(ctx context.Context, a *app.App, args []string) (err error) {
	if o.port < 0 || o.port > 65535 {
		return usage.Errorf("--port %d: ports are numbers from 0 to 65535", o.port)
	}
	if o.stepSet && o.instance == "" {
		return usage.Errorf("--step is for -i, which is not given")
	}
	args, temporary, remove, err := trajectoriesAsRun(ctx, a, args)
	defer remove()
	if err != nil {
		return err
	}
	dirs, err := runFolders(args)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		newest, err := cmdutil.OneRunOrNewest(a.Err, "mini view", nil)
		if err != nil {
			return err
		}
		isNewest := func(dir string) bool { return filepath.Clean(dir) == filepath.Clean(newest) }
		if i := slices.IndexFunc(dirs, isNewest); i > 0 {
			dirs = slices.Insert(slices.Delete(dirs, i, i+1), 0, newest)
		}
	}
	find := func() ([]string, error) { return runFolders(args) }
	viewer, err := web.Open(dirs, web.Options{Rows: cachedRows(ctx), Temporary: temporary, Find: find})
	if err != nil {
		return usage.Wrap(err)
	}
	page := "/"
	if len(args) == 0 {
		page = viewer.FirstRun()
	}
	if attempt, ok := viewer.OnlyAttempt(); ok && temporary != "" {
		page = attempt
	}
	if o.instance != "" {
		step := ""
		if o.stepSet {
			step = strconv.Itoa(o.step)
		}
		if page, err = viewer.Address(o.instance, step); err != nil {
			return usage.Wrap(err)
		}
	}
	listener, err := o.listen(ctx)
	if err != nil {
		return usage.Errorf("listen on %s: %w", o.host, err)
	}
	defer listener.Close()                    //nolint:errcheck // closed by the server
	address := listener.Addr().(*net.TCPAddr) //nolint:errcheck,forcetypeassert // of the network tcp
	port := strconv.Itoa(address.Port)
	hosts := []string{"127.0.0.1:" + port, "localhost:" + port, "[::1]:" + port, address.String()}
	token := rand.Text() // other users of this machine can connect, too
	own := address.String()
	if !address.IP.IsLoopback() {
		own = net.JoinHostPort(o.host, port)
		hosts = append(hosts, own)
		if address.IP.IsUnspecified() {
			name, _ := os.Hostname()
			own = net.JoinHostPort(name, port)
			hosts = append(hosts, append(interfaceAddresses(port), own)...)
		}
	}
	page = web.AddParameter(page, "token", token)
	if o.port != 0 && address.Port != o.port {
		_, _ = fmt.Fprintf(a.Err, "mini: port %d is in use\n", o.port) // best effort
	}
	_, _ = fmt.Fprintf(a.Err, "mini: %s at http://%s%s\nmini: Ctrl-C ends it\n", text.Count(len(dirs), "run"), own, page) // best effort
	// Ctrl-C is the usual end: there is nothing to save, and it is no failure.
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if a.Interrupts != nil {
		defer a.Interrupts.Divert(stopper{ctx, stop})()
	}
	return web.NewServer(viewer, hosts, token).Serve(ctx, listener)
}

// cachedRows returns a function that reads rows of datasets, as far as they are on this machine.
func cachedRows(ctx context.Context) func([]datasets.SourceInfo, map[string]bool) map[string]datasets.Instance {
	return func(sets []datasets.SourceInfo, ids map[string]bool) map[string]datasets.Instance {
		return rows.Cached(ctx, sets, ids)
	}
}

// stopper ends the server at the first Ctrl-C.
type stopper struct {
	ctx  context.Context //nolint:containedctx // of the server
	stop context.CancelFunc
}

// Interrupt ends the server.
func (s stopper) Interrupt() { s.stop() }

// HasQuit reports whether the server has been told to end.
func (s stopper) HasQuit() bool { return s.ctx.Err() != nil }

// listen listens on the port or, if it is in use, on one of the following.
func (o *viewOptions) listen(ctx context.Context) (net.Listener, error) {
	var first error
	for port := o.port; port <= min(o.port+20, 65535); port++ {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(o.host, strconv.Itoa(port)))
		if err == nil {
			return l, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return nil, err
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// interfaceAddresses returns the addresses of this machine with a port.
func interfaceAddresses(port string) []string {
	var all []string
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok {
			all = append(all, net.JoinHostPort(n.IP.String(), port))
		}
	}
	return all
}

// trajectoriesAsRun replaces the arguments that are trajectories, or folders of trajectories without runs, by a
// temporary run with all of them, the last of the result. The caller calls remove, which is never nil.
func trajectoriesAsRun(ctx context.Context, a *app.App, args []string) (_ []string, temporary string, remove func(), err error) {
	remove = func() {}
	var kept, trajectories []string
	for _, arg := range args {
		path, err := pathOfRow(a, arg, true)
		if err != nil {
			return nil, "", remove, err
		}
		if isTrajectory(path) {
			trajectories = append(trajectories, formats.Journal(path))
		} else {
			kept = append(kept, path)
		}
	}
	if len(trajectories) == 0 {
		return kept, "", remove, nil
	}
	dir, err := scratch.New("view")
	if err != nil {
		return nil, "", remove, err
	}
	remove = func() { _ = scratch.Remove(dir) } // the next mini tries again
	run := filepath.Join(dir, "sessions")
	return append(kept, run), run, remove, convert.MakeRun(ctx, a, run, trajectories)
}

// isTrajectory reports whether path is a file, or a folder with trajectories that has no runs.
func isTrajectory(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return err == nil
	}
	if _, err := runs.Detect(path); !errors.Is(err, runs.ErrNotRunFolder) {
		return false
	}
	entries, err := os.ReadDir(path)
	if err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return len(runsIn(filepath.Join(path, e.Name()))) > 0 }) {
		return false
	}
	if _, _, isInRun := cmdutil.FindRunAbove(path); isInRun {
		return false
	}
	for f := range formats.FindFiles(path, nil) {
		if f.Err == nil {
			return true
		}
	}
	return false
}

// runFolders returns the folders of runs that the arguments name. An argument is a run or a folder
// of runs; without arguments it is the folder of mini runs.
func runFolders(args []string) ([]string, error) {
	if len(args) == 0 {
		args = []string{cmdutil.RunsDir()}
	}
	var dirs []string
	seen := map[string]bool{}
	add := func(dir string) {
		if real, err := filepath.EvalSymlinks(dir); err == nil && !seen[real] {
			seen[real] = true
			dirs = append(dirs, dir)
		}
	}
	for _, arg := range args {
		_, err := runs.Detect(arg)
		if err == nil {
			add(arg)
			continue
		}
		if !errors.Is(err, runs.ErrNotRunFolder) {
			return nil, cmdutil.RunFolderError(arg, err)
		}
		entries, readErr := os.ReadDir(arg)
		if readErr != nil {
			return nil, cmdutil.RunFolderError(arg, err)
		}
		before := len(dirs)
		for _, e := range entries {
			for _, dir := range runsIn(filepath.Join(arg, e.Name())) {
				add(dir)
			}
		}
		if len(dirs) == before {
			return nil, cmdutil.RunFolderError(arg, err)
		}
	}
	return dirs, nil
}

// runsIn returns a folder that is a run, or the runs in a folder that is a sweep.
func runsIn(dir string) []string {
	if _, err := runs.Detect(dir); err == nil {
		return []string{dir}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var found []string
	for _, e := range entries {
		sub := filepath.Join(dir, e.Name())
		if _, err := runs.Detect(sub); err == nil {
			found = append(found, sub)
		}
	}
	return found
}
