#!/usr/bin/env bash
# Builds mini-base:latest, a small Debian (bash, git, patch, python3, pytest)
# that is the base image of the demo images and the Docker tests.
#
# The script builds on debian:bookworm-slim if the engine has it or can pull it.
# Otherwise it bootstraps a minimal Debian from the mirror in apt's
# configuration, so that a machine without access to a registry can still run
# everything. It does nothing if the image exists and has the current recipe
# number.
set -euo pipefail

readonly image=mini-base:latest
readonly recipe=1 # increment it when the content of the image changes
readonly release=bookworm
readonly packages=(bash git patch procps python3 python3-pytest python-is-python3)
# Files that no program needs; they are half of the size.
readonly surplus=(usr/share/doc usr/share/man usr/share/info usr/share/locale usr/share/lintian
  usr/share/git-core/contrib usr/share/perl5/Debian var/lib/apt/lists var/cache/apt var/cache/debconf var/log)
readonly bashrc='# Read before every command when BASH_ENV names this file. Nothing to set up here.'

say() { printf 'base-image: %s\n' "$*" >&2; }
die() {
  say "$*"
  exit 1
}

label() { docker image inspect --format '{{index .Config.Labels "mini.recipe"}}' "$image" 2>/dev/null || true; }

# ground succeeds if the engine has or can pull the base image. The last line of
# a failed pull contains the reason.
ground() {
  local out
  docker image inspect "debian:$release-slim" >/dev/null 2>&1 && return
  if ! out=$(timeout 300 docker pull --quiet "debian:$release-slim" 2>&1); then
    say "debian:$release-slim cannot be pulled: ${out##*$'\n'}"
    return 1
  fi
}

from_registry() {
  ground || return 1
  say "building on debian:$release-slim"
  docker build --tag "$image" --label "mini.recipe=$recipe" - <<DOCKERFILE
FROM debian:$release-slim
RUN apt-get update \\
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ${packages[*]} \\
 && cd / && rm -rf ${surplus[*]} && mkdir -p var/lib/apt/lists/partial var/cache/apt/archives/partial var/log \\
 && echo '$bashrc' > /root/.bashrc
ENV LANG=C.UTF-8
CMD ["bash"]
DOCKERFILE
}

# mirror prints the first URL from which apt gets the main component of the
# release. It asks apt instead of reading apt's configuration, which may be
# one-line .list files, deb822 .sources files and more.
mirror() {
  # shellcheck disable=SC2016 # the names are apt's, not the shell's
  apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
    awk -v release="$release" '$1 == release && $2 == "main" && $3 ~ /^(https?|file):/ { print $3; exit }'
}

install_mmdebstrap() {
  command -v mmdebstrap >/dev/null && return
  say "installing mmdebstrap with apt-get: it makes the Debian that no registry could give"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends mmdebstrap >/dev/null
}

# use_apt_proxy exports apt's proxy, because mmdebstrap has an apt configuration of its own.
use_apt_proxy() {
  local http='' https=''
  eval "$(apt-config shell http Acquire::http::Proxy https Acquire::https::Proxy)"
  [[ -z $http || -n ${http_proxy:-} ]] || export http_proxy=$http
  [[ -z $https || -n ${https_proxy:-} ]] || export https_proxy=$https
}

work=
clean() {
  [[ -n $work ]] || return 0
  # An interrupted bootstrap can leave these mounted, and rm must not remove
  # files of the host through them.
  umount -l "$work/root/proc" "$work/root/sys" 2>/dev/null || true
  rm -rf --one-file-system "$work"
}

from_mirror() {
  # shellcheck disable=SC2016 # the names are apt's, not the shell's
  local from include
  command -v apt-get >/dev/null || die "and this is no Debian: load a debian:$release-slim image, then start again"
  ((EUID == 0)) || die "bootstrapping Debian needs root: run sudo $0"
  install_mmdebstrap
  from=$(mirror)
  if [[ -z $from ]]; then # apt prints only the sources whose package lists it has
    say "asking apt-get update for the lists of packages"
    apt-get update -qq || true
    from=$(mirror)
  fi
  [[ -n $from ]] || die "apt on this machine has no source for Debian $release (main): add one, or load debian:$release-slim"
  use_apt_proxy

  work=$(mktemp -d "${TMPDIR:-/var/tmp}/mini-base.XXXXXX")
  trap clean EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  include=$(IFS=,; echo "${packages[*]}")
  say "bootstrapping a minimal Debian $release from the mirror of this machine's apt (about a minute)"
  # No fsync is needed: after a crash of this machine, the bootstrap starts again.
  if ! mmdebstrap --format=directory --variant=minbase --dpkgopt=force-unsafe-io --include="$include" \
    "$release" "$work/root" "$from" >"$work/log" 2>&1; then
    tail -n 5 "$work/log" >&2
    die "mmdebstrap failed; the lines above are the end of its log"
  fi
  (cd "$work/root" && rm -rf "${surplus[@]}" && mkdir -p var/lib/apt/lists/partial var/cache/apt/archives/partial var/log)
  printf '%s\n' "$bashrc" >"$work/root/root/.bashrc"
  rm "$work/root/etc/dpkg/dpkg.cfg.d/99mmdebstrap"
  # The engine provides the host name and the resolver configuration.
  rm -f "$work/root/etc/resolv.conf" "$work/root/etc/hostname"
  # Tag the image only after a complete import: a truncated archive must not
  # become the image.
  local id
  id=$(tar -C "$work/root" --numeric-owner --one-file-system \
    --exclude='./dev/*' --exclude='./proc/*' --exclude='./sys/*' -c . |
    docker import --change 'ENV LANG=C.UTF-8' --change 'CMD ["bash"]' --change "LABEL mini.recipe=$recipe" \
      --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' -)
  docker tag "$id" "$image"
}

main() {
  docker version >/dev/null 2>&1 || die "no Docker engine answers: start one, or set DOCKER_HOST"
  exec 9<"${BASH_SOURCE[0]}" # a lock: of two concurrent runs, the second waits and finds the image
  flock 9
  [[ $(label) == "$recipe" ]] && return
  from_registry || from_mirror
  say "made $image ($(docker image inspect --format '{{.Size}}' "$image" | awk '{ printf "%d MB", $1 / 1e6 }'))"
}

main
