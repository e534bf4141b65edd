#!/usr/bin/env bash
# Fetches the CUTLASS headers that table2 and census need, once; CUTLASS_HOME=/path uses a checkout instead.
exec "$(dirname "$(readlink -f "$0")")/../ae" cutlass "$@"
