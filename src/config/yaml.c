/* YAML as a tree whose nodes know where they stand.
 *
 * libyaml parses; this file keeps the small part of YAML 1.1 that configurations and grammars need (scalars, lists,
 * mappings) and refuses the rest with the place: anchors, aliases, tags, several documents, repeated keys. Scalars stay
 * text; what they mean is decided by whoever reads them, so `no` is a word and 1e-9 a number, whatever YAML's rules for
 * plain scalars say. */
#include <headwise/config.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

enum { DEEPEST = 64 };

typedef struct reading {
    yaml_parser_t parser;
    hw_arena *arena;
    const char *name, *text;
    size_t size;
    hw_error *err;
} reading;

/* ---- errors ------------------------------------------------------------------------------------------------------ */

bool hw_yaml_fail(const hw_yaml *at, hw_error *err, const char *format, ...)
{
    char message[sizeof err->message];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (!at->line) return hw_fail(err, "%s: %s", at->file, message);
    return hw_fail(err, "%s:%d:%d: %s", at->file, at->line, at->column, message);
}

static void fail_at(reading *r, yaml_mark_t mark, const char *message)
{
    hw_fail(r->err, "%s:%zu:%zu: %s", r->name, mark.line + 1, mark.column + 1, message);
}

/* Is a tab among the blanks that begin this line (counted from 0)? */
static bool indented_by_tab(const reading *r, size_t line)
{
    const char *at = r->text, *end = r->text + r->size;
    for (; line && at < end; line--) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        if (!newline) return false;
        at = newline + 1;
    }
    for (; at < end && (*at == ' ' || *at == '\t'); at++)
        if (*at == '\t') return true;
    return false;
}

/* What libyaml found wrong. Its reader counts bytes, all others lines. */
static void fail_parse(reading *r)
{
    const yaml_parser_t *p = &r->parser;
    if (p->error == YAML_MEMORY_ERROR) {
        hw_fail(r->err, "%s: out of memory", r->name);
        return;
    }
    if (p->error == YAML_READER_ERROR) {
        size_t line = 1, offset = p->problem_offset < r->size ? p->problem_offset : r->size, start = 0;
        for (size_t i = 0; i < offset; i++)
            if (r->text[i] == '\n') {
                line++;
                start = i + 1;
            }
        hw_fail(r->err, "%s:%zu:%zu: this byte is no UTF-8 text that YAML allows (%s)", r->name, line,
                offset - start + 1, p->problem);
        return;
    }
    char message[512];
    snprintf(message, sizeof message, "%s%s%s%s", p->problem, p->context ? " " : "", p->context ? p->context : "",
             indented_by_tab(r, p->problem_mark.line) ? "; YAML is indented by spaces, not tabs" : "");
    fail_at(r, p->problem_mark, message);
}

/* ---- the tree ---------------------------------------------------------------------------------------------------- */

static hw_yaml *new_node(reading *r, hw_yaml_kind kind, yaml_mark_t mark)
{
    hw_yaml *node = hw_arena_calloc(r->arena, 1, sizeof *node);
    node->kind = kind;
    node->file = r->name;
    node->line = (int)mark.line + 1;
    node->column = (int)mark.column + 1;
    return node;
}

static hw_yaml *scalar(reading *r, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;
    if (memchr(text, 0, length)) {
        fail_at(r, event->start_mark, "a zero byte cannot be part of a text");
        return NULL;
    }
    hw_yaml *node = new_node(r, HW_YAML_SCALAR, event->start_mark);
    node->text = hw_arena_copy(r->arena, text, length + 1);
    node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    return node;
}

/* Why this event cannot begin a node here, or NULL. */
static const char *refusal(const yaml_event_t *event, int depth)
{
    const yaml_char_t *anchor = NULL, *tag = NULL;
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
        break;
    case YAML_SEQUENCE_START_EVENT:
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
        break;
    case YAML_MAPPING_START_EVENT:
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
        break;
    default:
        return "aliases (*name) are not used here; write the value out";
    }
    if (anchor) return "anchors (&name) are not used here; write the value out";
    if (tag) return "tags (!name) are not used here";
    return depth > DEEPEST ? "lists and mappings are nested too deeply" : NULL;
}

