# What the cases of scripts/vm do inside a machine: /sbin/weft-init runs each script that begins by sourcing this.
# shellcheck shell=bash
build=/weft/build/release
export PATH=$build/src/cli:$build/daemon:$build/fuse:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8
export WEFT_STORE=/var/lib/weft
mount=/mnt/weft
models=$mount/models
etcd=http://10.77.0.1:2379
address=$(ip -br -4 addr show dev eth0 | sed 's/.* \([0-9.]*\)\/.*/\1/')

until_true() { # SECONDS COMMAND…
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || { echo "in vain: $*"; return 1; }
    sleep 0.2
  done
}

make_device() { # a software RDMA device on eth0
  modprobe -a ib_uverbs rdma_ucm rdma_rxe sch_netem
  ip link set eth0 mtu 9000
  rdma link add rdma0 type rxe netdev eth0
}

start_etcd() {
  (setsid etcd --data-dir /var/lib/etcd-test --listen-client-urls "$etcd" --advertise-client-urls "$etcd" \
    --listen-peer-urls http://127.0.0.1:2380 --log-level error >/run/etcd.log 2>&1 </dev/null &)
  until_true 120 etcdctl --endpoints "$etcd" endpoint health
}

start() { # weftd's options
  install -m 600 /out/key /run/key
  [ -e "$WEFT_STORE" ] || weft init >/dev/null
  (setsid weftd --store "$WEFT_STORE" --name "${node:-$(hostname)}" --cluster vm --listen "$address" --key-file /run/key \
    --etcd-endpoints "$etcd" "$@" >>/run/weftd.log 2>&1 </dev/null &)
  until_true 60 weft peers || { tail -n 20 /run/weftd.log; return 1; }
  mkdir -p "$mount"
  mountpoint -q "$mount" || weft mount "$mount" >/dev/null
}

second() { # COMMAND…: of a second node on this machine
  local -x WEFT_STORE=/var/lib/weft-second
  local node=second mount=/mnt/weft-second
  local models=$mount/models
  "$@"
}

stop() { # the signal
  pkill "$1" -x weftd
  until_true 60 eval '! pgrep -x weftd'
}

exchange() { weft status --json | jq -r ".daemon.exchange | $1"; } # a jq expression
packets() { cat /sys/class/infiniband/rdma0/ports/1/hw_counters/rcvd_pkts; }

figures() { # cumulative, as JSON
  exchange ".transport + {pinned_bytes, read_bytes, packets: $(packets)}"
}

mount_tests() { # FILE::TEST… of tests/mount
  ulimit -l unlimited
  (cd /weft/tests && WEFT_BUILD=$build WEFT_TEST_PATIENCE=10 timeout 280 \
    python3 -m pytest -c pytest.ini -W ignore --basetemp /var/tmp/pytest -q "${@/#/mount/}")
}

reads_plain() { # what reads cost without passthrough, as root and as an ordinary user
  chmod 666 /dev/fuse # as udev does
  python3 /weft/bench/reading.py --build $build --python /weft/build/venv-test/bin/python --dir /var/tmp --pairs 5 \
    --megabytes 64 plain
}

publish() { # NAME MIB: a safetensors model of random bytes, whose copy is /out/NAME
  python3 - "$2" "/run/$1" <<'PYTHON'
import json, os, pathlib, struct, sys
size, where = int(sys.argv[1]) << 20, pathlib.Path(sys.argv[2])
where.mkdir(parents=True, exist_ok=True)
sizes = [size // 2, size // 4, size // 8, size // 8]
header, at = {}, 0
for i, one in enumerate(sizes):
    header[f"layer.{i}.weight"] = {"dtype": "F32", "shape": [one // 256, 64], "data_offsets": [at, at + one]}
    at += one
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
(where / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + b"".join(map(os.urandom, sizes)))
PYTHON
  weft import "/run/$1" --name "$1" >/dev/null && cp "/run/$1/model.safetensors" "/out/$1"
}

reads() { # NAME: the published file is what /out/NAME is
  until_true 60 test -e "$models/$1/1" && timeout 60 cmp "/out/$1" "$models/$1/1/model.safetensors"
}

fails() { # NAME: reading ends with EIO, and soon
  local begin=$SECONDS
  timeout 30 cat "$models/$1/1/model.safetensors" >/dev/null 2>/run/error && return 1
  grep -q 'Input/output error' /run/error && echo "EIO after $((SECONDS - begin)) s"
}

usable_after() { # NAME: prints how long it takes until the file can be read, whole
  local begin=${EPOCHREALTIME/./}
  until_true 60 cat "$models/$1/1/model.safetensors" || return 1
  echo "read again $(((${EPOCHREALTIME/./} - begin) / 1000)) ms after that"
}

units() { # what this node has received of versions by swarms, as JSON
  weft status --json | jq -c '[.daemon.swarms.fetched[]] | {from_source: map(.from_source) | add, from_partners: map(.from_partners) | add}'
}

suite() { # SUITE: the cases of a conformance suite, over verbs
  local program=$build/tests/conformance/weft_test_conformance_$1
  WEFT_TEST_PROVIDER=verbs WEFT_TEST_HOST=$address timeout 280 "$program" >/run/suite.log 2>&1 || { tail -n 40 /run/suite.log; return 1; }
  grep 'test cases' /run/suite.log
}
