"""``python -m hb_analyzer``."""

import sys

from .cli import main

sys.exit(main())
