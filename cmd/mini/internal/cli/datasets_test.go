package cli_test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// TestDatasetScripts runs the scripts about datasets.
func TestDatasetScripts(t *testing.T) {
	scripts(t, "testdata/hub", map[string]string{
		"HF_ENDPOINT": newTestHub(t, "image:1").URL, "CLOSED": "http://" + closedAddress,
		"XDG_CACHE_HOME": "", "HF_TOKEN": "", "HF_HUB_OFFLINE": "", "HF_HUB_CACHE": "", "HF_HOME": "",
	})
}

// TestFetchInterrupted interrupts a download after it has begun.
func TestFetchInterrupted(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home, bin := t.TempDir(), t.TempDir()
	if err := os.Symlink(self, bin+"/mini"); err != nil {
		t.Fatal(err)
	}
	server := newTestHub(t, "image:1")
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), bin+"/mini", "datasets", "fetch", "verified")
	cmd.Env = []string{"HOME=" + home, "HF_ENDPOINT=" + server.URL, noRaceSleep}
	cmd.Stdout, cmd.Stderr = &out, &out
	var once sync.Once
	begun, ended := make(chan struct{}), make(chan struct{})
	server.Throttle(100, func(int64) {
		once.Do(func() { close(begun) })
		<-ended
	})
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		err = cmd.Wait()
		close(ended)
	}()
	select {
	case <-begun:
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		<-ended
	case <-ended:
	}
	if cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("%v, want exit status 130", err)
	}
	want := "mini: fetch verified: Interrupted; run the same command to continue\n"
	if !strings.HasSuffix(out.String(), "\n"+want) {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}
