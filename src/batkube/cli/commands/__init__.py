"""Commands: one module for each subcommand of `batkube`."""
