#!/usr/bin/env bash
# Table 2, the Triton rows. Options as of `./ae table2`; GPU=1 selects a device.
exec "$(dirname "$(readlink -f "$0")")/../ae" table2 --only tawa "$@"