/* A growing pair of arrays; keys stay NULL for sequences. */
static void append(reading *r, hw_yaml *node, int *room, hw_yaml *key, hw_yaml *item)
{
    if (node->count == *room) {
        int more = *room ? 2 * *room : 8;
        hw_yaml **items = hw_arena_calloc(r->arena, (size_t)more, sizeof *items);
        hw_yaml **keys = key ? hw_arena_calloc(r->arena, (size_t)more, sizeof *keys) : NULL;
        if (node->count) memcpy(items, node->items, (size_t)node->count * sizeof *items);
        if (node->count && key) memcpy(keys, node->keys, (size_t)node->count * sizeof *keys);
        node->items = items;
        node->keys = keys;
        *room = more;
    }
    if (key) node->keys[node->count] = key;
    node->items[node->count++] = item;
}

static int by_text_then_place(const void *a, const void *b)
{
    const hw_yaml *x = *(hw_yaml *const *)a, *y = *(hw_yaml *const *)b;
    int order = strcmp(x->text, y->text);
    if (order) return order;
    return x->line != y->line ? x->line - y->line : x->column - y->column;
}

static bool keys_differ(reading *r, const hw_yaml *mapping)
{
    if (mapping->count < 2) return true;
    hw_yaml **sorted = hw_arena_copy(r->arena, mapping->keys, (size_t)mapping->count * sizeof *sorted);
    qsort(sorted, (size_t)mapping->count, sizeof *sorted, by_text_then_place);
    for (int i = 1; i < mapping->count; i++)
        if (!strcmp(sorted[i - 1]->text, sorted[i]->text))
            return hw_yaml_fail(sorted[i], r->err, "the key %.80s stands here a second time; the first is in line %d",
                                sorted[i]->text, sorted[i - 1]->line);
    return true;
}

static hw_yaml *read_node(reading *r, const yaml_event_t *event, int depth);

/* Reads the next event and, unless it is `end`, the node that it begins. *ended tells which. */
static hw_yaml *read_next(reading *r, yaml_event_type_t end, bool *ended, int depth)
{
    yaml_event_t event;
    *ended = false;
    if (!yaml_parser_parse(&r->parser, &event)) {
        fail_parse(r);
        return NULL;
    }
    hw_yaml *node = NULL;
    if (event.type == end)
        *ended = true;
    else
        node = read_node(r, &event, depth);
    yaml_event_delete(&event);
    return node;
}

static hw_yaml *read_collection(reading *r, const yaml_event_t *event, int depth)
{
    bool mapping = event->type == YAML_MAPPING_START_EVENT, ended;
    yaml_event_type_t end = mapping ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;
    hw_yaml *node = new_node(r, mapping ? HW_YAML_MAPPING : HW_YAML_SEQUENCE, event->start_mark);
    for (int room = 0;;) {
        hw_yaml *key = NULL, *item = read_next(r, end, &ended, depth + 1);
        if (ended) return !mapping || keys_differ(r, node) ? node : NULL;
        if (item && mapping) {
            key = item;
            if (key->kind != HW_YAML_SCALAR) {
                hw_yaml_fail(key, r->err, "a key must be a single word, not a list or mapping");
                return NULL;
            }
            item = read_next(r, YAML_NO_EVENT, &ended, depth + 1);
        }
        if (!item) return NULL;
        append(r, node, &room, key, item);
    }
}

static hw_yaml *read_node(reading *r, const yaml_event_t *event, int depth)
{
    const char *why = refusal(event, depth);
    if (why) {
        fail_at(r, event->start_mark, why);
        return NULL;
    }
    return event->type == YAML_SCALAR_EVENT ? scalar(r, event) : read_collection(r, event, depth);
}

