#include "support_report.h"

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <headwise/heads.h>

#include "support_files.h"
#include "support_toy.h"

enum { TRAIN = 60, VALID = 30, TEST = 20 };

static void copy_model(const char *name)
{
    char from[256], to[256];
    snprintf(from, sizeof from, "models/toy/%s", name);
    snprintf(to, sizeof to, "model/%s", name);
    size_t size;
    char *bytes = scratch_read(from, &size);
    ck_assert_msg(bytes != NULL, "%s is not there", from);
    scratch_write(to, bytes, size);
    free(bytes);
}

/* The configuration with another data.dir. */
static void copy_config(void)
{
    static const char key[] = "dir: \"data/toy\"";
    char *config = scratch_read("models/toy/config.yaml", NULL), *at = config ? strstr(config, key) : NULL;
    ck_assert_msg(at != NULL, "models/toy/config.yaml has no %s", key);
    FILE *out = fopen(scratch_path("model/config.yaml"), "w");
    ck_assert_ptr_nonnull(out);
    fprintf(out, "%.*sdir: \"%s\"%s", (int)(at - config), config, scratch_path("."), at + strlen(key));
    fclose(out);
    free(config);
}

void report_begin(void)
{
    scratch_begin();
    toy_copy("train", "train", TRAIN, false);
    toy_copy("valid", "valid", VALID, true);
    toy_copy("test", "test", TEST, true);
    ck_assert_int_eq(mkdir(scratch_path("model"), 0777), 0);
    copy_model("model.safetensors");
    copy_model("shared.vocab");
    copy_config();
}

void report_end(void) { scratch_end(); }

void report_set(const char *prefix, const char *source, const char *target)
{
    char name[256];
    snprintf(name, sizeof name, "%s.en", prefix);
    scratch_text(name, source);
    snprintf(name, sizeof name, "%s.fr", prefix);
    scratch_text(name, target);
}

char *report_page_with(const char *data, const char *option, const char *value)
{
    const char *model = scratch_path("model"), *page = scratch_path("page.html");
    const outcome *o = RUN("heads", "report", model, "-o", page, "--quiet", "--pairs", "4", "--threads", "1", "--data",
                           data ? data : "test", option, value);
    ck_assert_msg(o->status == 0, "%s", o->err);
    char *text = scratch_read(page, NULL);
    ck_assert_ptr_nonnull(text);
    return text;
}

char *report_page(const char *data) { return report_page_with(data, NULL, NULL); }

void report_experiments(void)
{
    const char *model = scratch_path("model");
    const outcome *o = RUN("heads", "prune", model, "--quiet", "--tsv");
    ck_assert_msg(o->status == 0, "%s", o->err);
    o = RUN("heads", "probe", model, "--quiet", "--tsv", "--words", "50", "--seeds", "1", "--label", "position");
    ck_assert_msg(o->status == 0, "%s", o->err);
    FILE *out = fopen(scratch_path("model/heads_trace.tsv"), "w");
    ck_assert_ptr_nonnull(out);
    fprintf(out, "%s\n", hw_trace_header);
    static const char *const found[] = {"001", "011", "100"}; /* by head: arises at 30, at 20, does not stay */
    for (int step = 0; step < 3; step++) {
        for (int h = 0; h < 3; h++)
            fprintf(out, "%d\tencoder.0.self.%d\tprevious\tpieces\t\t0.%d\t0.2\t0.01\t%c\n", 10 * (step + 1), h,
                    1 + 3 * step, found[h][step]);
        fprintf(out, "%d\tdecoder.0.self.1\tquote\tall\tpredicted\t\t\t1\t0\n", 10 * (step + 1));
        fprintf(out, "%d\tencoder.0.self.0\trelative_entropy\t\t\t0.5\t\t\t\n", 10 * (step + 1));
    }
    fclose(out);
}

json_t *report_data(const char *page)
{
    static const char begin[] = "id=\"data\">", end[] = "</script>";
    const char *from = strstr(page, begin), *to = from ? strstr(from, end) : NULL;
    ck_assert_ptr_nonnull(to);
    from += sizeof begin - 1;
    json_error_t why;
    json_t *json = json_loadb(from, (size_t)(to - from), 0, &why);
    ck_assert_msg(json != NULL, "the data of the page: %s", why.text);
    return json;
}
