#!/usr/bin/env python3
"""Runs a file of tests with pytest; says `SKIP: ...` where a package is missing that it needs.

usage: run.py TEST.py[::TEST] [PACKAGE...] [cuda]     with the package attn_diag on PYTHONPATH, and ATTN_DIAG, the command
exit code: that of pytest; 0 where it is skipped
"""

import importlib.metadata
import importlib.util
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent

if __name__ == "__main__":
    needs = sys.argv[2:]
    missing = [name for name in ["pytest", *needs] if name != "cuda" and importlib.util.find_spec(name) is None]
    if missing:
        print(f"SKIP: {sys.executable} has no {', '.join(missing)} (tools/setup --python)")
        sys.exit(0)
    if "cuda" in needs:
        import torch
        if not torch.cuda.is_available():
            print("SKIP: torch sees no GPU")
            sys.exit(0)
    import pytest
    # In a build tree the plugin is on the path, not installed.
    installed = any(one.metadata["Name"] == "attn-diag" for one in importlib.metadata.distributions())
    sys.exit(pytest.main([str(FOLDER / sys.argv[1]), *([] if installed else ["-p", "attn_diag._pytest"]), "-p",
                          "no:cacheprovider", "-q", "--rootdir", str(FOLDER), "-W", "error"]))