/* Steps over an event that only says where the stream or a document begins or ends. */
static bool next_type(reading *r, yaml_event_type_t *type, yaml_mark_t *mark)
{
    yaml_event_t event;
    if (!yaml_parser_parse(&r->parser, &event)) {
        fail_parse(r);
        return false;
    }
    *type = event.type;
    *mark = event.start_mark;
    yaml_event_delete(&event);
    return true;
}

static hw_yaml *read_stream(reading *r)
{
    yaml_event_type_t type;
    yaml_mark_t mark;
    if (!next_type(r, &type, &mark) || !next_type(r, &type, &mark)) return NULL;
    if (type == YAML_STREAM_END_EVENT) return new_node(r, HW_YAML_MAPPING, (yaml_mark_t){0});
    bool ended;
    hw_yaml *root = read_next(r, YAML_NO_EVENT, &ended, 0);
    if (!root || !next_type(r, &type, &mark) || !next_type(r, &type, &mark)) return NULL;
    if (type == YAML_STREAM_END_EVENT) return root;
    fail_at(r, mark, "a second document begins here; one file holds one");
    return NULL;
}

hw_yaml *hw_yaml_parse(hw_arena *arena, const char *name, const char *text, size_t size, hw_error *err)
{
    if (size >= 3 && !memcmp(text, "\xEF\xBB\xBF", 3)) {
        text += 3;
        size -= 3;
    }
    reading r = {.arena = arena, .name = hw_arena_string(arena, "%s", name), .text = text, .size = size, .err = err};
    if (!yaml_parser_initialize(&r.parser)) {
        hw_fail(err, "%s: out of memory", name);
        return NULL;
    }
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)(text ? text : ""), size);
    hw_yaml *root = read_stream(&r);
    yaml_parser_delete(&r.parser);
    return root;
}

hw_yaml *hw_yaml_load(hw_arena *arena, const char *path, hw_error *err)
{
    hw_map map;
    if (!hw_map_open(&map, path, err)) return NULL;
    hw_yaml *root = hw_yaml_parse(arena, path, (const char *)map.data, map.size, err);
    hw_map_close(&map);
    return root;
}

/* ---- reading the tree -------------------------------------------------------------------------------------------- */

hw_yaml *hw_yaml_get(const hw_yaml *mapping, const char *key)
{
    if (mapping->kind != HW_YAML_MAPPING) return NULL;
    for (int i = 0; i < mapping->count; i++)
        if (!strcmp(mapping->keys[i]->text, key)) return mapping->items[i];
    return NULL;
}

/* "a list", or the text itself, cut where it is long. */
static const char *found(const hw_yaml *node, char out[96])
{
    if (node->kind == HW_YAML_SEQUENCE) return "a list";
    if (node->kind == HW_YAML_MAPPING) return "a mapping";
    if (!*node->text && !node->quoted) return "nothing";
    const char *quote = node->quoted ? "\"" : "";
    snprintf(out, 96, "%s%.60s%s%s", quote, node->text, strlen(node->text) > 60 ? "..." : "", quote);
    return out;
}

static bool fail_kind(const hw_yaml *node, const char *what, const char *expected, hw_error *err)
{
    char text[96];
    return hw_yaml_fail(node, err, "%s: expected %s, found %s", what, expected, found(node, text));
}

/* The range in words. A bound that is no bound is not named; numbers are given as text. */
static bool fail_range(const hw_yaml *node, const char *what, const char *low, const char *high, hw_error *err)
{
    char text[96];
    const char *value = found(node, text);
    if (low && high)
        return hw_yaml_fail(node, err, "%s: %s is out of range; it goes from %s to %s", what, value, low, high);
    return hw_yaml_fail(node, err, "%s: %s is too %s; it must be at %s %s", what, value, low ? "small" : "large",
                        low ? "least" : "most", low ? low : high);
}

/* Only digits, with a sign. */
static bool looks_whole(const char *text)
{
    if (*text == '-' || *text == '+') text++;
    return *text && strspn(text, "0123456789") == strlen(text);
}

