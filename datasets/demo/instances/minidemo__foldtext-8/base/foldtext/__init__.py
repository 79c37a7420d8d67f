"""Folds plain text to a width."""

from .blocks import Block, split_blocks
from .fold import fold
from .lines import fill_lines

__all__ = ["Block", "fill_lines", "fold", "split_blocks"]
