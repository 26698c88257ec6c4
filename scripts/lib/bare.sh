# Sourced by scripts/package: bare Debian systems, which hold only what Debian installs at least. They are made by
# debootstrap from this machine's package sources, once for each release, in build/bare. Needs root.
# shellcheck shell=bash

: "${top:?}"  # scripts/lib/common.sh

# release_fact NAME [ROOT]   a value of os-release, of this system or of another one
release_fact() { sed -n "s/^$1=\"\?\([^\"]*\)\"\?\$/\1/p" "${2:-}/etc/os-release"; }

# bare_sources SUITE   the lines of a sources.list: those of this machine, for this release
bare_sources() {
  local own uri suite
  own=$(release_fact VERSION_CODENAME)
  apt-get update --print-uris | sed -n "s#^'\(.*\)/dists/\([^']*\)/InRelease'.*#\1 \2#p" |
    while read -r uri suite; do
      case $suite in "$own"*) echo "deb $uri $1${suite#"$own"} main" ;; esac
    done
}

# bare_base SUITE   makes the system that the others are copies of
bare_base() {
  local base=$top/build/bare/$1 sources
  [ ! -e "$base/.ready" ] || return 0
  note "a bare system of $1"
  rm -rf --one-file-system "$base"
  mkdir -p "$base"
  sources=$(bare_sources "$1")
  [ -n "$sources" ] || die "apt has no sources of $(release_fact VERSION_CODENAME) here"
  quietly debootstrap --variant=minbase --include=ca-certificates "$1" "$base" \
    "$(sed -n '1s/^deb \([^ ]*\) .*/\1/p' <<<"$sources")"
  printf '%s\n' "$sources" >"$base/etc/apt/sources.list"
  # How this machine reaches them.
  apt-config dump | grep -E '^Acquire::(http|https|Check-|Retries)' >"$base/etc/apt/apt.conf.d/90machine" || true
  printf 'APT::Install-Recommends "false";\nDpkg::Use-Pty "false";\n' >"$base/etc/apt/apt.conf.d/91bare"
  ln -sf ../proc/self/mounts "$base/etc/mtab"  # every system that boots has it, and fusermount3 reads it
  touch "$base/.ready"
}

# bare_copy SUITE ROOT   a system of this release in ROOT, unless one is there
bare_copy() {
  bare_base "$1"
  [ ! -e "$2" ] || return 0
  rm -rf --one-file-system "$2.part"
  cp -a "$top/build/bare/$1" "$2.part"
  mv "$2.part" "$2"
}

# in_bare ROOT COMMAND…   runs the command in this system, with the machine's network and /dev/fuse. Processes and mounts that
# it leaves end with it.
in_bare() {
  # shellcheck disable=SC2016  # the inner shell expands them
  unshare --mount --propagation private --pid --fork --kill-child bash -euc '
    root=$1
    shift
    mount --bind "$root" "$root"
    mount -t tmpfs tmpfs "$root/tmp"
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
    cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
    exec chroot "$root" env -i HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive JOBS="${JOBS:-}" \
      PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
  ' in_bare "$@" </dev/null
}
