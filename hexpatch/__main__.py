"""Entry point: `hexpatch` and `python -m hexpatch`."""


def main() -> None:
    """Run the command line. This is one short run: memory is neither collected nor given back.

    Collecting would cost a tenth of it, and so would the end, where Python frees every line.
    """
    import gc
    import os

    gc.disable()

    from hexpatch.cli import cli

    try:
        cli()
    except SystemExit as end:  # all is written by now; anything else is a bug, for Python to show
        os._exit(end.code if isinstance(end.code, int) else end.code is not None)


if __name__ == "__main__":
    main()
