/* Layer 9, metrics: how BLEU cuts a line into tokens.
 *
 * 13a is the NIST's mteval-v13a.pl as WMT uses it, intl its mteval-v14.pl (punctuation and symbols of all of Unicode),
 * char cuts every character off, none leaves the line as it is. 13a and intl are lists of rules, each applied to the
 * whole line from left to right before the next begins; a rule sets blanks around one character of a class, or around
 * and within two neighbours. Its matches do not overlap: what a match took is not looked at again by that rule. The
 * blanks cut the line in the end. */
#include <string.h>
#include <utf8proc.h>

#include "metric.h"

typedef bool (*class_function)(uint32_t c);

/* The classes of 13a: ASCII, whatever else the text holds. Its punctuation is all of ASCII's but ' , - . with the
 * blank. */
static bool is_mark(uint32_t c)
{
    return (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') || c == '/' || (c >= ':' && c <= '@') ||
           (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}
static bool is_digit(uint32_t c) { return c >= '0' && c <= '9'; }
static bool is_not_digit(uint32_t c) { return !is_digit(c); }
static bool is_stop(uint32_t c) { return c == '.' || c == ','; }
static bool is_dash(uint32_t c) { return c == '-'; }

/* The classes of intl: Unicode's general categories N, P and S. */
static bool in_category(uint32_t c, utf8proc_category_t first, utf8proc_category_t last)
{
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
    return category >= first && category <= last;
}
static bool is_not_number(uint32_t c) { return !in_category(c, UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NO); }
static bool is_punctuation(uint32_t c) { return in_category(c, UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PO); }
static bool is_sign(uint32_t c) { return in_category(c, UTF8PROC_CATEGORY_SM, UTF8PROC_CATEGORY_SO); }

/* One or two neighbours, and where blanks come: before, between (two only), after. */
typedef struct rule {
    class_function first, second;
    bool before, between, after;
} rule;

static const rule rules_13a[] = {
    {is_mark, NULL, true, false, true},
    {is_not_digit, is_stop, false, true, true},
    {is_stop, is_not_digit, true, true, false},
    {is_digit, is_dash, false, true, true},
    {NULL, NULL, false, false, false},
};
static const rule rules_intl[] = {
    {is_not_number, is_punctuation, false, true, true},
    {is_punctuation, is_not_number, true, true, false},
    {is_sign, NULL, true, false, true},
    {NULL, NULL, false, false, false},
};

static hw_symbols apply_rule(hw_arena *arena, hw_symbols line, const rule *r)
{
    uint32_t *at = hw_arena_alloc(arena, (size_t)(3 * line.size + 1) * sizeof *at);
    int64_t size = 0;
    for (int64_t i = 0; i < line.size; i++) {
        bool match = r->first(line.at[i]);
        if (match && r->second) match = i + 1 < line.size && r->second(line.at[i + 1]);
        if (match && r->before) at[size++] = ' ';
        at[size++] = line.at[i];
        if (!match) continue;
        if (r->second) {
            if (r->between) at[size++] = ' ';
            at[size++] = line.at[++i];
        }
        if (r->after) at[size++] = ' ';
    }
    return (hw_symbols){at, size};
}

static hw_symbols apply_rules(hw_arena *arena, hw_symbols line, const rule *rules)
{
    for (; rules->first; rules++) line = apply_rule(arena, line, rules);
    return line;
}

static bool starts_with(hw_symbols line, int64_t at, const char *text)
{
    int64_t i = 0;
    while (text[i] && at + i < line.size && line.at[at + i] == (uint32_t)text[i]) i++;
    return !text[i];
}

/* Every occurrence of `from` by `to`, which is not longer. */
static hw_symbols replace(hw_arena *arena, hw_symbols line, const char *from, const char *to)
{
    uint32_t *at = hw_arena_alloc(arena, (size_t)(line.size + 1) * sizeof *at);
    int64_t size = 0, length = (int64_t)strlen(from);
    for (int64_t i = 0; i < line.size;) {
        if (!starts_with(line, i, from)) {
            at[size++] = line.at[i++];
            continue;
        }
        for (const char *c = to; *c; c++) at[size++] = (uint32_t)*c;
        i += length;
    }
    return (hw_symbols){at, size};
}

static hw_symbols cut_13a(hw_arena *arena, hw_symbols line)
{
    static const struct {
        const char *from, *to;
    } replacements[] = {{"<skipped>", ""}, {"-\n", ""},    {"\n", " "},   {"&quot;", "\""},
                        {"&amp;", "&"},    {"&lt;", "<"}, {"&gt;", ">"}};
    for (size_t i = 0; i < sizeof replacements / sizeof *replacements; i++)
        line = replace(arena, line, replacements[i].from, replacements[i].to);
    /* The rules look at neighbours: a blank at either end stands for the line's edge. */
    uint32_t *padded = hw_arena_alloc(arena, (size_t)(line.size + 2) * sizeof *padded);
    padded[0] = ' ';
    memcpy(padded + 1, line.at, (size_t)line.size * sizeof *padded);
    padded[line.size + 1] = ' ';
    return apply_rules(arena, (hw_symbols){padded, line.size + 2}, rules_13a);
}

static hw_symbols cut_intl(hw_arena *arena, hw_symbols line)
{
    return apply_rules(arena, line, rules_intl);
}

static hw_symbols cut_char(hw_arena *arena, hw_symbols line)
{
    uint32_t *at = hw_arena_alloc(arena, (size_t)(2 * line.size + 1) * sizeof *at);
    for (int64_t i = 0; i < line.size; i++) {
        at[2 * i] = line.at[i];
        at[2 * i + 1] = ' ';
    }
    return (hw_symbols){at, 2 * line.size};
}

static hw_symbols cut_none(hw_arena *arena, hw_symbols line)
{
    (void)arena;
    return line;
}

static const hw_cut cuts[] = {{"13a", cut_13a}, {"intl", cut_intl}, {"char", cut_char}, {"none", cut_none}};

const hw_cut *hw_cut_find(const char *name, hw_error *err)
{
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++)
        if (!strcmp(cuts[i].name, name)) return &cuts[i];
    hw_fail(err, "there is no tokenizer \"%s\" for BLEU: choose 13a, intl, char or none", name);
    return NULL;
}
