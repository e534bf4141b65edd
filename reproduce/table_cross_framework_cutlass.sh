#!/usr/bin/env bash
# Table 2, the CUTLASS rows. Options as of `./ae table2`: --check is the default, --show-race runs refused unions, too.
exec "$(dirname "$(readlink -f "$0")")/../ae" table2 --only cutlass "$@"
