package shell

// program says what mini knows of one: which of its arguments are paths, what it
// does with them, and what else it does.
type program struct {
	// operands is what it does with its operands; "" is Uses. Of text ones none
	// is a path. skip are the first that are none (a pattern, a script), unless
	// an option of instead was given.
	operands Mode
	text     bool
	skip     int
	instead  string
	// last is what it does with the last operand, where there are several.
	last Mode
	// values are short options with a value that is no path, words the long
	// ones. files maps options whose value is a path to what is done with it.
	values string
	words  []string
	files  map[string]Mode

	network, system, sudo Answer
	// quiet says that it prints names of files of the workspace where it is
	// given such (grep -l, ls, sort).
	quiet bool
	// remote are subcommands that use the network, apart those that change the
	// machine.
	remote, apart []string
}

var (
	viewer  = program{operands: Reads}
	writer  = program{operands: Writes}
	speaker = program{text: true}
	online  = program{network: Yes, text: true, files: map[string]Mode{"o": Writes, "output": Writes, "output-document": Writes, "O": Writes, "P": Writes, "directory-prefix": Writes, "T": Reads, "upload-file": Reads, "K": Reads, "config": Reads, "i": Reads}}
	machine = program{system: Yes}
	manager = program{network: Yes, system: Yes}
)

// programs are those that mini knows. Of all others any argument may be a path,
// and anything may be done with it.
var programs = table()

