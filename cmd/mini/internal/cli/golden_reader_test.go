package cli_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/cmd/mini/internal/cli"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
)

// goldenWork is the input of the program mini-golden-runs.
type goldenWork struct {
	Runs []string // that mini view shows
	Jobs []goldenJob
	Out  string // folder for the outputs
}

// goldenJob makes an output: that of commands, a page of mini view with the pages below
// it, and the files of a folder that the commands make.
type goldenJob struct {
	Subject string // a run, a session, or "all"
	Name    string
	// Copy is a run that is copied to Folder before, without the derived files.
	Copy     string
	Commands [][]string
	Page     string
	Folder   string
	Files    string // matches the names of those files of Folder that are part of the output
}

// derivedFiles matches the files of a run that follow from its journals and verdicts.
const derivedFiles = `(^|/)results\.json$|(^|/)preds\.json$|\.traj\.json$`

// key names the output in the golden file.
func (j goldenJob) key() string { return j.Subject + "  " + j.Name }

// file is the name of the output's file.
func (j goldenJob) file() string { return strings.NewReplacer("/", "_", " ", "_").Replace(j.key()) }

// goldenReader is the main function of mini-golden-runs. It runs all commands in one
// process, because there are too many to start a process for each.
func goldenReader() {
	var work goldenWork
	err := json.NewDecoder(os.Stdin).Decode(&work)
	if err == nil {
		err = work.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (work *goldenWork) run() error {
	v, err := startViewer(work.Runs)
	if err != nil {
		return err
	}
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for _, j := range work.Jobs {
		g.Go(func() error {
			var b bytes.Buffer
			if err := j.run(&b, v); err != nil {
				return fmt.Errorf("%s: %w", j.key(), err)
			}
			return os.WriteFile(filepath.Join(work.Out, j.file()), b.Bytes(), 0o600)
		})
	}
	return g.Wait()
}

func (j goldenJob) run(w io.Writer, v *viewer) error {
	if j.Copy != "" {
		if err := copyJournals(j.Copy, j.Folder); err != nil {
			return err
		}
	}
	for _, args := range j.Commands {
		_, _ = fmt.Fprintf(w, "$ mini %s\n", strings.Join(args, " "))
		code := cli.Main(args, cmdutil.Streams{In: strings.NewReader(""), Out: w, Err: w})
		_, _ = fmt.Fprintf(w, "exit code %d\n", code)
	}
	if j.Page != "" {
		return v.crawl(w, j.Page)
	}
	if _, err := os.Stat(j.Folder); os.IsNotExist(err) {
		return nil // there is none, or the command has failed
	}
	files := regexp.MustCompile(j.Files)
	return eachFile(j.Folder, func(path string) error {
		if !files.MatchString(path) {
			return nil
		}
		data, err := os.ReadFile(path)
		_, _ = fmt.Fprintf(w, "=== %s\n%s\n", path, data)
		return err
	})
}

// copyJournals copies a run, without the derived files.
func copyJournals(from, to string) error {
	derived := regexp.MustCompile(derivedFiles)
	return eachFile(from, func(path string) error {
		if derived.MatchString(path) {
			return nil
		}
		data, err := os.ReadFile(path)
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		if err == nil {
			err = os.MkdirAll(filepath.Dir(target), 0o700)
		}
		if err == nil {
			err = os.WriteFile(target, data, 0o600)
		}
		return err
	})
}

// eachFile calls f for the files below a folder.
func eachFile(dir string, f func(path string) error) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return f(path)
	})
}

// viewer is a client of mini view.
type viewer struct {
	http    *http.Client
	address string
}

var viewerAddress = regexp.MustCompile(`(http://[0-9.:]+)(/\?token=\w+)`)

// startViewer starts mini view, which runs until the process ends.
func startViewer(runs []string) (*viewer, error) {
	r, w := io.Pipe()
	args := append([]string{"view", "--port", "0"}, runs...)
	go cli.Main(args, cmdutil.Streams{In: strings.NewReader(""), Out: io.Discard, Err: w})
	first, _ := bufio.NewReader(r).ReadString('\n')
	m := viewerAddress.FindStringSubmatch(first)
	if m == nil {
		return nil, errors.New("mini view printed no address: " + first)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	v := &viewer{&http.Client{Jar: jar}, m[1]}
	_, err = v.get(m[2]) // sets the cookie
	return v, err
}

func (v *viewer) get(path string) ([]byte, error) {
	resp, err := v.http.Get(v.address + path)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

var (
	viewerLink = regexp.MustCompile(`href="([^"?#]+)`)
	formToken  = regexp.MustCompile(`(name="form" value=")[A-Z0-9]+`)
)

// crawl writes a page and, if its path ends with a slash, the pages below it. The page "/" has none.
func (v *viewer) crawl(w io.Writer, start string) error {
	pages := []string{start}
	for i := 0; i < len(pages); i++ {
		content, err := v.get(pages[i])
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(w, "=== %s\n%s\n", pages[i], formToken.ReplaceAll(content, []byte("${1}TOKEN")))
		base, err := url.Parse(pages[i])
		if err != nil {
			return err
		}
		for _, m := range viewerLink.FindAllSubmatch(content, -1) {
			target, err := base.Parse(html.UnescapeString(string(m[1])))
			if err != nil {
				return err
			}
			if link := target.EscapedPath(); start != "/" && strings.HasPrefix(link, start) && !slices.Contains(pages, link) {
				pages = append(pages, link)
			}
		}
	}
	return nil
}
