/* A whole configuration: defaults, files, --set, saving, comparing, and the page that --help-config prints.
 *
 * A file is a mapping of sections to mappings of options. Each option remembers where it was set, so that an error that
 * two options make together (check.c) can still point into the file. */
#include "config/options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static const char *key_at(int i, const void *unused)
{
    (void)unused;
    return hw_options[i].key;
}

/* "heads" for model.heads: the commonest mistake is a key outside its section. */
static const char *nearest_key(const char *key)
{
    const char *dot = strrchr(key, '.'), *last = dot ? dot + 1 : key;
    for (int i = 0; i < hw_option_count; i++)
        if (!strcmp(strrchr(hw_options[i].key, '.') + 1, last)) return hw_options[i].key;
    return hw_nearest(key, hw_option_count, key_at, NULL);
}

static bool begins_section(const char *key, const char *section, size_t length)
{
    return !strncmp(key, section, length) && key[length] == '.';
}

/* The first option of a section, or NULL where there is no such section. */
static const char *first_of(const char *name)
{
    for (int i = 0; i < hw_option_count; i++)
        if (begins_section(hw_options[i].key, name, strlen(name))) return hw_options[i].key;
    return NULL;
}

static bool is_section(const char *name) { return first_of(name); }

static const char *name_at(int i, const void *names) { return ((const char *const *)names)[i]; }

static const char *nearest_section(const char *name, hw_arena *arena)
{
    const char **sections = hw_arena_alloc(arena, (size_t)hw_option_count * sizeof *sections);
    for (int i = 0; i < hw_option_count; i++)
        sections[i] = hw_arena_string(arena, "%.*s", (int)strcspn(hw_options[i].key, "."), hw_options[i].key);
    return hw_nearest(name, hw_option_count, name_at, sections);
}

static bool fail_unknown(hw_config *config, const hw_yaml *at, const char *key, hw_error *err)
{
    const char *nearest = nearest_key(key);
    if (!nearest) nearest = nearest_section(key, config->arena);
    if (nearest) return hw_yaml_fail(at, err, "unknown key %.80s; did you mean %s?", key, nearest);
    return hw_yaml_fail(at, err, "unknown key %.80s; headwise --help-config lists them", key);
}

static bool set_once(hw_config *config, int row, const hw_yaml *key, const hw_yaml *value, hw_error *err)
{
    if (config->places[row])
        return hw_yaml_fail(key, err, "%s is set here a second time; the first is %s", hw_options[row].key,
                            config->places[row]);
    return hw_option_set(config, row, value, err);
}

static bool read_mapping(hw_config *config, const hw_yaml *mapping, const char *section, hw_error *err)
{
    for (int i = 0; i < mapping->count; i++) {
        const hw_yaml *key = mapping->keys[i], *value = mapping->items[i];
        const char *name = *section ? hw_arena_string(config->arena, "%s.%s", section, key->text) : key->text;
        int row = hw_option_find(name);
        if (row >= 0) {
            if (!set_once(config, row, key, value, err)) return false;
        } else if (!is_section(name)) {
            return fail_unknown(config, key, name, err);
        } else if (value->kind == HW_YAML_MAPPING) {
            if (!read_mapping(config, value, name, err)) return false;
        } else if (value->kind != HW_YAML_SCALAR || *value->text) {
            return hw_yaml_fail(value, err, "%s: expected a mapping, its options below it, `key: value` a line", name);
        }
    }
    return true;
}

static hw_config *read_tree(hw_arena *arena, const hw_yaml *root, hw_error *err)
{
    if (!root) return NULL;
    hw_config *config = hw_config_new(arena);
    config->file = root->file;
    if (root->kind == HW_YAML_MAPPING) return read_mapping(config, root, "", err) ? config : NULL;
    hw_yaml_fail(root, err, "expected a mapping: sections such as `model:` with their options below them");
    return NULL;
}

hw_config *hw_config_load(hw_arena *arena, const char *path, hw_error *err)
{
    return read_tree(arena, hw_yaml_load(arena, path, err), err);
}

hw_config *hw_config_parse(hw_arena *arena, const char *name, const char *text, size_t size, hw_error *err)
{
    return read_tree(arena, hw_yaml_parse(arena, name, text, size, err), err);
}

