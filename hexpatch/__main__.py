"""Entry point: `hexpatch` and `python -m hexpatch`."""


def main() -> None:
    """Run the command line."""
    from hexpatch.cli import cli

    cli()


if __name__ == "__main__":
    main()
