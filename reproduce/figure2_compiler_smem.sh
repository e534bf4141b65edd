#!/usr/bin/env bash
# Figure 2. Options as of `./ae figure2`; CHOREO=/path/to/choreo measures another compiler.
exec "$(dirname "$(readlink -f "$0")")/../ae" figure2 "$@"
