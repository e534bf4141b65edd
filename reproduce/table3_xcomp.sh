#!/usr/bin/env bash
# Table 3. Options as of `./ae table3`; GPU=1 selects a device, CHOREO=/path/to/choreo another compiler.
exec "$(dirname "$(readlink -f "$0")")/../ae" table3 "$@"
