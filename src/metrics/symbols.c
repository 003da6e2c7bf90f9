/* Layer 9, metrics: lines as code points, with the meaning that Python's str gives to blanks and to lower case.
 *
 * str.split() and str.rstrip() take Unicode's white space and the separators 1C to 1F for blanks (U+200B is none).
 * str.lower() is Unicode's full mapping (chapter 3.13): U+0130 becomes two code points, and a capital sigma at the end
 * of a word the final one; who is cased or ignorable there follows DerivedCoreProperties.txt. A byte that is not UTF-8
 * becomes the lone surrogate U+DC00 + byte, as Python's "surrogateescape" has it, so that it is one character equal
 * only to itself. */
#include <utf8proc.h>

#include "metric.h"

typedef struct range {
    uint32_t first, last;
} range;

static bool in_ranges(uint32_t c, const range *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (c >= ranges[i].first && c <= ranges[i].last) return true;
    return false;
}
#define IN(c, ranges) in_ranges(c, ranges, sizeof(ranges) / sizeof *(ranges))

bool hw_symbol_is_space(uint32_t c)
{
    static const range spaces[] = {{0x1680, 0x1680}, {0x2000, 0x200a}, {0x2028, 0x2029},
                                   {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}};
    if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x1f);
    return c == 0x85 || c == 0xa0 || (c >= 0x1680 && IN(c, spaces));
}

hw_symbols hw_symbols_decode(hw_arena *arena, hw_span line)
{
    uint32_t *at = hw_arena_alloc(arena, (line.size + 1) * sizeof *at);
    int64_t size = 0;
    for (size_t i = 0; i < line.size;) {
        uint8_t first = (uint8_t)line.text[i];
        if (first < 0x80) {
            at[size++] = first;
            i++;
            continue;
        }
        int bytes;
        int32_t c = hw_utf8_decode(line.text + i, line.size - i, &bytes);
        at[size++] = c >= 0 ? (uint32_t)c : 0xdc00u + first;
        i += (size_t)bytes;
    }
    return (hw_symbols){at, size};
}

static bool is_cased(uint32_t c)
{
    static const range others[] = {{0xaa, 0xaa},       {0xba, 0xba},       {0x2160, 0x217f},  {0x24b6, 0x24e9},
                                   {0x1f130, 0x1f149}, {0x1f150, 0x1f169}, {0x1f170, 0x1f189}};
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
    return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL || category == UTF8PROC_CATEGORY_LT ||
           IN(c, others);
}

static bool is_case_ignorable(uint32_t c)
{
    static const range others[] = {{'\'', '\''},       {'.', '.'},         {':', ':'},         {0xb7, 0xb7},
                                   {0x387, 0x387},     {0x55f, 0x55f},     {0x5f4, 0x5f4},     {0x2018, 0x2019},
                                   {0x2024, 0x2024},   {0x2027, 0x2027},   {0xfe13, 0xfe13},   {0xfe52, 0xfe52},
                                   {0xfe55, 0xfe55},   {0xff07, 0xff07},   {0xff0e, 0xff0e},   {0xff1a, 0xff1a}};
    switch (utf8proc_category((utf8proc_int32_t)c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
        return true;
    default:
        return IN(c, others);
    }
}

/* Is the sigma at i the last letter of a word: a cased letter before it, none after it, ignorables passed over? */
static bool sigma_is_final(hw_symbols line, int64_t i)
{
    int64_t before = i - 1, after = i + 1;
    while (before >= 0 && is_case_ignorable(line.at[before])) before--;
    if (before < 0 || !is_cased(line.at[before])) return false;
    while (after < line.size && is_case_ignorable(line.at[after])) after++;
    return after == line.size || !is_cased(line.at[after]);
}

hw_symbols hw_symbols_lower(hw_arena *arena, hw_symbols line)
{
    uint32_t *at = hw_arena_alloc(arena, (size_t)(2 * line.size + 1) * sizeof *at);
    int64_t size = 0;
    for (int64_t i = 0; i < line.size; i++) {
        uint32_t c = line.at[i];
        if (c == 0x3a3 && sigma_is_final(line, i)) at[size++] = 0x3c2;
        else at[size++] = (uint32_t)utf8proc_tolower((utf8proc_int32_t)c);
        if (c == 0x130) at[size++] = 0x307;
    }
    return (hw_symbols){at, size};
}

hw_symbols hw_symbols_strip(hw_symbols line)
{
    while (line.size > 0 && hw_symbol_is_space(line.at[line.size - 1])) line.size--;
    return line;
}

hw_words hw_symbols_split(hw_arena *arena, hw_symbols line)
{
    hw_words words = {hw_arena_alloc(arena, (size_t)(line.size / 2 + 1) * sizeof *words.at), 0};
    for (int64_t i = 0; i < line.size;) {
        while (i < line.size && hw_symbol_is_space(line.at[i])) i++;
        int64_t start = i;
        while (i < line.size && !hw_symbol_is_space(line.at[i])) i++;
        if (i > start) words.at[words.size++] = (hw_symbols){line.at + start, i - start};
    }
    return words;
}
