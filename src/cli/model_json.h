/* Layer 12: what translate, inspect and evaluate say about a model's work in JSON (with the library jansson). */
#ifndef HW_CLI_MODEL_JSON_H
#define HW_CLI_MODEL_JSON_H

#include <headwise/decode.h>
#include <jansson.h>

/* [count]; null where a number is not finite. */
json_t *hw_json_numbers(const hw_real *x, int64_t count);

/* [tokens + 1] the source as the encoder reads it, with </s>. */
json_t *hw_json_source_tokens(const hw_token *tokens, int64_t count);
/* [count + 2] the target with <s> and </s>. */
json_t *hw_json_target_tokens(const hw_vocabulary *v, const int32_t *ids, int64_t count);

/* "encoder.0.self": [heads][queries][keys] for the attentions whose name contains `part`. */
json_t *hw_json_attention(const hw_examined *x, const char *part);

/* Prints it on one line or, indented, on several, and gives it back. */
void hw_json_print(json_t *root, bool indented);

#endif