/* A node as --set gives it: its place is the word "--set", or that of a command's own option. */
static hw_yaml *word_node(hw_arena *arena, const char *place, const char *text, size_t length)
{
    hw_yaml *node = hw_arena_calloc(arena, 1, sizeof *node);
    node->file = place;
    node->text = hw_arena_string(arena, "%.*s", (int)length, text);
    return node;
}

/* Without blanks around it, nor the quotes in which a list is printed. */
static hw_yaml *item_node(hw_arena *arena, const char *place, const char *text, size_t length)
{
    while (length && *text == ' ') text++, length--;
    while (length && text[length - 1] == ' ') length--;
    if (length > 1 && *text == '"' && text[length - 1] == '"') text++, length -= 2;
    return word_node(arena, place, text, length);
}

/* "a,b", or "[a, b]" as configurations have it */
static hw_yaml *list_node(hw_arena *arena, const char *place, const char *text)
{
    size_t left = strlen(text);
    hw_yaml *list = word_node(arena, place, "", 0);
    list->kind = HW_YAML_SEQUENCE;
    list->items = hw_arena_calloc(arena, left + 1, sizeof *list->items);
    if (left > 1 && *text == '[' && text[left - 1] == ']') text++, left -= 2;
    while (left) {
        const char *comma = memchr(text, ',', left);
        size_t length = comma ? (size_t)(comma - text) : left, all = length + (comma != NULL);
        list->items[list->count++] = item_node(arena, place, text, length);
        text += all;
        left -= all;
    }
    return list;
}

static bool set_from_text(hw_config *config, int row, const char *place, const char *text, hw_error *err)
{
    hw_option_kind kind = hw_options[row].kind;
    hw_yaml *node = kind == HW_OPTION_NAMES ? list_node(config->arena, place, text)
                                            : word_node(config->arena, place, text, strlen(text));
    node->quoted = kind == HW_OPTION_TEXT; /* an empty text is a text */
    return hw_option_set(config, row, node, err);
}

hw_config *hw_config_new(hw_arena *arena)
{
    hw_config *config = hw_arena_calloc(arena, 1, sizeof *config);
    config->arena = arena;
    config->places = hw_arena_calloc(arena, (size_t)hw_option_count, sizeof *config->places);
    for (int i = 0; i < hw_option_count; i++) {
        hw_error err = {""};
        HW_CHECK(set_from_text(config, i, "default", hw_options[i].initial, &err), "a default is wrong: %s", err.message);
        config->places[i] = NULL;
    }
    return config;
}

bool hw_config_set_from(hw_config *config, const char *place, const char *assignment, hw_error *err)
{
    const char *equals = strchr(assignment, '=');
    if (!equals || equals == assignment)
        return hw_fail(err, "%s: %s: expected key=value, such as model.heads=4", place, assignment);
    place = hw_arena_string(config->arena, "%s", place);
    hw_yaml *key = word_node(config->arena, place, assignment, (size_t)(equals - assignment));
    int row = hw_option_find(key->text);
    if (row < 0 && is_section(key->text))
        return hw_fail(err, "--set: %s is a section; name one of its options, such as %s=%s", key->text,
                       first_of(key->text), equals + 1);
    if (row < 0) return fail_unknown(config, key, key->text, err);
    return set_from_text(config, row, place, equals + 1, err);
}

