/* Any bytes as a configuration and as a grammar: each is read, or refused with a message. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hw_error err;
    char path[64];
    hw_arena *arena = hw_arena_new(0);
    hw_config *config = hw_config_parse(arena, "fuzz.yaml", (const char *)data, size, &err);
    if (config) hw_config_check(config, &(hw_names){0}, &err);
    int file = fuzz_file(data, size, path);
    hw_grammar_free(hw_grammar_load(path, &err));
    close(file);
    hw_arena_free(arena);
    return 0;
}
