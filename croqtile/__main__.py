"""``python -m croqtile`` is the ``choreo`` command."""

import sys

from croqtile.cli import main

sys.exit(main())
