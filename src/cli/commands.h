/* The subcommands, one line each: COMMAND(name, function, summary). The Makefile reads the names for bin/'s links. */
