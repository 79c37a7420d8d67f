package docker

import (
	"slices"
	"strings"

	"github.com/minibench/mini/env"
)

// defaultCapAdd are the capabilities that commands have by default: enough to
// install packages, change owners and users, and let the helper kill processes
// of any user.
var defaultCapAdd = []string{"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETUID", "SETGID", "SETFCAP", "KILL"}

// What unsafe capabilities permit, for error messages: "CAPABILITY lets commands ...".
const (
	forgeResults  = "forge their own results"
	accessKernel  = "change or read the kernel of the machine"
	readHostFiles = "read files of the machine"
	disturbHost   = "disturb the machine as a whole"
)

// unsafeCapabilities maps each capability that Validate refuses without AllowUnsafe to
// what the capability permits: access to other processes although they are not
// dumpable, or to the host.
var unsafeCapabilities = map[string]string{
	"ALL": forgeResults, "SYS_PTRACE": forgeResults, "PERFMON": forgeResults,
	"SYS_ADMIN": forgeResults, "CHECKPOINT_RESTORE": forgeResults,
	"SYS_MODULE": accessKernel, "SYS_RAWIO": accessKernel, "BPF": accessKernel, "SYSLOG": accessKernel,
	"MAC_ADMIN": accessKernel, "MAC_OVERRIDE": accessKernel,
	"DAC_READ_SEARCH": readHostFiles, // open_by_handle_at(2) ignores the root directory
	"SYS_BOOT":        disturbHost, "SYS_TIME": disturbHost, "AUDIT_CONTROL": disturbHost,
}

// capabilities are the names of the capabilities of Linux 5.9 and later. The engine
// rejects other names only when it creates a container.
var capabilities = strings.Fields(`
	AUDIT_CONTROL AUDIT_READ AUDIT_WRITE BLOCK_SUSPEND BPF CHECKPOINT_RESTORE CHOWN DAC_OVERRIDE DAC_READ_SEARCH
	FOWNER FSETID IPC_LOCK IPC_OWNER KILL LEASE LINUX_IMMUTABLE MAC_ADMIN MAC_OVERRIDE MKNOD NET_ADMIN
	NET_BIND_SERVICE NET_BROADCAST NET_RAW PERFMON SETFCAP SETGID SETPCAP SETUID SYSLOG SYS_ADMIN SYS_BOOT
	SYS_CHROOT SYS_MODULE SYS_NICE SYS_PACCT SYS_PTRACE SYS_RAWIO SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG WAKE_ALARM`)

// capability returns the name in upper case and without the prefix CAP_.
func capability(name string) string {
	return strings.TrimPrefix(strings.ToUpper(name), "CAP_")
}

func (c Config) validateCapabilities(errs *env.ConfigErrorList) {
	for _, list := range []struct {
		key   string
		names []string
	}{{"cap_add", c.CapAdd}, {"cap_drop", c.CapDrop}} {
		for _, name := range list.names {
			if plain := capability(name); plain != "ALL" && !slices.Contains(capabilities, plain) {
				errs.Add(list.key, "unknown capability %.40q; capabilities(7) lists the names, for example NET_RAW", name)
			}
		}
	}
	for _, name := range c.CapAdd {
		if risk := unsafeCapabilities[capability(name)]; risk != "" && !c.AllowUnsafe {
			errs.Add("cap_add", "%s lets commands %s; set environment.unsafe to accept that", capability(name), risk)
		}
	}
}

// canKill reports whether the helper can kill processes of other users. An entry
// for KILL wins over ALL, and CapAdd wins over CapDrop; without an entry for KILL or
// ALL, engines grant KILL.
func (c Config) canKill() bool {
	switch {
	case hasCapability(c.CapAdd, "KILL"):
		return true
	case hasCapability(c.CapDrop, "KILL"):
		return false
	}
	return hasCapability(c.CapAdd, "ALL") || !hasCapability(c.CapDrop, "ALL")
}

// hasCapability reports whether the list contains the capability, in any spelling.
func hasCapability(list []string, name string) bool {
	return slices.ContainsFunc(list, func(s string) bool { return capability(s) == name })
}

// canMount reports whether commands can change mounts, which requires SYS_ADMIN. They
// can then remount a read-only volume as writable and change files that other
// containers share.
func (c Config) canMount() bool {
	return hasCapability(c.CapAdd, "SYS_ADMIN") ||
		hasCapability(c.CapAdd, "ALL") && !hasCapability(c.CapDrop, "SYS_ADMIN")
}
