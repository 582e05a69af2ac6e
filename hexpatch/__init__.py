"""hexpatch: keep a stack of patches on llama.cpp, move it, prove it, export it."""

__version__ = "0.1.0"
