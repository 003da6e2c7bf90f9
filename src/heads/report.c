/* The report: one HTML page that holds the results of a study, its sentences, and the style and script that draw them.
 *
 * The files of src/heads/page/ are built into the program; page.html has marks, <!-- NAME -->, where style, data and
 * script go. The data is JSON within a script element that no browser runs. In it < is written \u003c, so that no text
 * of a corpus, such as </script>, is taken for HTML; the page's script writes text as text. Nothing is fetched. The
 * page holds no dates and no paths but those it is given, so equal results make equal bytes. */
#include <string.h>

#include <headwise/heads.h>

#include "report.h"

/* What stands at each mark, file after file. */
typedef struct part {
    const char *mark;
    const unsigned char *text;
} part;

static const part parts[] = {
    {"style", hw_page_style_css},     {"script", hw_page_base_js},    {"script", hw_page_data_js},
    {"script", hw_page_words_js},     {"script", hw_page_charts_js},  {"script", hw_page_matrix_js},
    {"script", hw_page_grid_js},      {"script", hw_page_card_js},    {"script", hw_page_explorer_js},
    {"script", hw_page_table_js},     {"script", hw_page_experiments_js},
    {"script", hw_page_sections_js},  {"script", hw_page_main_js},
};

static int write_json(const char *text, size_t size, void *stream)
{
    FILE *out = stream;
    for (const char *end = text + size, *next; text < end; text = next + 1) {
        next = memchr(text, '<', (size_t)(end - text));
        if (!next) return fwrite(text, 1, (size_t)(end - text), out) == (size_t)(end - text) ? 0 : -1;
        fwrite(text, 1, (size_t)(next - text), out);
        fputs("\\u003c", out);
    }
    return 0;
}

static void write_part(FILE *out, const char *mark, size_t size, const json_t *data)
{
    if (size == 4 && !memcmp(mark, "data", 4))
        json_dump_callback(data, write_json, out, JSON_COMPACT | JSON_REAL_PRECISION(7));
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strlen(parts[i].mark) == size && !memcmp(parts[i].mark, mark, size))
            fputs((const char *)parts[i].text, out);
}

void hw_report_write(FILE *out, const json_t *data)
{
    static const char begin[] = "<!-- ", end[] = " -->";
    const char *at = (const char *)hw_page_page_html, *mark;
    while ((mark = strstr(at, begin))) {
        const char *name = mark + sizeof begin - 1, *stop = strstr(name, end);
        HW_CHECK(stop, "a mark in page.html does not end");
        fwrite(at, 1, (size_t)(mark - at), out);
        write_part(out, name, (size_t)(stop - name), data);
        at = stop + sizeof end - 1;
    }
    fputs(at, out);
}
