package docker_test

import (
	"strings"
	"testing"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
)

// A container of root runs commands as other users, also with set-uid programs disabled.
func TestCommandUser(t *testing.T) {
	e := dockertest.Engine(t)
	sandbox, err := e.Start(t.Context(), docker.Config{Image: dockertest.Image(t), User: "0:0", Env: map[string]string{"SHARED": "yes"}})
	if err != nil {
		t.Fatal(err)
	}
	defer sandbox.Close(t.Context())
	run := func(user, script string) env.Result {
		t.Helper()
		res, err := sandbox.Execute(t.Context(), env.Command{Script: script, User: user})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	if res := run("", "groupadd -g 77 team && useradd -m -u 1234 -G team app && id -u"); res.ExitCode != 0 || string(res.Output) != "0\n" {
		t.Fatalf("%s", res.Output)
	}
	for _, tt := range []struct{ user, want string }{
		{"", "0 0 0 /root yes"},
		{"app", "1234 1234 1234 77 /home/app yes"},
		{"1234", "1234 1234 1234 77 /home/app yes"},
		{"app:team", "1234 77 77 /home/app yes"},
		{"app:5", "1234 5 5 /home/app yes"},
		{"4321", "4321 0 0 /root yes"},
	} {
		if res := run(tt.user, `echo $(id -u) $(id -g) $(id -G) $HOME $SHARED > /dev/stdout`); strings.TrimSpace(string(res.Output)) != tt.want {
			t.Errorf("%q: %q, want %q", tt.user, res.Output, tt.want)
		}
	}
	if res := run("app", "touch /root/x || cat /etc/shadow || kill -KILL 1"); res.ExitCode == 0 {
		t.Errorf("a user has the rights of root: %s", res.Output)
	}
	for _, unknown := range []string{"nobody-here", "app:nothing", "0x1"} {
		if res := run(unknown, "true"); !strings.Contains(res.Failure, unknown) {
			t.Errorf("%q: %+v", unknown, res)
		}
	}
	// A command may replace the file by a pipe, which must not block the helper.
	if res := run("", "mv /etc/passwd /etc/old && mkfifo /etc/passwd"); res.ExitCode != 0 {
		t.Fatalf("%s", res.Output)
	}
	if res := run("app", "true"); res.Failure == "" {
		t.Error("a user was found in a pipe")
	}
}
