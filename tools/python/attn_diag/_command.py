"""The attn-diag command of the wheel."""

import os
import sys
from pathlib import Path


def main() -> None:
    program = Path(__file__).parent / "_tree" / "bin" / "attn-diag"
    try:
        os.execv(program, ["attn-diag", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"attn-diag: {program} cannot be run: {error.strerror}. Install the package again.")
