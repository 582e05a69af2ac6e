"""A simulator of Qualcomm's Hexagon DSP: upstream's own kernels, compiled for this machine.

The modules that run inside the generated compiler (`root.TOOLS`) import nothing outside this
package: `root` copies them into the SDK that it writes.
"""
