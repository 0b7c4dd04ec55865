"""`python -m ctxproxy`: the same as the command `ctxproxy`."""

from __future__ import annotations

import sys

from ctxproxy.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
