/* Layer 1, config: YAML with places, and the one table of options.
 *
 * hw_yaml reads any YAML file into a tree whose every node knows its line and column, so that whoever reads the tree can say
 * exactly what is wrong where. hw_config is what a run is told; one table (src/config/options.c) drives its reading, its
 * checks, --set, --help-config and the documentation. */
#ifndef HEADWISE_CONFIG_H
#define HEADWISE_CONFIG_H

#include <headwise/base.h>

/* ---- YAML -------------------------------------------------------------------------------------------------------- */

typedef enum hw_yaml_kind { HW_YAML_SCALAR, HW_YAML_SEQUENCE, HW_YAML_MAPPING } hw_yaml_kind;

typedef struct hw_yaml {
    hw_yaml_kind kind;
    const char *file;        /* as it was given */
    int line, column;        /* from 1 */
    const char *text;        /* scalar: its text, ended by a 0 byte (a 0 byte inside is an error) */
    bool quoted;             /* scalar: it stood in quotes, so it is a string whatever it looks like */
    int count;               /* sequence, mapping: how many */
    struct hw_yaml **keys;   /* mapping: scalars */
    struct hw_yaml **items;  /* sequence: its items; mapping: its values */
} hw_yaml;

/* The tree lives in the arena. Errors: unreadable file, malformed YAML, repeated keys, anchors, aliases, tags, several
 * documents; each with file:line:column. An empty file is an empty mapping. */
hw_yaml *hw_yaml_load(hw_arena *arena, const char *path, hw_error *err);
hw_yaml *hw_yaml_parse(hw_arena *arena, const char *name, const char *text, size_t size, hw_error *err);

/* The value of key, or NULL. */
hw_yaml *hw_yaml_get(const hw_yaml *mapping, const char *key);

/* Writes "file:line:column: message" and returns false. */
bool hw_yaml_fail(const hw_yaml *at, hw_error *err, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Readers of one scalar, with the error at its place. `what` names it in messages ("model.heads"). */
bool hw_yaml_integer(const hw_yaml *node, const char *what, int64_t low, int64_t high, int64_t *out, hw_error *err);
bool hw_yaml_number(const hw_yaml *node, const char *what, double low, double high, double *out, hw_error *err);
bool hw_yaml_boolean(const hw_yaml *node, const char *what, bool *out, hw_error *err);
bool hw_yaml_string(const hw_yaml *node, const char *what, const char **out, hw_error *err);

/* Fails at the first key of the mapping that is not among the count allowed ones, naming the nearest. */
bool hw_yaml_known_keys(const hw_yaml *mapping, const char *const *allowed, int count, hw_error *err);

#endif