func table() map[string]program {
	all := map[string]program{
		"cat": viewer, "less": viewer, "more": viewer, "wc": viewer, "diff": viewer, "cmp": viewer, "comm": viewer,
		"file": viewer, "stat": viewer, "du": viewer, "df": viewer, "nl": viewer, "tac": viewer, "md5sum": viewer,
		"sha1sum": viewer, "sha256sum": viewer, "sha512sum": viewer, "cksum": viewer, "strings": viewer, "od": viewer,
		"xxd": viewer, "hexdump": viewer, "tree": viewer, "realpath": viewer, "readlink": viewer, "source": viewer,
		".": viewer, "lsof": viewer, "pushd": viewer, "fold": {operands: Reads, values: "w"}, "column": {operands: Reads, values: "sNHo"},
		"head": {operands: Reads, values: "nc", words: []string{"lines", "bytes"}, quiet: true},
		"tail": {operands: Reads, values: "nc", words: []string{"lines", "bytes"}, quiet: true},
		"ls":   {operands: Reads, values: "I", quiet: true},
		"sort": {operands: Reads, values: "kStT", words: []string{"key", "field-separator"}, files: map[string]Mode{"o": Writes, "output": Writes}, quiet: true},
		"uniq": {operands: Reads, last: Writes, values: "fsw", quiet: true},
		"cut":  {operands: Reads, values: "dfcb", words: []string{"delimiter", "fields"}},
		"tr":   speaker, "echo": speaker, "printf": speaker, "true": speaker, "false": speaker, ":": speaker, "exit": speaker,
		"return": speaker, "break": speaker, "continue": speaker, "shift": speaker, "set": speaker, "shopt": speaker, "test": speaker,
		"[": speaker, "sleep": speaker, "date": speaker, "pwd": speaker, "which": speaker, "type": speaker, "hash": speaker, "seq": {text: true, quiet: true},
		"expr": speaker, "basename": {text: true}, "dirname": speaker, "read": speaker, "export": speaker, "unset": speaker, "local": speaker,
		"wait": speaker, "jobs": speaker, "fg": speaker, "bg": speaker, "disown": speaker, "ulimit": speaker, "umask": speaker, "id": speaker,
		"whoami": speaker, "uname": speaker, "hostname": speaker, "nproc": speaker, "free": speaker, "ps": speaker, "uptime": speaker,
		"printenv": speaker, "env": speaker, "let": speaker, "getopts": speaker, "mapfile": speaker, "readarray": speaker, "declare": speaker,
		"command": speaker, "builtin": speaker, "exec": speaker, "alias": speaker, "unalias": speaker, "trap": speaker, "times": speaker,
		"history": speaker, "yes": speaker, "bc": viewer, "kill": speaker, "tput": speaker, "clear": speaker, "man": speaker, "help": speaker,
		"cd": speaker, "popd": speaker, "dirs": speaker, "eval": speaker, "compgen": speaker, "complete": speaker, "bind": speaker, "logger": speaker,

		"grep": grep(true), "egrep": grep(true), "fgrep": grep(true), "zgrep": grep(false),
		"rg":    {operands: Reads, skip: 1, instead: "e f regexp file files", values: "egtTABCmMjEr", words: []string{"regexp", "glob", "type", "type-not", "after-context", "before-context", "context", "max-count", "replace", "sort", "iglob"}, files: map[string]Mode{"f": Reads, "file": Reads, "ignore-file": Reads}, quiet: true},
		"ag":    {operands: Reads, skip: 1, values: "ABCGm"},
		"ack":   {operands: Reads, skip: 1, values: "ABCm"},
		"fd":    {operands: Reads, skip: 1, values: "edtEsSj", words: []string{"extension", "max-depth", "type", "exclude"}, quiet: true},
		"sed":   {operands: Reads, skip: 1, instead: "e f expression file", values: "el", words: []string{"expression", "line-length"}, files: map[string]Mode{"f": Reads, "file": Reads}},
		"awk":   {operands: Reads, skip: 1, instead: "f file", values: "Fv", words: []string{"assign", "field-separator"}, files: map[string]Mode{"f": Reads, "file": Reads}},
		"jq":    {operands: Reads, skip: 1, instead: "f from-file", words: []string{"arg", "argjson", "indent"}, files: map[string]Mode{"f": Reads, "from-file": Reads}},
		"yq":    {operands: Reads, skip: 1},
		"xargs": speaker, "git": speaker,

		"rm": writer, "rmdir": writer, "unlink": writer, "shred": {operands: Writes, values: "ns"}, "mkfifo": writer, "tee": writer,
		"mkdir": {operands: Writes, values: "m", words: []string{"mode"}}, "truncate": {operands: Writes, values: "s", words: []string{"size"}, files: map[string]Mode{"r": Reads, "reference": Reads}},
		"touch": {operands: Writes, values: "dt", words: []string{"date", "time"}, files: map[string]Mode{"r": Reads, "reference": Reads}},
		"chmod": {operands: Writes, skip: 1, files: map[string]Mode{"reference": Reads}}, "chown": {operands: Writes, skip: 1}, "chgrp": {operands: Writes, skip: 1}, "chattr": {operands: Writes, skip: 1},
		"setfacl": {operands: Writes, values: "mx"}, "mktemp": {operands: Writes, values: "", files: map[string]Mode{"p": Writes, "tmpdir": Writes}},
		"cp":      {operands: Reads, last: Writes, values: "S", files: map[string]Mode{"t": Writes, "target-directory": Writes}},
		"install": {operands: Reads, last: Writes, values: "mogS", words: []string{"mode", "owner", "group"}, files: map[string]Mode{"t": Writes, "target-directory": Writes}},
		"mv":      {operands: Writes, files: map[string]Mode{"t": Writes, "target-directory": Writes}},
		"ln":      {operands: Writes, files: map[string]Mode{"t": Writes, "target-directory": Writes}},
		"rsync":   {operands: Reads, last: Writes, values: "eBfT", words: []string{"rsh", "exclude", "include", "filter"}},
		"patch":   {operands: Writes, values: "pF", words: []string{"strip", "fuzz"}, files: map[string]Mode{"i": Reads, "input": Reads, "d": Writes, "directory": Writes, "o": Writes, "output": Writes}},
		"split":   {operands: Uses, values: "blnaC"},
		"python":  interpreter("c", "mXW"), "pypy": interpreter("c", "mXW"), "node": interpreter("ep", "r"), "ruby": interpreter("e", "rI"), "perl": interpreter("eE", "MmI"),
		"php": interpreter("rBRE", "d"), "lua": interpreter("e", "l"), "deno": interpreter("", ""), "Rscript": interpreter("e", ""),

		"ssh": online, "scp": {network: Yes, operands: Reads, last: Writes, values: "cFJloPS", files: map[string]Mode{"i": Reads}}, "sftp": online, "mosh": online, "ssh-copy-id": online, "ssh-keyscan": online, "ftp": online, "telnet": online,
		"curl": online, "wget": online, "wget2": online, "aria2c": online, "axel": online, "http": online, "https": online, "xh": online, "lynx": online, "w3m": online, "links": online, "elinks": online,
		"nc": online, "ncat": online, "netcat": online, "socat": online, "nmap": online, "ping": online, "ping6": online, "traceroute": online, "tracepath": online, "mtr": online,
		"dig": online, "nslookup": online, "host": online, "whois": online, "gh": online, "glab": online, "hub": online, "aws": online, "gcloud": online, "gsutil": online, "az": online,
		"kubectl": online, "helm": online, "terraform": online, "ansible": online, "ansible-playbook": online, "rclone": online, "s3cmd": online, "yt-dlp": online, "youtube-dl": online,
		"mail": online, "mailx": online, "sendmail": online, "mutt": online, "smbclient": online, "svn": online, "ngrok": online, "cloudflared": online, "tailscale": online,
		"npx": online, "bunx": online, "pnpx": online, "uvx": online, "huggingface-cli": online, "hf": online, "twine": online, "xdg-open": online,

		"apt": manager, "apt-get": manager, "aptitude": manager, "dnf": manager, "yum": manager, "zypper": manager, "pacman": manager, "apk": manager, "brew": manager, "port": manager,
		"snap": manager, "flatpak": manager, "emerge": manager, "nix-env": manager, "docker": manager, "podman": manager, "nerdctl": manager, "docker-compose": manager, "buildah": manager, "skopeo": online,

		"dpkg": machine, "rpm": machine, "shutdown": machine, "reboot": machine, "halt": machine, "poweroff": machine, "init": machine, "telinit": machine,
		"systemctl": machine, "service": machine, "launchctl": machine, "loginctl": machine, "timedatectl": machine, "hostnamectl": machine, "initctl": machine,
		"crontab": machine, "at": machine, "batch": machine, "mount": machine, "umount": machine, "swapon": machine, "swapoff": machine, "losetup": machine,
		"fdisk": machine, "sfdisk": machine, "parted": machine, "gdisk": machine, "wipefs": machine, "mkswap": machine, "blkdiscard": machine, "hdparm": machine, "cryptsetup": machine, "diskutil": machine,
		"useradd": machine, "adduser": machine, "userdel": machine, "deluser": machine, "usermod": machine, "groupadd": machine, "groupdel": machine, "passwd": machine, "chpasswd": machine, "chsh": machine, "visudo": machine,
		"iptables": machine, "ip6tables": machine, "nft": machine, "ufw": machine, "firewall-cmd": machine, "sysctl": machine, "modprobe": machine, "insmod": machine, "rmmod": machine,
		"killall": machine, "pkill": machine, "nsenter": machine, "chroot": machine, "ifconfig": machine, "route": machine, "update-alternatives": machine, "ldconfig": machine, "defaults": machine,
		"setenforce": machine, "dmsetup": machine, "lvremove": machine, "vgremove": machine, "zfs": machine, "zpool": machine, "efibootmgr": machine, "grub-install": machine,
		"sudo": {sudo: Yes}, "doas": {sudo: Yes}, "pkexec": {sudo: Yes}, "visudo-edit": {sudo: Yes}, "sudoedit": {sudo: Yes, operands: Writes},

		"pip": {remote: []string{"install", "download", "wheel", "search", "index"}}, "pipx": {remote: []string{"install", "run", "upgrade", "upgrade-all", "inject"}},
		"uv":     {remote: []string{"add", "sync", "lock", "pip", "tool", "run", "python", "publish", "remove", "self"}},
		"poetry": {remote: []string{"install", "add", "update", "lock", "publish", "self", "remove", "sync"}}, "pipenv": {remote: []string{"install", "update", "sync", "lock"}},
		"pdm": {remote: []string{"install", "add", "update", "lock", "sync", "publish"}}, "hatch": {remote: []string{"env", "publish", "dep"}}, "rye": {remote: []string{"add", "sync", "lock", "fetch", "install"}},
		"conda": {remote: []string{"install", "create", "update", "search", "env"}}, "mamba": {remote: []string{"install", "create", "update", "search", "env"}}, "micromamba": {remote: []string{"install", "create", "update", "search", "env"}},
		"easy_install": {network: Yes},
		"npm":          {remote: []string{"install", "i", "ci", "add", "update", "up", "upgrade", "publish", "audit", "exec", "x", "init", "create", "view", "info", "outdated", "search", "login", "link", "dedupe", "in", "it", "install-test", "cit"}},
		"pnpm":         {remote: []string{"install", "i", "add", "update", "up", "publish", "audit", "dlx", "create", "fetch", "outdated"}},
		"yarn":         {remote: []string{"install", "add", "upgrade", "up", "publish", "dlx", "create", "audit", "outdated", ""}},
		"bun":          {remote: []string{"install", "i", "add", "update", "x", "create", "publish"}},
		"go":           {remote: []string{"get", "install", "mod download", "mod tidy", "mod vendor", "mod why", "work sync"}},
		"cargo":        {remote: []string{"install", "fetch", "update", "add", "search", "publish", "login", "vendor", "generate-lockfile"}}, "rustup": {network: Yes},
		"gem": {remote: []string{"install", "update", "fetch", "push", "search", "outdated"}}, "bundle": {remote: []string{"install", "update", "add", "lock", "outdated", ""}},
		"composer": {remote: []string{"install", "update", "require", "create-project", "global", "self-update"}}, "cpan": {network: Yes}, "cpanm": {network: Yes},
		"mvn": {remote: []string{"deploy", "dependency:get", "dependency:resolve", "dependency:go-offline"}}, "dotnet": {remote: []string{"restore", "add", "tool", "nuget", "workload"}},
		"nix": {network: Yes}, "hg": {remote: []string{"clone", "pull", "push", "incoming", "outgoing"}}, "openssl": {remote: []string{"s_client", "s_server", "ocsp"}, values: "k", words: []string{"subj"}},
		"opam": {network: Yes}, "nvm": {network: Yes}, "pyenv": {remote: []string{"install", "update"}}, "rbenv": {remote: []string{"install"}},
		"cabal": {remote: []string{"update", "install", "get"}}, "stack": {remote: []string{"install", "update", "upgrade", "setup", "upload"}}, "luarocks": {remote: []string{"install", "download", "upload"}},
		"mix": {remote: []string{"deps.get", "deps.update", "hex.publish", "local.hex"}}, "dart": {remote: []string{"pub"}}, "flutter": {remote: []string{"pub", "upgrade", "doctor"}},
		"pod": {remote: []string{"install", "update"}}, "playwright": {remote: []string{"install", "install-deps"}}, "corepack": {network: Yes}, "bower": {remote: []string{"install", "update"}}, "git-lfs": {remote: []string{"fetch", "pull", "push", "clone"}},
		"psql": online, "mysql": online, "mysqldump": online, "mariadb": online, "redis-cli": online, "mongo": online, "mongosh": online, "pg_dump": online, "hping3": online, "masscan": online, "tcpdump": online, "torsocks": online, "proxychains": online, "proxychains4": online,
		"dropdb": machine, "createdb": machine, "dropuser": machine, "createuser": machine, "virsh": machine, "vagrant": machine, "lxc": machine, "minikube": manager, "crictl": machine, "ctr": machine,
		"rc-service": machine, "fuser": machine, "osascript": machine, "systemd-run": machine, "newgrp": {sudo: Yes}, "sg": {sudo: Yes},
		"ip": {apart: []string{"link", "addr", "address", "route", "rule"}},
	}
	for _, alias := range [][2]string{
		{"gawk", "awk"},
		{"mawk", "awk"},
		{"nawk", "awk"},
		{"gsed", "sed"},
		{"nodejs", "node"},
		{"ggrep", "grep"},
		{"gcp", "cp"},
		{"grm", "rm"},
		{"gmv", "mv"},
		{"bsdtar", "tar"},
		{"gtar", "tar"},
		{"bat", "cat"},
		{"zcat", "cat"},
		{"ripgrep", "rg"},
		{"fdfind", "fd"},
	} {
		if p, ok := all[alias[1]]; ok {
			all[alias[0]] = p
		}
	}
	return all
}

func grep(quiet bool) program {
	return program{
		operands: Reads, skip: 1, instead: "e f regexp file", values: "eABCmdD",
		words: []string{"regexp", "after-context", "before-context", "context", "max-count", "include", "exclude", "exclude-dir", "label"},
		files: map[string]Mode{"f": Reads, "file": Reads, "exclude-from": Reads}, quiet: quiet,
	}
}

// interpreter runs what stands in an option of code, or a file; what that does
// is nobody's to read.
func interpreter(code, values string) program {
	return program{instead: code, values: code + values, words: []string{"eval", "print", "require", "version"}}
}

// remoteGit are the subcommands of git that use the network.
var remoteGit = []string{"clone", "fetch", "pull", "push", "ls-remote", "fetch-pack", "send-pack", "request-pull", "send-email", "svn", "p4", "daemon", "instaweb", "remote-http", "remote-https", "credential"}
