#!/usr/bin/env bash
# Table 2, the compiler's rows, GEMM and attention. Options as of `./ae table2`; GPU= and CHOREO= as everywhere.
exec "$(dirname "$(readlink -f "$0")")/../ae" table2 --only xcomp "$@"
