"""A simulator of Qualcomm's Hexagon DSP: upstream's own kernels, compiled for this machine.

This package's modules that take part in compiling (`cc`, `asmtext`, `asmrules`, `irmask`, `elfsym`,
`idl`) import nothing outside it: `root` copies them into the SDK it writes.
"""
