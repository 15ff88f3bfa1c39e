"""pytest-autofix: `pytest --autosolve` repairs failing tests in a sandbox.

Only the standard library is imported here, since production code may import this module.
"""

from __future__ import annotations

__all__ = ["__version__"]
__version__ = "0.1.0"
