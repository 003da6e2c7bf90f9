/* UTF-8 as the Unicode Standard defines it (version 15, section 3.9, table 3-7): no overlong forms, no surrogates,
 * nothing beyond U+10FFFF. */
#include <headwise/base.h>

#include <string.h>

/* What may follow a first byte from 0xC2 on: how many bytes in all, and the range of the second. All later ones are in
 * 80..BF. */
static const struct {
    uint8_t first, last, length, second_low, second_high;
} forms[] = {
    {0xC2, 0xDF, 2, 0x80, 0xBF}, {0xE0, 0xE0, 3, 0xA0, 0xBF}, {0xE1, 0xEC, 3, 0x80, 0xBF},
    {0xED, 0xED, 3, 0x80, 0x9F}, {0xEE, 0xEF, 3, 0x80, 0xBF}, {0xF0, 0xF0, 4, 0x90, 0xBF},
    {0xF1, 0xF3, 4, 0x80, 0xBF}, {0xF4, 0xF4, 4, 0x80, 0x8F},
};

int32_t hw_utf8_decode(const char *text, size_t size, int *bytes)
{
    const uint8_t *s = (const uint8_t *)text;
    *bytes = 1;
    if (!size) return -1;
    if (s[0] < 0x80) return s[0];
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        if (s[0] < forms[f].first || s[0] > forms[f].last) continue;
        int length = forms[f].length;
        if (size < (size_t)length || s[1] < forms[f].second_low || s[1] > forms[f].second_high) return -1;
        int32_t codepoint = s[0] & (0x7F >> length);
        for (int i = 1; i < length; i++) {
            if ((s[i] & 0xC0) != 0x80) return -1;
            codepoint = codepoint << 6 | (s[i] & 0x3F);
        }
        *bytes = length;
        return codepoint;
    }
    return -1;
}

int hw_utf8_encode(int32_t codepoint, char *out)
{
    uint32_t c = (uint32_t)codepoint;
    if (c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) c = 0xFFFD;
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    int length = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (int i = length - 1; i > 0; i--, c >>= 6) out[i] = (char)(0x80 | (c & 0x3F));
    out[0] = (char)(0xF00 >> length | c);
    return length;
}

int64_t hw_utf8_invalid(const char *text, size_t size)
{
    for (size_t i = 0; i < size;) {
        uint64_t eight; /* most text is ASCII */
        if (size - i >= 8 && (memcpy(&eight, text + i, 8), !(eight & 0x8080808080808080u))) {
            i += 8;
            continue;
        }
        int bytes;
        if (hw_utf8_decode(text + i, size - i, &bytes) < 0) return (int64_t)i;
        i += (size_t)bytes;
    }
    return -1;
}

size_t hw_utf8_mend(const char *text, size_t size, char *out)
{
    char *to = out;
    int bytes;
    for (size_t at = 0; at < size; at += (size_t)bytes) {
        int32_t codepoint = hw_utf8_decode(text + at, size - at, &bytes);
        to += hw_utf8_encode(codepoint < 0 ? 0xFFFD : codepoint, to);
    }
    *to = 0;
    return (size_t)(to - out);
}
