/* What is made from the tables of commands and options to be installed: manual pages, completion. */
#ifndef HW_CLI_PAGES_H
#define HW_CLI_PAGES_H

#include "cli/cli.h"

/* Writes all of it into a directory, which is made where it is missing. Returns the exit status. */
int hw_cli_write_pages(const char *directory);

/* The completion of bash, a script to be sourced. */
void hw_cli_completion(FILE *out, hw_arena *arena);

#endif
