#!/usr/bin/env bash
# Every step, or one of them: run_all.sh [STEP] [OPTIONS]; GPU= and CHOREO= as everywhere.
case "${1:-}" in "" | -*) set -- all "$@" ;; esac
exec "$(dirname "$(readlink -f "$0")")/../ae" "$@"
