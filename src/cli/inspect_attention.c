/* One pair through a trained network: log-probabilities a token, and each head's attention drawn in the terminal.
 *
 * A head is a grid of cells two columns wide, queries downwards, keys across, the darker the larger the weight. Query
 * words stand at the left, key words above, written downwards. As many heads stand side by side as fit 80 columns; a
 * grid that is wider alone is cut into pieces. Where the terminal has 256 colours a cell is a shade of blue, elsewhere
 * a block character. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/inspect.h"

enum {
    WIDTH = 80,
    LABEL = 10, /* columns of a query's word at most */
    CELL = 2,
    GAP = 2,                                /* between two grids at least */
    NAME = 9,                               /* "head 10" and a gap */
    MOST_KEYS = (WIDTH - LABEL - 1) / CELL, /* of one grid */
    TOKEN = 18,                             /* columns of a token in the list */
    HEADING = 10,                           /* lines of a key's word at most */
};

/* Does standard output go to a terminal with 256 colours that nobody asked to be plain (no-color.org)? */
static bool has_colour(void)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM"), *more = getenv("COLORTERM");
    if ((no && *no) || !isatty(STDOUT_FILENO) || !term || !strcmp(term, "dumb")) return false;
    return strstr(term, "256color") || (more && *more);
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

/* How many bytes the next character takes, with the marks that belong on it, and how many columns. */
static size_t next_character(const char *word, size_t size, int *columns)
{
    size_t end = 0;
    *columns = 0;
    for (int bytes; end < size; end += (size_t)bytes) {
        char one[8];
        hw_utf8_decode(word + end, size - end, &bytes);
        snprintf(one, sizeof one, "%.*s", bytes, word + end);
        int more = hw_cli_width(one);
        if (end && more) break;
        *columns += more;
    }
    return end;
}

const char *hw_inspect_fit(hw_arena *arena, const char *word, int columns)
{
    size_t size = strlen(word), end = 0, cut = 0;
    for (int taken = 0, next; end < size; taken += next) { /* cut: where it ends if … must stand behind it */
        size_t bytes = next_character(word + end, size - end, &next);
        if (taken + next > columns) break;
        end += bytes;
        if (taken + next < columns) cut = end;
    }
    return end == size ? word : hw_arena_string(arena, "%.*s…", (int)cut, word);
}

/* The first characters of a word, which are written below each other. */
typedef struct heading {
    int count;
    struct {
        const char *text;
        int bytes, columns;
    } lines[HEADING];
} heading;

static heading heading_of(const char *word)
{
    heading h = {.count = 0};
    size_t size = strlen(word);
    for (size_t at = 0, bytes; at < size && h.count < HEADING; at += bytes, h.count++) {
        bytes = next_character(word + at, size - at, &h.lines[h.count].columns);
        h.lines[h.count].text = word + at;
        h.lines[h.count].bytes = (int)bytes;
    }
    return h;
}

/* ---- cells ------------------------------------------------------------------------------------------------------- */

/* Shades from white to a dark blue of the 256-colour palette, and block characters with the weight from which each is
 * used. */
static const int palette[] = {231, 195, 153, 117, 75, 33, 27, 21, 19, 17};
static const struct {
    double from;
    const char *cell;
} blocks[] = {{0.75, "██"}, {0.5, "▓▓"}, {0.25, "▒▒"}, {0.05, "░░"}, {0, "  "}};
enum { SHADES = sizeof palette / sizeof *palette, BLOCKS = sizeof blocks / sizeof *blocks };

static void print_cell(FILE *out, double weight, bool masked, bool colour)
{
    if (masked) {
        fputs(" ·", out);
    } else if (colour) {
        int shade = weight >= 1 ? SHADES - 1 : weight > 0 ? (int)(weight * SHADES) : 0;
        fprintf(out, "\033[48;5;%dm  \033[0m", palette[shade]);
    } else {
        int i = 0;
        while (i < BLOCKS - 1 && !(weight >= blocks[i].from)) i++;
        fputs(blocks[i].cell, out);
    }
}

/* ---- grids ------------------------------------------------------------------------------------------------------- */

/* Some heads side by side, over keys first .. first + keys - 1. */
typedef struct band {
    hw_arena *arena;
    FILE *out;
    const hw_attention_map *map;
    const char **query_labels, **key_labels;
    bool masked, colour;
    int label, gap; /* columns of the query words; between two grids */
    int64_t head, heads, first, keys;
} band;

static void print_label(const band *b, const char *word)
{
    word = hw_inspect_fit(b->arena, word, b->label);
    fprintf(b->out, "%*s%s ", b->label - hw_cli_width(word), "", word);
}

/* Key words, written downwards and ending just above the grid. */
static void print_headings(const band *b)
{
    heading *words = hw_arena_alloc(b->arena, (size_t)b->keys * sizeof *words);
    int most = 0;
    for (int64_t k = 0; k < b->keys; k++) {
        words[k] = heading_of(b->key_labels[b->first + k]);
        if (words[k].count > most) most = words[k].count;
    }
    for (int line = 0; line < most; line++) {
        fprintf(b->out, "%*s", b->label + 1, "");
        for (int64_t i = 0; i < b->heads * b->keys; i++) {
            const heading *w = &words[i % b->keys];
            int at = line - (most - w->count), columns = at < 0 ? 0 : w->lines[at].columns;
            if (i && i % b->keys == 0) fprintf(b->out, "%*s", b->gap, "");
            if (at >= 0) fprintf(b->out, "%.*s", w->lines[at].bytes, w->lines[at].text);
            fprintf(b->out, "%*s", columns < CELL ? CELL - columns : 0, "");
        }
        fputc('\n', b->out);
    }
}

