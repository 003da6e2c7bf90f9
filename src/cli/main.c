/* The program's entry. All else stands in the library, so that tests can call it. */
#include "cli/cli.h"

int main(int argc, char **argv) { return hw_cli_main(argc, argv); }
