/* Messages, and the nearest name to a misspelt one.
 *
 * Every function of the library that can fail for a reason of the user's or the machine's writes one complete sentence
 * into hw_error and returns false or NULL. Printing is the command line's work. hw_abort is the other kind: a mistake
 * of the programmer, which no caller could handle. */
#include <headwise/base.h>

#include <stdlib.h>
#include <string.h>

/* A message that does not fit ends in "...", so that nobody takes it for whole. */
static void format_message(char *out, size_t size, const char *format, va_list arguments)
{
    int length = vsnprintf(out, size, format, arguments);
    if (length >= (int)size) memcpy(out + size - 4, "...", 4);
}

bool hw_fail(hw_error *err, const char *format, ...)
{
    if (!err) return false;
    hw_error new; /* the arguments may point into err->message */
    va_list arguments;
    va_start(arguments, format);
    format_message(new.message, sizeof new.message, format, arguments);
    va_end(arguments);
    memcpy(err->message, new.message, strlen(new.message) + 1);
    return false;
}

bool hw_fail_in(hw_error *err, const char *format, ...)
{
    if (!err) return false;
    hw_error context;
    va_list arguments;
    va_start(arguments, format);
    format_message(context.message, sizeof context.message, format, arguments);
    va_end(arguments);
    return hw_fail(err, "%s%s", context.message, err->message);
}

void hw_abort(const char *file, int line, const char *format, ...)
{
    fprintf(stderr, "headwise: %s:%d: ", file, line);
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    abort();
}

enum { LONGEST_NAME = 63 };

static int smaller(int a, int b) { return a < b ? a : b; }

/* Damerau-Levenshtein with neighbours swapped (optimal string alignment): how many letters to insert, delete, change,
 * or swap with the next. Names longer than LONGEST_NAME are as far as can be. */
static int edit_distance(const char *a, const char *b)
{
    int rows[3][LONGEST_NAME + 1];
    int n = (int)strnlen(a, LONGEST_NAME + 1), m = (int)strnlen(b, LONGEST_NAME + 1);
    if (n > LONGEST_NAME || m > LONGEST_NAME) return LONGEST_NAME;
    for (int j = 0; j <= m; j++) rows[0][j] = j;
    for (int i = 1; i <= n; i++) {
        int *row = rows[i % 3], *above = rows[(i + 2) % 3], *above2 = rows[(i + 1) % 3];
        row[0] = i;
        for (int j = 1; j <= m; j++) {
            row[j] = smaller(smaller(above[j], row[j - 1]) + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = smaller(row[j], above2[j - 2] + 1);
        }
    }
    return rows[n % 3][m];
}

const char *hw_nearest(const char *word, int count, const char *(*candidate)(int i, const void *argument),
                       const void *argument)
{
    const char *nearest = NULL;
    int least = 1 + (int)(strlen(word) / 3); /* a misspelling leaves two thirds of a word as it was */
    for (int i = 0; i < count; i++) {
        const char *name = candidate(i, argument);
        int distance = edit_distance(word, name);
        if (distance > least || (distance == least && nearest)) continue;
        nearest = name;
        least = distance;
    }
    return nearest;
}

const char *hw_thousands(int64_t number, char text[32])
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)number), sign = number < 0;
    char *to = text;
    for (int i = 0; i < length; i++) {
        if (i > sign && (length - i) % 3 == 0) *to++ = ',';
        *to++ = digits[i];
    }
    *to = 0;
    return text;
}

const char *hw_plural(int64_t number, const char *one, const char *many) { return number == 1 ? one : many; }

const char *hw_suggestion(const char *nearest, char text[HW_SUGGESTION])
{
    *text = 0;
    if (nearest) snprintf(text, HW_SUGGESTION, "; did you mean %s?", nearest);
    return text;
}
