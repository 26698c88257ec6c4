# Virtual machines for scripts/vm, which sources this. Each has the folder $area/NAME: `todo` takes scripts, and the shared
# folder /out inside is the whole of it (vm_init). $images/SUITE is an image. No machine reaches anything but the other one.
# shellcheck shell=bash disable=SC2016,SC2154

# make_image SUITE   Debian 12 with rdma-core, libfabric, etcd, FUSE and pytest, and the kernel of SUITE: bookworm (6.1) or
# bookworm-backports (6.12). The packages come while the image is made. It is made again when they, or vm_init, are others.
make_image() {
  local suite=$1 image=$images/$1 root=$images/$1/root
  local disk=16G mirror made_from packages=(  # a draft of a test has 6 GiB of holes
    rdma-core ibverbs-providers libfabric1 iproute2 kmod udev procps util-linux e2fsprogs initramfs-tools python3 jq
    etcd-server etcd-client fuse3 liblmdb0 libxxhash0 libfmt9 libspdlog1.10 libsodium23 libcurl4 libmicrohttpd12 libssl3
    libflatbuffers2 python3-pytest autofs
  )
  made_from="$disk ${packages[*]} $(cksum <scripts/lib/vm_init)"
  if [ -e "$image/disk.img" ] && [ "$(cat "$image/made-from" 2>/dev/null)" = "$made_from" ]; then return 0; fi
  mirror=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Created-By: Packages' | sed -n 's/ bookworm$//p' | head -n 1)
  note "an image of $suite, with packages from $mirror"
  mkdir -p "$image"
  if [ ! -e "$root/.made" ]; then
    rm -rf --one-file-system "$root"
    quietly debootstrap --variant=minbase bookworm "$root" "$mirror"
    touch "$root/.made"
  fi
  printf 'deb %s %s main\n' "$mirror" bookworm "$mirror" bookworm-updates "$mirror" "$suite" | sort -u >"$root/etc/apt/sources.list"
  printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
  chmod +x "$root/usr/sbin/policy-rc.d"
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  in_image "$root" apt-get -q update
  in_image "$root" apt-get -q install -y --no-install-recommends "${packages[@]}"
  # Few modules: the whole initrd is unpacked by an emulated processor.
  sed -i 's/^MODULES=.*/MODULES=list/; s/^COMPRESS=.*/COMPRESS=lz4/' "$root/etc/initramfs-tools/initramfs.conf"
  printf '%s\n' virtio_pci virtio_blk ext4 >"$root/etc/initramfs-tools/modules"
  in_image "$root" apt-get -q install -y --no-install-recommends -t "$suite" linux-image-amd64
  in_image "$root" apt-get clean
  install -m 755 scripts/lib/vm_init "$root/sbin/weft-init"
  cp "$(newest "$root"/boot/vmlinuz-*)" "$image/vmlinuz"
  cp "$(newest "$root"/boot/initrd.img-*)" "$image/initrd.img"
  rm -f "$image/disk.img"
  quietly mke2fs -q -t ext4 -O ^has_journal -d "$root" "$image/disk.img" "$disk"
  printf '%s\n' "$made_from" >"$image/made-from"
}
newest() { printf '%s\n' "$@" | sort -V | tail -n 1; }
in_image() { quietly chroot "$1" /usr/bin/env -i PATH="$PATH" DEBIAN_FRONTEND=noninteractive "${@:2}"; }

# boot SUITE NAME ADDRESS LINK   LINK: what qemu's end of the wire between the two machines does, server=on or server=off.
# The checkout is /weft inside. The image stays as it is.
boot() {
  local image=$images/$1 name=$2 address=$3 accel=tcg,thread=multi
  [ ! -w /dev/kvm ] || [ -z "${WEFT_VM_KVM:-}" ] || accel=kvm
  rm -rf "${area:?}/$name"
  mkdir -p "$area/$name/todo"
  [ "$4" = server=off ] || rm -f "$area/wire"
  nice -n 5 qemu-system-x86_64 -accel "$accel" -cpu max -smp 2 -m 2048 -display none -monitor none -no-reboot \
    -serial "file:$area/$name/console" -kernel "$image/vmlinuz" -initrd "$image/initrd.img" \
    -append "console=ttyS0 root=/dev/vda rw init=/sbin/weft-init mitigations=off quiet weft.name=$name weft.address=$address" \
    -drive "file=$image/disk.img,format=raw,if=virtio,snapshot=on" \
    -netdev "stream,id=n0,$4,addr.type=unix,addr.path=$area/wire" \
    -device "virtio-net-pci,netdev=n0,mac=52:54:00:00:00:$(printf %02x "${address##*.}")" \
    -virtfs "local,path=$top,mount_tag=weft,security_model=none,readonly=on" \
    -virtfs "local,path=$area/$name,mount_tag=out,security_model=none" \
    -device virtio-rng-pci -daemonize -pidfile "$area/$name/pid"
  wait_for "$name" "$area/$name/up" 300
  note "$name: Linux $(cut -d' ' -f1 "$area/$name/up")"
}

# wait_for NAME FILE SECONDS   until the machine has written the file
wait_for() {
  local end=$((SECONDS + $3))
  until [ -s "$2" ]; do
    kill -0 "$(cat "$area/$1/pid")" 2>/dev/null || die "$1: the machine has ended; see $area/$1/console"
    [ $SECONDS -lt $end ] || return 1
    sleep 0.2
  done
}

# on NAME COMMAND…   runs a shell command inside, in 300 s at most, or $inside_seconds, with the functions of vm_inside.sh; its
# output and status are ours
on() {
  local name=$1 job
  job=$area/$1/$(date +%s%N)
  printf '. /weft/scripts/lib/vm_inside.sh\n%s\n' "${*:2}" >"$job.new"
  mv "$job.new" "$area/$name/todo/$(basename "$job").sh"
  wait_for "$name" "$job.rc" "${inside_seconds:-300}" || { cat "$job.log"; return 124; }
  cat "$job.log"
  return "$(cat "$job.rc")"
}

end_machines() {
  local pid
  for pid in "$area"/*/pid; do [ ! -e "$pid" ] || kill "$(cat "$pid")" 2>/dev/null || true; done
}
