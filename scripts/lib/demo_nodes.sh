# Sourced by scripts/demo: functions that start three nodes in network namespaces, each with a
# daemon and a mount, and an etcd. Needs root.
# shellcheck shell=bash
# shellcheck disable=SC2154  # work: where scripts/demo has its files

cluster_nodes=(1 2 3)
cluster_net=weft-demo-$$
cluster_pids=()

# Starts a program in the background. exec makes its process id the one to wait for and to end.
start_on() {
  (exec nsenter --net="/run/netns/$cluster_net-$1" "${@:3}" >"$2" 2>&1 </dev/null) &
  cluster_pids+=($!)
}

# Runs a command in the network namespace of node N. Files and mounts are those of the machine.
on() { nsenter --net="/run/netns/$cluster_net-$1" "${@:2}"; }

cluster_up() {
  ip netns add "$cluster_net-0"
  ip -n "$cluster_net-0" link add br0 type bridge
  ip -n "$cluster_net-0" addr add 10.77.0.10/24 dev br0
  ip -n "$cluster_net-0" link set lo up
  ip -n "$cluster_net-0" link set br0 up
  local n
  for n in "${cluster_nodes[@]}"; do
    ip netns add "$cluster_net-$n"
    ip -n "$cluster_net-0" link add "p$n" type veth peer name eth0 netns "$cluster_net-$n"
    ip -n "$cluster_net-0" link set "p$n" master br0 up
    ip -n "$cluster_net-$n" addr add "10.77.0.$n/24" dev eth0
    ip -n "$cluster_net-$n" link set lo up
    ip -n "$cluster_net-$n" link set eth0 up
  done
}

cluster_down() {
  local n
  for n in "${cluster_nodes[@]}"; do
    if mountpoint -q "$work/node$n/mnt" 2>/dev/null; then umount "$work/node$n/mnt" || umount -l "$work/node$n/mnt"; fi
  done
  [ ${#cluster_pids[@]} = 0 ] || kill "${cluster_pids[@]}" 2>/dev/null || true
  [ ${#cluster_pids[@]} = 0 ] || wait "${cluster_pids[@]}" 2>/dev/null || true
  for n in "${cluster_nodes[@]}" 0; do ip netns del "$cluster_net-$n" 2>/dev/null || true; done
}

# until_true SECONDS COMMAND…
until_true() {
  local tries=$(($1 * 20))
  shift
  while ! "$@" >/dev/null 2>&1; do
    ((--tries > 0)) || die "in vain: $*"
    sleep 0.05
  done
}

start_etcd() {
  mkdir -p "$work/etcd"
  start_on 0 "$work/etcd.log" etcd --data-dir "$work/etcd" --listen-client-urls http://10.77.0.10:2379 \
    --advertise-client-urls http://10.77.0.10:2379 --listen-peer-urls http://127.0.0.1:2380 --log-level error
  until_true 30 on 0 etcdctl --endpoints http://10.77.0.10:2379 endpoint health
}

# start_node N [MOUNT_OPTIONS…]. `follow`, if set: the models that it follows, as a list of TOML has them. `hub_listen`, if set:
# where its weftd answers clients of the Hugging Face hub.
start_node() {
  local dir=$work/node$1
  [ -e "$work/key" ] || (umask 077 && head -c 32 /dev/urandom >"$work/key")
  mkdir -p "$dir/mnt"
  quietly weft --store "$dir/store" init
  cat >"$dir/weft.conf" <<CONF
store = "$dir/store"
name = "node$1"
cluster = "demo"
listen = "10.77.0.$1"
key_file = "$work/key"
${follow:+follow = [$follow]}

[etcd]
endpoints = ["http://10.77.0.10:2379"]
CONF
  [ -z "${hub_listen:-}" ] || printf '\n[hub]\nlisten = "%s"\n' "$hub_listen" >>"$dir/weft.conf"
  start_on "$1" "$dir/log" weftd --config "$dir/weft.conf"
  until_true 30 weft --store "$dir/store" peers
  on "$1" weft --store "$dir/store" mount -q "${@:2}" "$dir/mnt"
}
