#!/usr/bin/env bash
# Figure 3. Options as of `./ae figure3`; GPU=1 selects a device, CHOREO=/path/to/choreo another compiler.
exec "$(dirname "$(readlink -f "$0")")/../ae" figure3 "$@"
