/* One option's value: from a node of YAML into hw_config, and back into text that reads as the same value. */
#include "config/options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- in ---------------------------------------------------------------------------------------------------------- */

static const char *word_at(int i, const void *words) { return ((const char(*)[64])words)[i]; }

/* Which of the choices the node is; -1 and the message where it is none. */
static int choose(const hw_option *option, const hw_yaml *node, hw_error *err)
{
    const char *text;
    if (!hw_yaml_string(node, option->key, &text, err)) return -1;
    char words[16][64], list[512] = "";
    int count = 0;
    for (; count < 16 && hw_option_choice(option, count, words[count]); count++) {
        if (!strcmp(words[count], text)) return count;
        strcat(strcat(list, count ? ", " : ""), words[count]);
    }
    char suggestion[HW_SUGGESTION];
    hw_yaml_fail(node, err, "%s: %.60s is none of %s%s", option->key, text, list,
                 hw_suggestion(hw_nearest(text, count, word_at, words), suggestion));
    return -1;
}

static bool set_choice(hw_config *config, const hw_option *option, void *to, const hw_yaml *node, hw_error *err)
{
    int place = choose(option, node, err);
    if (place < 0) return false;
    if (option->kind == HW_OPTION_CHOICE) {
        *(int *)to = (int)option->low + place;
    } else {
        char word[64];
        hw_option_choice(option, place, word);
        *(const char **)to = hw_arena_string(config->arena, "%s", word);
    }
    return true;
}

static bool set_text(hw_config *config, const hw_option *option, const char **to, const hw_yaml *node, hw_error *err)
{
    const char *text;
    if (!hw_yaml_string(node, option->key, &text, err)) return false;
    if (hw_utf8_invalid(text, strlen(text)) >= 0)
        return hw_yaml_fail(node, err, "%s: this is not valid UTF-8, which the saved configuration must be",
                            option->key);
    *to = hw_arena_string(config->arena, "%s", text);
    return true;
}

static bool set_names(hw_config *config, const hw_option *option, hw_names *to, const hw_yaml *node, hw_error *err)
{
    if (node->kind != HW_YAML_SEQUENCE)
        return hw_yaml_fail(node, err, "%s: expected a list, [a, b] or a line `- a` each", option->key);
    const char **items = hw_arena_calloc(config->arena, (size_t)node->count + 1, sizeof *items);
    for (int i = 0; i < node->count; i++)
        if (!set_text(config, option, &items[i], node->items[i], err)) return false;
    *to = (hw_names){node->count, items};
    return true;
}

static bool set_value(hw_config *config, const hw_option *option, void *to, const hw_yaml *node, hw_error *err)
{
    switch (option->kind) {
    case HW_OPTION_INTEGER:
        return hw_yaml_integer(node, option->key, (int64_t)option->low,
                               option->high < 0x1p63 ? (int64_t)option->high : INT64_MAX, to, err);
    case HW_OPTION_NUMBER:
        return hw_yaml_number(node, option->key, option->low, option->high, to, err);
    case HW_OPTION_BOOLEAN:
        return hw_yaml_boolean(node, option->key, to, err);
    case HW_OPTION_TEXT:
        return set_text(config, option, to, node, err);
    case HW_OPTION_WORD:
    case HW_OPTION_CHOICE:
        return set_choice(config, option, to, node, err);
    case HW_OPTION_NAMES:
        return set_names(config, option, to, node, err);
    }
    return true;
}

bool hw_option_set(hw_config *config, int row, const hw_yaml *node, hw_error *err)
{
    const hw_option *option = &hw_options[row];
    if (!set_value(config, option, (char *)config + option->offset, node, err)) return false;
    config->places[row] = node->line ? hw_arena_string(config->arena, "%s:%d:%d", node->file, node->line, node->column)
                                     : hw_arena_string(config->arena, "%s", node->file);
    return true;
}

/* ---- out --------------------------------------------------------------------------------------------------------- */

/* The fewest digits that read back as the same number. */
static const char *number_text(double value, hw_arena *arena)
{
    char text[32];
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    return hw_arena_string(arena, "%s", text);
}

/* In double quotes, with YAML's escapes for what may not stand there as it is: quotes, backslashes, control characters,
 * line and paragraph separators, byte order marks and non-characters. */
static const char *quoted_text(const char *text, hw_arena *arena)
{
    size_t size = strlen(text);
    char *out = hw_arena_alloc(arena, size * 6 + 3), *to = out;
    *to++ = '"';
    int bytes;
    for (size_t i = 0; i < size; i += (size_t)bytes) {
        int32_t c = hw_utf8_decode(text + i, size - i, &bytes);
        bool plain = (c >= 0x20 && c < 0x7f) ||
                     (c >= 0xa0 && c != 0x2028 && c != 0x2029 && c != 0xfeff && c < 0xfffe) || c >= 0x10000;
        if (c == '"' || c == '\\') *to++ = '\\';
        if (plain) {
            memcpy(to, text + i, (size_t)bytes);
            to += bytes;
        } else {
            to += sprintf(to, c < 0x100 ? "\\x%02x" : "\\u%04x", (unsigned)c);
        }
    }
    *to++ = '"';
    *to = 0;
    return out;
}

static const char *names_text(const hw_names *names, hw_arena *arena)
{
    const char *text = "[";
    for (int i = 0; i < names->count; i++)
        text = hw_arena_string(arena, "%s%s%s", text, i ? ", " : "", quoted_text(names->items[i], arena));
    return hw_arena_string(arena, "%s]", text);
}

const char *hw_option_text(const hw_config *config, int row, hw_arena *arena)
{
    const hw_option *option = &hw_options[row];
    const void *from = (const char *)config + option->offset;
    char word[64] = "";
    switch (option->kind) {
    case HW_OPTION_INTEGER:
        return hw_arena_string(arena, "%lld", (long long)*(const int64_t *)from);
    case HW_OPTION_NUMBER:
        return number_text(*(const double *)from, arena);
    case HW_OPTION_BOOLEAN:
        return *(const bool *)from ? "true" : "false";
    case HW_OPTION_TEXT:
        return quoted_text(*(const char *const *)from, arena);
    case HW_OPTION_WORD:
        return *(const char *const *)from;
    case HW_OPTION_CHOICE:
        HW_CHECK(hw_option_choice(option, *(const int *)from - (int)option->low, word),
                 "%s is %d, which no word stands for", option->key, *(const int *)from);
        return hw_arena_string(arena, "%s", word);
    case HW_OPTION_NAMES:
        return names_text(from, arena);
    }
    return "";
}
