"""Entry point: `hexpatch` and `python -m hexpatch`."""


def main() -> None:
    """Run the command line. This is one short run: memory is neither collected nor given back.

    Collecting would cost a tenth of it, and so would the end, where Python frees every line.
    """
    import signal

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # until a command runs, Ctrl-C ends this silently, as it ends any program
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    import gc
    import os
    import sys

    gc.disable()

    from hexpatch import quick

    status = quick.run(sys.argv[1:])
    if status is None:
        from hexpatch.cli import cli

        try:
            cli()
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
    # all is written by now; a bug's traceback is Python's to show
    os._exit(status or 0)


if __name__ == "__main__":
    main()
