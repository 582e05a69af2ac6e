"""Entry point: `hexpatch` and `python -m hexpatch`."""


def main() -> None:
    """Run the command line."""
    import gc

    gc.disable()  # one short run: collecting lists of lines costs a tenth of it and frees nothing

    from hexpatch.cli import cli

    cli()


if __name__ == "__main__":
    main()