static void print_band(const band *b)
{
    const hw_attention_map *m = b->map;
    int block = (int)b->keys * CELL + b->gap;
    fprintf(b->out, "%*s", b->label + 1, "");
    for (int64_t h = 0; h < b->heads; h++)
        fprintf(b->out, "%-*s", h + 1 < b->heads ? block : 0, hw_arena_string(b->arena, "head %d", m->head_names[b->head + h]));
    fputc('\n', b->out);
    print_headings(b);
    for (int64_t q = 0; q < m->queries; q++) {
        print_label(b, b->query_labels[q]);
        for (int64_t h = 0; h < b->heads; h++) {
            if (h) fprintf(b->out, "%*s", b->gap, "");
            const hw_real *row = m->weights + ((b->head + h) * m->queries + q) * m->keys;
            for (int64_t k = b->first; k < b->first + b->keys; k++)
                print_cell(b->out, (double)row[k], b->masked && k > q, b->colour);
        }
        fputc('\n', b->out);
    }
}

/* Text with many blanks at the ends of its lines, without them. */
static void print_trimmed(const char *text)
{
    for (size_t length; *text; text += length + (text[length] == '\n')) {
        length = strcspn(text, "\n");
        size_t end = length;
        while (end && text[end - 1] == ' ') end--;
        fwrite(text, 1, end, stdout);
        putchar('\n');
    }
}

static void print_map(band *b)
{
    char *text = NULL;
    size_t size;
    const hw_attention_map *map = b->map;
    b->out = open_memstream(&text, &size);
    HW_CHECK(b->out, "no memory for a picture");
    for (b->first = 0; b->first < map->keys; b->first += MOST_KEYS) {
        b->keys = map->keys - b->first < MOST_KEYS ? map->keys - b->first : MOST_KEYS;
        b->gap = b->keys * CELL + GAP < NAME ? NAME - (int)b->keys * CELL : GAP;
        int64_t side_by_side = (WIDTH - b->label - 1 + b->gap) / (b->keys * CELL + b->gap);
        for (b->head = 0; b->head < map->heads; b->head += side_by_side) {
            b->heads = map->heads - b->head < side_by_side ? map->heads - b->head : side_by_side;
            print_band(b);
        }
    }
    fclose(b->out);
    print_trimmed(text);
    free(text);
}

void hw_inspect_print_map(hw_cli *cli, const hw_inspected *pair, const hw_attention_map *map)
{
    bool encoder = !strncmp(map->name, "encoder", 7), cross = strstr(map->name, "cross");
    band b = {.arena = cli->arena, .map = map, .masked = !encoder && !cross, .colour = has_colour()};
    b.query_labels = encoder ? pair->source_labels : pair->fed_labels;
    b.key_labels = encoder || cross ? pair->source_labels : pair->fed_labels;
    for (int64_t q = 0; q < map->queries; q++) {
        int columns = hw_cli_width(b.query_labels[q]);
        if (columns > b.label) b.label = columns < LABEL ? columns : LABEL;
    }
    printf("\n%s\n", map->name);
    print_map(&b);
}

/* ---- the pair ---------------------------------------------------------------------------------------------------- */

static void print_sentence(const char *side, const char *const *labels, int64_t count)
{
    char *text = NULL;
    size_t size;
    FILE *all = open_memstream(&text, &size);
    HW_CHECK(all, "no memory for a sentence");
    for (int64_t i = 0; i < count; i++) fprintf(all, "%s%s", i ? " " : "", labels[i]);
    fclose(all);
    int indent = printf("%s  ", side);
    hw_cli_wrap(stdout, text, indent, indent, WIDTH);
    putchar('\n');
    free(text);
}

static void print_log_probs(hw_cli *cli, const hw_inspected *pair, const hw_examined *x)
{
    hw_cli_table *t = hw_cli_table_new(cli->arena, "rllrr");
    static const char *const headings[] = {"", "fed", "predicts", "log-probability", "probability"};
    for (size_t i = 0; i < sizeof headings / sizeof *headings; i++) hw_cli_cell(t, "%s", headings[i]);
    double sum = 0;
    for (int64_t row = 0; row < x->rows; row++) {
        double log_prob = (double)x->log_probs[row];
        sum += log_prob;
        hw_cli_cell(t, "%lld", (long long)row);
        hw_cli_cell(t, "%s", hw_inspect_fit(cli->arena, pair->fed_labels[row], TOKEN));
        hw_cli_cell(t, "%s", hw_inspect_fit(cli->arena, pair->predicted_labels[row], TOKEN));
        hw_cli_cell(t, "%.4f", log_prob);
        hw_cli_cell(t, "%.1f %%", 100 * exp(log_prob));
    }
    hw_cli_table_print(t, stdout);
    printf("log-probability of the whole: %.4f\n", sum);
}

void hw_inspect_print_legend(void)
{
    printf("attention: a row reads from the columns above;\nin the decoder a row is the token fed, which predicts the "
           "next\n");
    if (has_colour()) return;
    for (int i = BLOCKS - 2; i >= 0; i--) printf("%s from %g %%   ", blocks[i].cell, 100 * blocks[i].from);
    printf(" · masked\n");
}

void hw_inspect_print_pair(hw_cli *cli, const hw_inspected *pair, const hw_examined *x)
{
    print_sentence("source", pair->source_labels, pair->source.count + 1);
    print_sentence("target", pair->predicted_labels, pair->target.count + 1);
    putchar('\n');
    print_log_probs(cli, pair, x);
    putchar('\n');
    hw_inspect_print_legend();
    for (int a = 0; a < x->attentions; a++) hw_inspect_print_map(cli, pair, &x->attention[a]);
}
