package docker

import "testing"

func TestConfined(t *testing.T) {
	for name, tt := range map[string]struct {
		options []string
		want    bool
	}{
		"nothing":     {nil, false},
		"filters":     {[]string{"name=seccomp,profile=default", "name=cgroupns"}, false},
		"AppArmor":    {[]string{"name=apparmor", "name=seccomp,profile=builtin"}, true},
		"SELinux":     {[]string{"name=seccomp,profile=default", "name=selinux"}, true},
		"user spaces": {[]string{"name=userns"}, true},
		"rootless":    {[]string{"name=seccomp,profile=default", "name=rootless"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isConfined(tt.options); got != tt.want {
				t.Errorf("confined is %v", got)
			}
		})
	}
}

func TestIsolationWarningWithoutMount(t *testing.T) {
	e := &Engine{} // no request is sent
	if warning, err := e.IsolationWarning(t.Context(), Config{CapAdd: []string{"KILL"}}); warning != "" || err != nil {
		t.Errorf("%q, %v", warning, err)
	}
}
