"""What tests share: the checkout, and the type of the command line as a user meets it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
Command = Callable[..., "subprocess.CompletedProcess[str]"]