bool hw_yaml_integer(const hw_yaml *node, const char *what, int64_t low, int64_t high, int64_t *out, hw_error *err)
{
    if (node->kind != HW_YAML_SCALAR || node->quoted || !looks_whole(node->text))
        return fail_kind(node, what, "a whole number", err);
    errno = 0;
    long long value = strtoll(node->text, NULL, 10);
    if (errno || value < low || value > high) {
        char least[32], most[32];
        snprintf(least, sizeof least, "%lld", (long long)low);
        snprintf(most, sizeof most, "%lld", (long long)high);
        return fail_range(node, what, low == INT64_MIN || (high == INT64_MAX && value > low) ? NULL : least,
                          high == INT64_MAX && value < low ? NULL : most, err);
    }
    *out = value;
    return true;
}

/* Decimal notation only: no hexadecimal, no infinity, no NaN. */
static bool looks_decimal(const char *text)
{
    if (*text == '-' || *text == '+') text++;
    size_t whole = strspn(text, "0123456789");
    text += whole;
    size_t fraction = *text == '.' ? strspn(text + 1, "0123456789") : 0;
    if (*text == '.') text += 1 + fraction;
    if (!whole && !fraction) return false;
    return !*text || ((*text == 'e' || *text == 'E') && looks_whole(text + 1));
}

bool hw_yaml_number(const hw_yaml *node, const char *what, double low, double high, double *out, hw_error *err)
{
    if (node->kind != HW_YAML_SCALAR || node->quoted || !looks_decimal(node->text))
        return fail_kind(node, what, "a number", err);
    double value = strtod(node->text, NULL);
    if (!isfinite(value) || value < low || value > high) {
        char least[32], most[32];
        snprintf(least, sizeof least, "%g", low);
        snprintf(most, sizeof most, "%g", isfinite(high) ? high : 1.7976931348623157e308);
        return fail_range(node, what, !isfinite(low) || (!isfinite(high) && value > low) ? NULL : least,
                          !isfinite(high) && value < low ? NULL : most, err);
    }
    *out = value;
    return true;
}

bool hw_yaml_boolean(const hw_yaml *node, const char *what, bool *out, hw_error *err)
{
    bool scalar_word = node->kind == HW_YAML_SCALAR && !node->quoted;
    if (!scalar_word || (strcmp(node->text, "true") && strcmp(node->text, "false")))
        return fail_kind(node, what, "true or false", err);
    *out = node->text[0] == 't';
    return true;
}

/* What YAML reads as nothing is no text. */
static bool is_null(const hw_yaml *node)
{
    return !node->quoted && (!*node->text || !strcmp(node->text, "~") || !strcmp(node->text, "null"));
}

bool hw_yaml_string(const hw_yaml *node, const char *what, const char **out, hw_error *err)
{
    if (node->kind != HW_YAML_SCALAR || is_null(node))
        return fail_kind(node, what, node->kind == HW_YAML_SCALAR ? "a text (\"\" if it is to be empty)" : "a text",
                         err);
    *out = node->text;
    return true;
}

static const char *name_at(int i, const void *names) { return ((const char *const *)names)[i]; }

bool hw_yaml_known_keys(const hw_yaml *mapping, const char *const *allowed, int count, hw_error *err)
{
    if (mapping->kind != HW_YAML_MAPPING) return hw_yaml_fail(mapping, err, "expected a mapping, `key: value` a line");
    for (int i = 0; i < mapping->count; i++) {
        const char *key = mapping->keys[i]->text;
        int known = 0;
        while (known < count && strcmp(allowed[known], key)) known++;
        if (known < count) continue;
        char suggestion[HW_SUGGESTION];
        return hw_yaml_fail(mapping->keys[i], err, "unknown key %.80s%s", key,
                            hw_suggestion(hw_nearest(key, count, name_at, allowed), suggestion));
    }
    return true;
}
