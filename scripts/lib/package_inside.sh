#!/usr/bin/env bash
# What scripts/package check does on a bare system:
#   package_inside.sh deb|static|wheel SUITE      the packages lie beside this script
# Prints what is wrong and exits with 1. The system is thrown away afterwards.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
kind=$1 suite=$2
me=nina
home=/home/$me

die() {
  printf '%s on %s: %s\n' "$kind" "$suite" "$*" >&2
  exit 1
}
quietly() { "$@" >/tmp/output 2>&1 </dev/null || { cat /tmp/output >&2; die "failed: $*"; }; }
install() { quietly apt-get install -y "$@"; }
as_me() { runuser -u "$me" -- env HOME="$home" PATH="$PATH" PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 "$@"; }

# Every path of this system, without those that packages of Debian leave: lists, caches and logs.
listing() {
  find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /run -o -path /srv -o -path /var/cache \
    -o -path /var/log -o -path /var/lib/apt -o -path /var/lib/dpkg -o -name __pycache__ \) -prune -o -print | sort
}
before() { listing >/tmp/before; }
# nothing_left [PATH…]   fails if there are other paths than before, beside these
nothing_left() {
  local left
  listing >/tmp/after
  left=$(comm -13 /tmp/before /tmp/after)
  [ -z "$left" ] || die "left behind: $left"
}

