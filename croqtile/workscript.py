"""The work script of ``choreo -gs``: a bash script that holds the generated source and can build and run it.

``bash OUT --compile-link`` builds exactly the executable that the script names, ``bash OUT --execute`` builds it if
needed and runs it. The script contains one absolute, literal, space-free ``-o PATH.exe``, so that a harness can read
from the text where the executable will be.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from croqtile import toolchain

_PLAIN = re.compile(r"[\w./+=@,-]+", re.ASCII)

_SCRIPT = r"""#!/usr/bin/env bash
# Work script of choreo for @TITLE@
#   bash SCRIPT --compile-link         build the executable
#   bash SCRIPT --execute [ARGS...]    build it if needed, then run it
set -u

exe=@EXE@
include_dirs=(@INCLUDE_DIRS@)
source_name=@SOURCE_NAME@

fail() { printf '%s: %s\n' "$source_name" "$1" >&2; exit 1; }

find_nvcc() {
  local place
  if [ -n "${NVCC:-}" ]; then
    command -v -- "$NVCC" || fail "NVCC is set to $NVCC, which is no program"
    return
  fi
  if [ -n "${CUDA_HOME:-}" ]; then
    [ -x "$CUDA_HOME/bin/nvcc" ] || fail "CUDA_HOME is set, but there is no $CUDA_HOME/bin/nvcc"
    printf '%s\n' "$CUDA_HOME/bin/nvcc"
    return
  fi
  for place in @CANDIDATES@; do
    if [ -x "$place" ]; then printf '%s\n' "$place"; return; fi
  done
  command -v nvcc || fail "no nvcc found: install CUDA 13.0 or set CUDA_HOME"
}

# The wheels of CUDA keep their libraries in lib, where nvcc looks in lib64.
find_link_flags() {
  local root
  root=$(dirname -- "$(dirname -- "$(readlink -f -- "$1")")")
  link_flags=()
  if [ -e "$root/lib64" ] || [ -e "$root/targets" ]; then return; fi
  if [ -e "$root/lib/libcudart_static.a" ]; then
    link_flags=("-L$root/lib")
  elif [ -e "$root/lib/libcudart.so.13" ]; then
    link_flags=(-cudart=none "-L$root/lib" -Xlinker -l:libcudart.so.13 -Xlinker "-rpath=$root/lib")
  fi
}

compile_link() {
  local nvcc status dir number=0 includes=()
  nvcc=$(find_nvcc) || exit 1
  find_link_flags "$nvcc"
  mkdir -p -- @EXE_DIR@ || fail "cannot create the directory of $exe"
  work=$(mktemp -d /tmp/choreo-build.XXXXXXXX) || fail "cannot create a directory in /tmp"
  trap 'rm -rf -- "$work"' EXIT
  for dir in "${include_dirs[@]}"; do
    # nvcc hands paths to a shell of its own: what that shell would take apart reaches it only as a link.
    if [[ $dir == *[!A-Za-z0-9_./+=@,-]* ]]; then
      ln -s -- "$dir" "$work/include$number" || fail "cannot write to $work"
      dir=$work/include$number
    fi
    includes+=("-I$dir")
    number=$((number + 1))
  done
  write_source > "$work/kernel.cu" || fail "cannot write $work/kernel.cu"
  rm -f -- "$exe"
  "$nvcc" @FLAGS@ "${includes[@]}" "${link_flags[@]+"${link_flags[@]}"}" "$work/kernel.cu" -o @EXE@ >&2
  status=$?
  rm -rf -- "$work"
  return "$status"
}

write_source() {
  cat <<'@DELIMITER@'
@SOURCE@@DELIMITER@
}

case "${1:-}" in
  --compile-link)
    compile_link
    exit
    ;;
  --execute)
    shift
    if [ ! -x "$exe" ] || [ "$0" -nt "$exe" ]; then
      (compile_link) || exit
    fi
    exec "$exe" "$@"
    ;;
  *)
    printf 'usage: bash %s --compile-link | --execute [ARGS...]\n' "$0" >&2
    exit 2
    ;;
esac
"""


def executable_path(output: str) -> str:
    """The executable that belongs to the work script ``output``: absolute, free of spaces, distinct for every output.

    It stands beside the script (the digest keeps it apart from other scripts' names) unless the script's name has
    characters that need quoting, or the script is no file (``/dev/null``): then in a directory below /tmp. Every script
    for a device gets a fresh name, since nothing else tells two of them apart.
    """
    path = str(Path(output).absolute())
    if path.startswith(("/dev/", "/proc/")):
        digest = _digest(f"{path} {os.getpid()} {time.time_ns()}")
    else:
        digest = _digest(path)
        if _PLAIN.fullmatch(path):
            return f"{path}.{digest}.exe"
    # tempfile's directory is the user's choice where its name is plain; the user's id keeps two users apart.
    base = tempfile.gettempdir() if _PLAIN.fullmatch(tempfile.gettempdir()) else "/tmp"
    return f"{Path(base).absolute()}/choreo-{os.getuid()}/{digest}.exe"


def script_text(
    source: str, file: Path, includes: Sequence[Path], output: str, environ: Mapping[str, str] | None = None
) -> str:
    """The work script ``output`` for the generated CUDA ``source`` of the .co ``file``.

    Quoted includes also resolve in the directories ``includes``; ``environ`` is where the toolchain is looked for now.
    """
    source = source if source.endswith("\n") else source + "\n"
    exe = executable_path(output)
    # One pass over the template: nothing that is inserted is looked at again, whatever it contains.
    values = {
        "TITLE": file.name.replace("\n", " "),
        "EXE": exe,
        "EXE_DIR": shlex.quote(str(Path(exe).parent)),
        "INCLUDE_DIRS": " ".join(shlex.quote(str(directory.absolute())) for directory in includes),
        "SOURCE_NAME": shlex.quote(file.name),
        "CANDIDATES": " ".join(shlex.quote(place) for place in _fixed_candidates(environ)),
        "FLAGS": " ".join(shlex.quote(flag) for flag in toolchain.COMPILE_FLAGS),
        "DELIMITER": _delimiter(source),
        "SOURCE": source,
    }
    return re.sub(r"@([A-Z_]+)@", lambda found: values[found[1]], _SCRIPT)


def _fixed_candidates(environ: Mapping[str, str] | None) -> Sequence[str]:
    """Where nvcc is now, to be looked for again when the script runs; its own environment comes first there."""
    places: list[str] = []
    for path, _ in toolchain.candidates(environ):
        if Path(path).is_absolute() and path not in places:
            places.append(path)
    return places


def _delimiter(source: str) -> str:
    """A here-document delimiter that is no line of the source."""
    delimiter = "END_OF_SOURCE"
    lines = set(source.splitlines())
    while delimiter in lines:
        delimiter = f"END_OF_SOURCE_{_digest(delimiter + source)}"
    return delimiter


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:12]
