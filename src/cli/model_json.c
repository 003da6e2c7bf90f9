/* Tokens, log-probabilities and attention in JSON; see model_json.h. Numbers are not rounded. */
#include "cli/model_json.h"

#include <string.h>

json_t *hw_json_numbers(const hw_real *x, int64_t count)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < count; i++) json_array_append_new(list, hw_json_number((double)x[i]));
    return list;
}

json_t *hw_json_source_tokens(const hw_token *tokens, int64_t count)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < count; i++) json_array_append_new(list, hw_json_text_of(tokens[i].text, tokens[i].bytes));
    json_array_append_new(list, json_string("</s>"));
    return list;
}

json_t *hw_json_target_tokens(const hw_vocabulary *v, const int32_t *ids, int64_t count)
{
    json_t *list = json_array();
    json_array_append_new(list, json_string("<s>"));
    for (int64_t i = 0; i < count; i++) {
        size_t bytes;
        const char *text = hw_vocabulary_token(v, ids[i], &bytes);
        json_array_append_new(list, hw_json_text_of(text, bytes));
    }
    json_array_append_new(list, json_string("</s>"));
    return list;
}

static json_t *map_json(const hw_attention_map *map)
{
    json_t *heads = json_array();
    for (int64_t h = 0; h < map->heads; h++) {
        json_t *rows = json_array();
        for (int64_t q = 0; q < map->queries; q++)
            json_array_append_new(rows, hw_json_numbers(map->weights + (h * map->queries + q) * map->keys, map->keys));
        json_array_append_new(heads, rows);
    }
    return heads;
}

json_t *hw_json_attention(const hw_examined *x, const char *part)
{
    json_t *all = json_object();
    for (int a = 0; a < x->attentions; a++)
        if (strstr(x->attention[a].name, part))
            json_object_set_new(all, x->attention[a].name, map_json(&x->attention[a]));
    return all;
}

void hw_json_print(json_t *root, bool indented)
{
    HW_CHECK(root, "there is no JSON to print");
    json_dumpf(root, stdout, indented ? JSON_INDENT(2) : JSON_COMPACT);
    putchar('\n');
    json_decref(root);
}
