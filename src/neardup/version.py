"""The version, in a module that every layer may import."""

from typing import Final

VERSION: Final = "0.1.0"