# A model of one tensor, in a new directory.
make_model() {
  local header='{"weight":{"dtype":"F32","shape":[1048576],"data_offsets":[0,4194304]}}'
  while [ $((${#header} % 8)) != 0 ]; do header+=' '; done
  mkdir -p "$1"
  { printf "\\x$(printf %x ${#header})\\0\\0\\0\\0\\0\\0\\0%s" "$header"; head -c 4194304 /dev/urandom; } \
    >"$1/model.safetensors"
  echo '{"model_type": "plain"}' >"$1/config.json"
}

# use WEFT   publishes, mounts, reads, unmounts and removes, in a directory of its own
use() {
  local weft=$1 area said
  area=$(mktemp -d "$HOME/use.XXXXXX")
  cd "$area"
  export WEFT_STORE=$area/store
  "$weft" init --quiet
  make_model model
  "$weft" import model --name m --quiet >/dev/null
  mkdir mnt
  "$weft" mount mnt >/dev/null
  diff -r model mnt/models/m/1
  cmp <(tail -c 4194304 model/model.safetensors) <(tail -c 4194304 mnt/tensors/m/1/weight.npy)
  said=$("$weft" status)
  grep -qxF "mounts    $area/mnt" <<<"$said"
  grep -qF "program   $(readlink -f "$weft"), version " <<<"$said"
  "$weft" umount mnt
  cd /
  rm -r "$area"
}
# by_mount WEFT   a mount of mount(8), for root. The machine has a mount.weft where mount(8) looks.
by_mount() {
  local weft=$1 area
  area=$(mktemp -d "$HOME/mount.XXXXXX")
  make_model "$area/model"
  "$weft" --store "$area/store" init --quiet
  "$weft" --store "$area/store" import "$area/model" --name m --quiet >/dev/null
  mkdir "$area/mnt"
  mount -t weft "$area/store" "$area/mnt"
  cmp "$area/model/model.safetensors" "$area/mnt/models/m/latest/model.safetensors"
  umount "$area/mnt"
  wait_for_servers
  rm -r "$area"
}
# A server ends some time after umount(8).
wait_for_servers() {
  local end=$((SECONDS + 30))
  while grep -qsx mount.weft /proc/[0-9]*/comm; do
    [ $SECONDS -lt $end ] || die "mount.weft still runs"
    sleep 0.1
  done
}
# Use by root and by an ordinary user.
by_both() {
  local weft=$1
  use "$weft"
  export -f use make_model
  # shellcheck disable=SC2016  # the inner shell expands it
  as_me bash -euo pipefail -c 'use "$1"' use "$weft" || die "$me cannot use $weft"
  wait_for_servers
}

prepare() {
  quietly apt-get update
  install fuse3
  useradd --create-home --shell /bin/bash "$me"
}

# The packages with a higher version.
next_debs() {
  local deb
  mkdir /tmp/next
  for deb in "$here"/*.deb; do
    rm -rf /tmp/opened
    dpkg-deb -R "$deb" /tmp/opened
    sed -i -E 's/^(Version: .*)$/\1+next/; s/^(Depends: weft \(= [^)]*)\)/\1+next)/' /tmp/opened/DEBIAN/control
    quietly dpkg-deb --root-owner-group -b /tmp/opened "/tmp/next/$(basename "$deb")"
  done
}

# An upgrade of both packages while a file of a mount is open, and of the mount's own program afterwards.
upgrade_beside_readers() {
  local area=/root/upgrade weftd_pid
  mkdir $area
  make_model $area/model
  weft --store $area/store init --quiet
  weft --store $area/store import $area/model --name m --quiet >/dev/null
  weftd --store $area/store --log-file $area/weftd.log &
  weftd_pid=$!
  mkdir $area/mnt
  weft --store $area/store mount $area/mnt >/dev/null
  exec 7<$area/mnt/models/m/1/model.safetensors
  head -c 1000000 <&7 >$area/read
  next_debs
  quietly apt-get install -y /tmp/next/*.deb
  [ "$(dpkg-query -W -f '${Version}\n' weft weftd | grep -c '+next$')" = 2 ] || die "the packages were not upgraded"
  cat $area/mnt/models/m/1/config.json >/dev/null
  head -c 1000000 <&7 >>$area/read
  if [ "$(printf '6.9\n%s\n' "$(uname -r)" | sort -V | head -n 1)" = 6.9 ]; then  # a new server can follow
    weft --store $area/store mount --upgrade $area/mnt >/dev/null
  fi
  cat <&7 >>$area/read
  exec 7<&-
  cmp $area/read $area/model/model.safetensors
  weft --store $area/store umount $area/mnt
  kill $weftd_pid
  wait $weftd_pid
  rm -r $area
}

# A systemctl that writes down what it is asked for, as if systemd ran.
pretend_systemd() {
  [ ! -e /usr/bin/systemctl ] || die "this system has a systemctl"
  mkdir -p /run/systemd/system
  printf '#!/bin/sh\necho "$@" >>/tmp/systemctl\n' >/usr/bin/systemctl
  chmod +x /usr/bin/systemctl
}

try_deb() {
  local said
  prepare
  # Without them the scripts of the package do the same by themselves.
  [ "$suite" = bookworm ] || install systemd-standalone-sysusers systemd-standalone-tmpfiles
  before
  quietly apt-get install -y "$here"/*.deb
  [ "$(stat -c '%U %G %a' /var/lib/weft)" = "root weft 750" ] || die "/var/lib/weft: $(stat -c '%U %G %a' /var/lib/weft)"
  by_both /usr/bin/weft
  by_mount weft
  upgrade_beside_readers
  weft --store /var/lib/weft init --group weft --quiet
  pretend_systemd
  quietly apt-get remove -y weftd
  grep -q '^stop .*weftd\.service' /tmp/systemctl || die "the units were not stopped: $(cat /tmp/systemctl)"
  grep -q '^--quiet disable .*weftd\.service' /tmp/systemctl || die "the units were not disabled"
  [ -e /var/lib/weft/weft-store ] || die "the store is gone after a removal"
  weft --store /var/lib/weft status >/dev/null
  apt-get purge -y weftd weft >/tmp/purge 2>&1
  [ -e /var/lib/weft/weft-store ] || die "the store is gone after a purge"
  for said in 'weftd: /var/lib/weft stays' 'weftd: the group weft stays'; do
    grep -q "$said" /tmp/purge || die "the purge does not say what it leaves: $(cat /tmp/purge)"
  done
  quietly apt-get autoremove --purge -y
  rm -r /var/lib/weft /usr/bin/systemctl
  nothing_left
  install lintian
  lintian --allow-root --fail-on error "$here"/*.deb || die "lintian finds errors"
}

try_static() {
  local file said
  file=$(echo "$here"/weft-*)
  useradd --create-home --shell /bin/bash "$me"
  before
  use "$file"
  ln -s "$file" /sbin/mount.weft
  by_mount "$file"
  said=$("$file" --store /root/store init --group nothing 2>&1) && die "a group that does not exist is accepted"
  grep -qF 'no group "nothing" in /etc/group' <<<"$said" || die "a group that does not exist: $said"
  said=$("$file" pull hf:org/name 2>&1) && die "it pulls from a hub"
  [ "$said" = 'weft: no command "pull" in this program, built without libcurl; the Debian package weft has it' ] ||
    die "a command that it lacks: $said"
  rm /sbin/mount.weft
  nothing_left
  quietly apt-get update
  install fuse3  # by which an ordinary user mounts
  before
  by_both "$file"
  nothing_left
}

try_wheel() {
  local venv=$home/venv
  prepare
  install python3-venv
  as_me python3 -m venv "$venv"
  before
  quietly as_me "$venv/bin/pip" install --no-index "$here"/weft-*.whl
  [ "$(as_me "$venv/bin/weft" --version | cut -d' ' -f1)" = weft ] || die "weft --version"
  [ "$(as_me "$venv/bin/mount.weft" --version | cut -d' ' -f1)" = mount.weft ] || die "mount.weft --version"
  by_both "$venv/bin/weft"
  ln -s "$venv/bin/mount.weft" /sbin/mount.weft
  by_mount "$venv/bin/weft"
  rm /sbin/mount.weft
  quietly as_me "$venv/bin/pip" uninstall -y weft
  nothing_left
}

export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
"try_$kind"
