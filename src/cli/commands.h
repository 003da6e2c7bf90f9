/* The subcommands, one line each: COMMAND(name, command, summary). The Makefile reads the names for bin/'s links; the help of
 * `headwise` lists them in this order. See cli.h for how to add one. */