bool hw_config_set(hw_config *config, const char *assignment, hw_error *err)
{
    return hw_config_set_from(config, "--set", assignment, err);
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

static int row_of(const char *key)
{
    int row = hw_option_find(key);
    HW_CHECK(row >= 0, "there is no option %s", key);
    return row;
}

const char *hw_config_value(const hw_config *config, const char *key, hw_arena *arena)
{
    return hw_option_text(config, row_of(key), arena);
}

const char *hw_config_place(const hw_config *config, const char *key) { return config->places[row_of(key)]; }

bool hw_config_require(const hw_config *config, const char *const *keys, hw_error *err)
{
    for (; *keys; keys++) {
        const hw_option *option = &hw_options[row_of(*keys)];
        const char *text = *(const char *const *)((const char *)config + option->offset);
        if (*text) continue;
        return hw_fail(err, "%s: %s is needed: the %s", config->file ? config->file : "configuration", *keys,
                       option->help);
    }
    return true;
}

hw_names hw_config_differences(const hw_config *a, const hw_config *b, hw_arena *arena)
{
    const char **keys = hw_arena_alloc(arena, (size_t)hw_option_count * sizeof *keys);
    int count = 0;
    for (int i = 0; i < hw_option_count; i++)
        if (strcmp(hw_option_text(a, i, arena), hw_option_text(b, i, arena))) keys[count++] = hw_options[i].key;
    return (hw_names){count, keys};
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* The option's name without its section; a heading goes before the first option of each. */
static const char *begin_row(FILE *out, int row)
{
    const char *key = hw_options[row].key;
    size_t length = strcspn(key, ".");
    if (row == 0 || !begins_section(hw_options[row - 1].key, key, length))
        fprintf(out, "%s%.*s:\n", row ? "\n" : "", (int)length, key);
    return key + length + 1;
}

static void write_complete(const hw_config *config, FILE *out)
{
    hw_arena *arena = hw_arena_new(0);
    for (int i = 0; i < hw_option_count; i++) {
        const char *name = begin_row(out, i);
        fprintf(out, "  %s: %s\n", name, hw_option_text(config, i, arena));
    }
    hw_arena_free(arena);
}

bool hw_config_save(const hw_config *config, const char *path, hw_error *err)
{
    hw_atomic file;
    if (!hw_atomic_begin(&file, path, err)) return false;
    write_complete(config, file.stream);
    return hw_atomic_commit(&file, err);
}

bool hw_config_is_saved(const char *path)
{
    hw_map map;
    char *text = NULL;
    size_t size = 0;
    if (!hw_map_open(&map, path, NULL)) return false;
    hw_arena *arena = hw_arena_new(0);
    const hw_config *config = hw_config_load(arena, path, NULL);
    FILE *out = config ? open_memstream(&text, &size) : NULL;
    if (out) {
        write_complete(config, out);
        fclose(out);
    }
    bool same = text && size == map.size && !memcmp(text, map.data, size);
    free(text);
    hw_arena_free(arena);
    hw_map_close(&map);
    return same;
}

const char *hw_config_text(const hw_config *config, bool (*leave_out)(const char *key), hw_arena *arena)
{
    const char *text = "";
    for (int i = 0; i < hw_option_count; i++)
        if (!leave_out(hw_options[i].key))
            text = hw_arena_string(arena, "%s%s: %s\n", text, hw_options[i].key, hw_option_text(config, i, arena));
    return text;
}

/* What may be given: "a whole number, at least 1". */
static void print_kind(FILE *out, const hw_option *option)
{
    static const char *const kinds[] = {
        [HW_OPTION_INTEGER] = "a whole number",
        [HW_OPTION_NUMBER] = "a number",
        [HW_OPTION_BOOLEAN] = "true or false",
        [HW_OPTION_TEXT] = "a text",
        [HW_OPTION_WORD] = "",
        [HW_OPTION_CHOICE] = "",
        [HW_OPTION_NAMES] = "a list of names",
    };
    fputs(kinds[option->kind], out);
    char word[64];
    for (int i = 0; hw_option_choice(option, i, word); i++) fprintf(out, "%s%s", i ? ", " : "", word);
    if (option->kind != HW_OPTION_INTEGER && option->kind != HW_OPTION_NUMBER) return;
    if (isfinite(option->high)) fprintf(out, ", %.10g to %.10g", option->low, option->high);
    else fprintf(out, ", at least %.10g", option->low);
}

/* The page is a configuration itself: every option with its default, explained in comments. */
void hw_config_help(FILE *out)
{
    hw_arena *arena = hw_arena_new(0);
    hw_config *config = hw_config_new(arena);
    for (int i = 0; i < hw_option_count; i++) {
        const hw_option *option = &hw_options[i];
        const char *name = begin_row(out, i);
        fputs("  # ", out);
        for (const char *c = option->help; *c; c++) {
            fputc(*c, out);
            if (*c == '\n') fputs("  # ", out);
        }
        fprintf(out, "\n  %s: %s    # ", name, hw_option_text(config, i, arena));
        print_kind(out, option);
        fputc('\n', out);
    }
    hw_arena_free(arena);
}
