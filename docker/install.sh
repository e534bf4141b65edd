#!/bin/bash
# Puts into an image what the steps need. docker/Dockerfile and docker/sala.def run the same stages, as root and with a
# network; what they leave needs no network.
#
#   install.sh system | python | nvcc | torch | all
set -euo pipefail

docker=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
place=/opt/sala-image
bundle=/etc/ssl/certs/ca-certificates.crt
export DEBIAN_FRONTEND=noninteractive PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PYTHONDONTWRITEBYTECODE=1

fail() { printf 'install.sh: %s\n' "$*" >&2; exit 1; }

extra_cas() { find "$docker/extra-ca" -name '*.crt' 2>/dev/null; }

# Certificates of a network that intercepts TLS, for every client of this build.
trust() {
  [ -n "$(extra_cas)" ] || return 0
  mkdir -p /usr/local/share/ca-certificates "$(dirname "$bundle")"
  extra_cas | while read -r file; do cp "$file" /usr/local/share/ca-certificates/; done
  if command -v update-ca-certificates >/dev/null; then
    update-ca-certificates >/dev/null
  else  # until the package comes, which then makes the bundle anew
    cat /usr/local/share/ca-certificates/*.crt >>"$bundle"
  fi
  export PIP_CERT=$bundle SSL_CERT_FILE=$bundle
}

has_nvcc() {
  local nvcc
  for nvcc in /usr/local/cuda-13.0/bin/nvcc "$(command -v nvcc || true)" /usr/local/cuda/bin/nvcc; do
    if [ -x "$nvcc" ] && "$nvcc" --version | grep -q 'release 13\.0'; then return 0; fi
  done
  return 1
}

has_ncu() { command -v ncu >/dev/null || ls /usr/local/cuda*/bin/ncu /opt/nvidia/nsight-compute/*/ncu >/dev/null 2>&1; }

has_venv() { command -v python3 >/dev/null && python3 -c 'import ensurepip, venv' 2>/dev/null; }

system() {
  trust
  local missing=()
  has_venv || missing+=(python3 python3-venv)
  command -v g++ >/dev/null || missing+=(g++)
  command -v git >/dev/null || missing+=(git)
  command -v setpriv >/dev/null || missing+=(util-linux)
  command -v update-ca-certificates >/dev/null || missing+=(ca-certificates)
  if [ "${#missing[@]}" -gt 0 ] || ! has_ncu; then
    if command -v apt-get >/dev/null; then
      apt-get update -qq
      # Only NVIDIA's repository has it, and a base image with CUDA has that repository.
      if ! has_ncu && apt-cache show cuda-nsight-compute-13-0 >/dev/null 2>&1; then
        missing+=(cuda-nsight-compute-13-0)
      fi
      [ "${#missing[@]}" -eq 0 ] || apt-get install -y -qq --no-install-recommends "${missing[@]}"
      rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin
    elif [ "${#missing[@]}" -gt 0 ]; then
      fail "this base image has no apt-get and lacks: ${missing[*]}"
    fi
  fi
  trust
  has_venv || fail "python3 of this base image cannot make virtual environments"
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "Python 3.11 or newer is needed in the base image"
  has_ncu || echo "install.sh: no Nsight Compute in this base image: what ncu measures will say so"
  # The project is mounted, and belongs to whoever runs the step: git must still tell its commit.
  git config --system --replace-all safe.directory '*'
}

python() {
  trust
  python3 -m venv "$place/venv"
  "$place/venv/bin/pip" install -q -c "$docker/constraints.txt" -r "$docker/../reproduce/requirements.txt"
  "$place/venv/bin/pip" download -q --no-deps --only-binary :all: --dest "$place/wheels" -r "$docker/wheels.txt"
}

nvcc() {
  if has_nvcc; then
    echo "install.sh: nvcc 13.0 is part of the base image"
    return
  fi
  trust
  "$place/venv/bin/pip" install -q -r "$docker/requirements-cuda.txt"
}

torch() {
  if [ "${WITH_TORCH:-1}" != 1 ]; then
    echo "install.sh: without torch and Triton"
    return
  fi
  trust
  "$place/venv/bin/pip" install -q -c "$docker/constraints.txt" -r "$docker/requirements-torch.txt"
}

case "${1:-}" in
  system | python | nvcc | torch) "$1" ;;
  all) system; python; nvcc; torch ;;
  *) fail "usage: install.sh system | python | nvcc | torch | all" ;;
esac
