/* The shapes through a network (Vaswani et al. 2017, sections 3.1 to 3.4) for sentences of given lengths, the causal
 * mask, and parameters a part. One table says what there is and its shape in letters; the letters' values come from the
 * network. */
#include <string.h>

#include "cli/inspect.h"

enum { MASK_TOKENS = 8 }; /* at most so many are shown */

static const struct {
    const char *stack, *what, *shape; /* a letter a dimension */
} rows[] = {
    {"encoder", "token ids, </s> at the end", "T"},
    {"encoder", "embeddings + positions", "TD"},
    {"encoder", "self-attention: a head's Query", "TK"},
    {"encoder", "  a head's Key", "TK"},
    {"encoder", "  a head's Value", "TK"},
    {"encoder", "  scores Q K' / sqrt(K), softmax", "TT"},
    {"encoder", "  a head's output A V", "TK"},
    {"encoder", "  all heads side by side", "TD"},
    {"encoder", "  output projection, Add&Norm", "TD"},
    {"encoder", "feed-forward: inside", "TF"},
    {"encoder", "  out, Add&Norm", "TD"},
    {"decoder", "token ids, <s> in front", "T"},
    {"decoder", "embeddings + positions", "TD"},
    {"decoder", "masked self-attention: Query, Key, Value", "TK"},
    {"decoder", "  scores with the causal mask, softmax", "TT"},
    {"decoder", "  all heads side by side", "TD"},
    {"decoder", "  output projection, Add&Norm", "TD"},
    {"decoder", "cross-attention: Query, from the decoder", "TK"},
    {"decoder", "  Key and Value, from the encoder's output", "SK"},
    {"decoder", "  scores, softmax", "TS"},
    {"decoder", "  all heads side by side", "TD"},
    {"decoder", "  output projection, Add&Norm", "TD"},
    {"decoder", "feed-forward: inside", "TF"},
    {"decoder", "  out, Add&Norm", "TD"},
    {"decoder", "logits, softmax: the next token", "TV"},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* T is the stack's own number of tokens, S the source's. */
static int64_t letter_value(const hw_inspected *pair, const char *stack, char letter)
{
    const hw_transformer_options *o = &pair->bundle->network->options;
    int64_t source = pair->source.count + 1, target = pair->target.count + 1;
    switch (letter) {
    case 'T':
        return *stack == 'e' ? source : target;
    case 'S':
        return source;
    case 'D':
        return o->width;
    case 'K':
        return o->width / o->heads;
    case 'F':
        return o->feed_forward;
    default:
        return o->target_vocabulary;
    }
}

/* ---- parameters -------------------------------------------------------------------------------------------------- */

/* Columns of the table: what a parameter of a layer belongs to. */
static const char *const kinds[] = {"self_attention.", "cross_attention.", "feed_forward.", "norm"};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* A part is a layer ("encoder.0"), or what stands outside of layers ("embedding"). */
typedef struct part {
    char name[64];
    int64_t kind[KINDS], total;
} part;

static size_t part_length(const char *name)
{
    size_t first = strcspn(name, ".");
    if (name[first] && name[first + 1] >= '0' && name[first + 1] <= '9')
        return first + 1 + strcspn(name + first + 1, ".");
    const char *last = strrchr(name, '.');
    return last ? (size_t)(last - name) : strlen(name);
}

/* -> their number; layers' come in the order of the layers. */
static int find_parts(const hw_transformer *m, part *parts)
{
    int count = 0;
    for (int i = 0; i < hw_parameters_count(m->parameters); i++) {
        const hw_parameter *p = hw_parameters_at(m->parameters, i);
        size_t length = part_length(p->name);
        int at = 0;
        while (at < count && (strlen(parts[at].name) != length || memcmp(parts[at].name, p->name, length))) at++;
        if (at == count) {
            parts[count] = (part){.total = 0};
            snprintf(parts[count++].name, sizeof parts[0].name, "%.*s", (int)length, p->name);
        }
        int64_t size = hw_tensor_size(&p->tensor);
        parts[at].total += size;
        for (int k = 0; k < KINDS; k++)
            if (p->name[length] && strstr(p->name + length, kinds[k]) && strchr(parts[at].name, '.'))
                parts[at].kind[k] += size;
    }
    return count;
}

static void print_parameters(hw_cli *cli, const hw_transformer *m)
{
    static const char *const headings[] = {"parameters", "self-att", "cross-att", "feed-forward", "norms", "total"};
    part *parts = hw_arena_alloc(cli->arena, (size_t)hw_parameters_count(m->parameters) * sizeof *parts);
    int count = find_parts(m, parts);
    char number[32];
    hw_cli_table *t = hw_cli_table_new(cli->arena, "lrrrrr");
    for (size_t i = 0; i < sizeof headings / sizeof *headings; i++) hw_cli_cell(t, "%s", headings[i]);
    for (int i = 0; i < count; i++) {
        hw_cli_cell(t, "  %s", parts[i].name);
        for (int k = 0; k < KINDS; k++)
            hw_cli_cell(t, "%s", parts[i].kind[k] ? hw_thousands(parts[i].kind[k], number) : "");
        hw_cli_cell(t, "%s", hw_thousands(parts[i].total, number));
    }
    hw_cli_cell(t, "  all");
    for (int k = 0; k < KINDS; k++) hw_cli_cell(t, "%s", "");
    hw_cli_cell(t, "%s", hw_thousands(hw_parameters_total(m->parameters), number));
    hw_cli_table_print(t, stdout);
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void print_stack(hw_cli *cli, const hw_inspected *pair, const char *stack)
{
    hw_cli_table *t = hw_cli_table_new(cli->arena, "lll");
    for (int i = 0; i < ROWS; i++) {
        if (strcmp(rows[i].stack, stack)) continue;
        char letters[32] = "", numbers[96] = "";
        for (const char *c = rows[i].shape; *c; c++) {
            const char *by = c == rows[i].shape ? "" : " x ";
            snprintf(letters + strlen(letters), sizeof letters - strlen(letters), "%s%c", by, *c);
            snprintf(numbers + strlen(numbers), sizeof numbers - strlen(numbers), "%s%lld", by,
                     (long long)letter_value(pair, stack, *c));
        }
        hw_cli_cell(t, "  %s", rows[i].what), hw_cli_cell(t, "%s", letters), hw_cli_cell(t, "%s", numbers);
    }
    hw_cli_table_print(t, stdout);
}

/* The textbook's mask, an upper triangle of -1e9 that is added to the scores; the kernel leaves those keys out instead.
 */
static void print_mask(hw_cli *cli, const hw_inspected *pair)
{
    int64_t n = pair->target.count + 1 < MASK_TOKENS ? pair->target.count + 1 : MASK_TOKENS;
    hw_cli_table *t = hw_cli_table_new(cli->arena, hw_arena_string(cli->arena, "l%.*s", (int)n, "rrrrrrrr"));
    hw_cli_cell(t, "  fed");
    for (int64_t k = 0; k < n; k++) hw_cli_cell(t, "%s", hw_inspect_fit(cli->arena, pair->fed_labels[k], 6));
    for (int64_t q = 0; q < n; q++) {
        hw_cli_cell(t, "  %s", hw_inspect_fit(cli->arena, pair->fed_labels[q], 10));
        for (int64_t k = 0; k < n; k++) hw_cli_cell(t, "%s", k > q ? "-1e9" : "0");
    }
    printf("\ncausal mask, added to the scores of masked self-attention before the softmax\n");
    hw_cli_table_print(t, stdout);
}

void hw_inspect_print_shapes(hw_cli *cli, const hw_inspected *pair, const char *name)
{
    const hw_transformer_options *o = &pair->bundle->network->options;
    printf("%s\n%lld + %lld layers, width D = %lld, H = %lld %s of width K = %lld,\n", name,
           (long long)o->encoder_layers, (long long)o->decoder_layers, (long long)o->width, (long long)o->heads,
           hw_plural(o->heads, "head", "heads"), (long long)(o->width / o->heads));
    printf("feed-forward F = %lld, vocabulary V = %lld\n", (long long)o->feed_forward, (long long)o->target_vocabulary);
    for (int i = 0; i < o->removed_count; i++) printf("%s%s", i ? ", " : "removed heads: ", o->removed_heads[i]);
    printf("%s\nencoder, each of %lld %s, T = %lld source tokens\n", o->removed_count ? "\n" : "",
           (long long)o->encoder_layers, hw_plural(o->encoder_layers, "layer", "layers"),
           (long long)pair->source.count + 1);
    print_stack(cli, pair, "encoder");
    printf("\ndecoder, each of %lld %s, T = %lld target tokens, S = %lld source tokens\n",
           (long long)o->decoder_layers, hw_plural(o->decoder_layers, "layer", "layers"),
           (long long)pair->target.count + 1, (long long)pair->source.count + 1);
    print_stack(cli, pair, "decoder");
    print_mask(cli, pair);
    putchar('\n');
    print_parameters(cli, pair->bundle->network);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static json_t *mask_json(int64_t n)
{
    json_t *mask = json_array();
    for (int64_t q = 0; q < n; q++) {
        json_t *row = json_array();
        for (int64_t k = 0; k < n; k++) json_array_append_new(row, json_real(k > q ? -1e9 : 0));
        json_array_append_new(mask, row);
    }
    return mask;
}

json_t *hw_inspect_shapes_json(const hw_inspected *pair)
{
    const hw_transformer *m = pair->bundle->network;
    json_t *root = json_object(), *shapes = json_array(), *parameters = json_object();
    for (int i = 0; i < ROWS; i++) {
        json_t *shape = json_array();
        for (const char *c = rows[i].shape; *c; c++)
            json_array_append_new(shape, json_integer(letter_value(pair, rows[i].stack, *c)));
        const char *what = rows[i].what + strspn(rows[i].what, " ");
        json_array_append_new(shapes, json_pack("{s:s, s:s, s:s, s:o}", "stack", rows[i].stack, "what", what, "letters",
                                                rows[i].shape, "shape", shape));
    }
    for (int i = 0; i < hw_parameters_count(m->parameters); i++) {
        const hw_parameter *p = hw_parameters_at(m->parameters, i);
        json_object_set_new(parameters, p->name, json_integer(hw_tensor_size(&p->tensor)));
    }
    json_object_set_new(root, "shapes", shapes);
    json_object_set_new(root, "causal_mask", mask_json(pair->target.count + 1));
    json_object_set_new(root, "parameters", parameters);
    json_object_set_new(root, "total", json_integer(hw_parameters_total(m->parameters)));
    return root;
}
