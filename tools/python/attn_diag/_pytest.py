"""The pytest plugin: the fixture assert_attention, and where what fails is written."""

from __future__ import annotations

from typing import Any

import pytest

from . import testing


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("attn-diag").addoption(
        "--attn-diag-dump", metavar="DIR", default=None,
        help="write the cases in which assert_attention fails to DIR (a new temporary folder)")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--attn-diag-dump") is not None:
        testing.dump_directory = config.getoption("--attn-diag-dump")


@pytest.fixture
def assert_attention() -> Any:
    """attn_diag.testing.assert_attention: assert_attention(o, q, k, v, lse=None, mask="causal", ...)."""
    return testing.assert_attention
