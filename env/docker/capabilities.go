package docker

import (
	"slices"
	"strings"
)

// defaultCapAdd is what is left of root's powers: enough to install packages,
// change owners and users, and for the helper to kill processes of any user.
var defaultCapAdd = []string{"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETUID", "SETGID", "SETFCAP", "KILL"}

// What a capability that is refused would let commands do.
const (
	forge   = "forge their own results"
	kernels = "change or read the kernel of the machine"
	files   = "read files of the machine"
	machine = "disturb the machine as a whole"
)

// forging are the capabilities that reach into another process in spite of its
// not being dumpable, or around it, and those that reach out of the sandbox.
var forging = map[string]string{
	"ALL": forge, "SYS_PTRACE": forge, "PERFMON": forge, "SYS_ADMIN": forge, "CHECKPOINT_RESTORE": forge,
	"SYS_MODULE": kernels, "SYS_RAWIO": kernels, "BPF": kernels, "SYSLOG": kernels, "MAC_ADMIN": kernels, "MAC_OVERRIDE": kernels,
	"DAC_READ_SEARCH": files, // by handles, which know no roots
	"SYS_BOOT":        machine, "SYS_TIME": machine, "AUDIT_CONTROL": machine,
}

// capabilities are those of Linux 5.9 and later. Engines refuse other names
// only when a container is made.
var capabilities = strings.Fields(`
	AUDIT_CONTROL AUDIT_READ AUDIT_WRITE BLOCK_SUSPEND BPF CHECKPOINT_RESTORE CHOWN DAC_OVERRIDE DAC_READ_SEARCH
	FOWNER FSETID IPC_LOCK IPC_OWNER KILL LEASE LINUX_IMMUTABLE MAC_ADMIN MAC_OVERRIDE MKNOD NET_ADMIN
	NET_BIND_SERVICE NET_BROADCAST NET_RAW PERFMON SETFCAP SETGID SETPCAP SETUID SYSLOG SYS_ADMIN SYS_BOOT
	SYS_CHROOT SYS_MODULE SYS_NICE SYS_PACCT SYS_PTRACE SYS_RAWIO SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG WAKE_ALARM`)

// capability is the engine's plain form of a capability's name.
func capability(name string) string {
	return strings.TrimPrefix(strings.ToUpper(name), "CAP_")
}

func (c Config) validateCapabilities(m *mistakes) {
	for _, list := range []struct {
		key   string
		names []string
	}{{"cap_add", c.CapAdd}, {"cap_drop", c.CapDrop}} {
		for _, name := range list.names {
			if plain := capability(name); plain != "ALL" && !slices.Contains(capabilities, plain) {
				m.add(list.key, "there is no capability %.40q; capabilities(7) lists them, as NET_RAW", name)
			}
		}
	}
	for _, name := range c.CapAdd {
		if why := forging[capability(name)]; why != "" && !c.Force {
			m.add("cap_add", "%s lets commands %s; set environment.unsafe to accept that", capability(name), why)
		}
	}
}

// canKill says that the helper can end what a command starts as another user.
// What is named wins over ALL, and what is added over what is dropped; with
// neither, engines give it.
func (c Config) canKill() bool {
	switch {
	case lists(c.CapAdd, "KILL"):
		return true
	case lists(c.CapDrop, "KILL"):
		return false
	}
	return lists(c.CapAdd, "ALL") || !lists(c.CapDrop, "ALL")
}

// lists says that a capability is in a list, however it is written there.
func lists(list []string, name string) bool {
	return slices.ContainsFunc(list, func(s string) bool { return capability(s) == name })
}

// canMount says that commands can change how things are mounted: SYS_ADMIN is
// all that takes. What is mounted read-only is then theirs to write, on the
// engine's disk, and is seen by every other container that has it.
func (c Config) canMount() bool {
	return lists(c.CapAdd, "SYS_ADMIN") || lists(c.CapAdd, "ALL") && !lists(c.CapDrop, "SYS_ADMIN")
}
