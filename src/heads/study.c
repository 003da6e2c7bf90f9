/* The data of a study: pairs of sentences cut into words and tokens, with the gold that stands beside them, whole or as
 * a stream.
 *
 * Gold speaks of words, which are what blanks separate; attention is between tokens. So every token is given to a word:
 * see hw_word_tokens. */
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include <headwise/heads.h>

/* ---- one line ---------------------------------------------------------------------------------------------------- */

static bool is_punctuation(const char *text, size_t bytes)
{
    int step;
    for (size_t at = 0; at < bytes; at += (size_t)step) {
        int32_t codepoint = hw_utf8_decode(text + at, bytes - at, &step);
        utf8proc_category_t category = codepoint < 0 ? UTF8PROC_CATEGORY_CN : utf8proc_category(codepoint);
        if (category < UTF8PROC_CATEGORY_PC || category > UTF8PROC_CATEGORY_SO) return false;
    }
    return bytes;
}

static int32_t rank_of(int32_t id) { return id == HW_UNKNOWN ? INT32_MAX : id; }

static int32_t rarest(const hw_tokens *all, int64_t from, int64_t count)
{
    int32_t rank = 0;
    for (int64_t i = from; i < from + count; i++)
        if (rank_of(all->items[i].id) > rank) rank = rank_of(all->items[i].id);
    return rank;
}

static bool ends_in(const char *text, size_t bytes, const char *mark)
{
    size_t size = strcspn(mark, " \t");
    return size && bytes >= size && !memcmp(text + bytes - size, mark, size);
}

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

static void split_words(const hw_side *side, const char *mark, const char *line, size_t bytes, const hw_tokens *all,
                        hw_arena *arena, hw_sentence *out)
{
    int64_t count, at = 0;
    const int32_t *tokens = hw_word_tokens(side, line, bytes, all, arena, &count);
    hw_study_word *words = hw_arena_alloc(arena, ((size_t)count + 1) * sizeof *words);
    size_t from = 0, size;
    for (int64_t w = 0; w < count; w++, from += size) {
        while (is_blank(line[from])) from++;
        for (size = 0; from + size < bytes && !is_blank(line[from + size]); size++) continue;
        words[w] = (hw_study_word){.text = line + from,
                                   .bytes = size,
                                   .first = (int32_t)at,
                                   .count = tokens[w],
                                   .rank = rarest(all, at, tokens[w]),
                                   .punctuation = is_punctuation(line + from, size),
                                   .goes_on = ends_in(line + from, size, mark)};
        at += tokens[w];
    }
    out->count = (int32_t)count;
    out->words = words;
}

/* Every token as a word of its own. */
static void split_tokens(const hw_sentence *by_words, const hw_tokens *all, const char *mark, hw_arena *arena,
                         hw_sentence *out)
{
    hw_study_word *units = hw_arena_alloc(arena, ((size_t)all->count + 1) * sizeof *units);
    for (int32_t w = 0; w < by_words->count; w++) {
        const hw_study_word *word = &by_words->words[w];
        for (int32_t t = word->first; t < word->first + word->count; t++) {
            const hw_token *token = &all->items[t];
            bool inside = t + 1 < word->first + word->count;
            units[t] = (hw_study_word){.text = token->text,
                                       .bytes = token->bytes,
                                       .first = t,
                                       .count = 1,
                                       .rank = rank_of(token->id),
                                       .punctuation = is_punctuation(token->text, token->bytes),
                                       .goes_on = inside || ends_in(token->text, token->bytes, mark)};
        }
    }
    out->count = (int32_t)all->count;
    out->words = units;
}

static const char *suffix_of(const hw_bundle *bundle, int side)
{
    return side == HW_SOURCE ? bundle->config->data.source : bundle->config->data.target;
}

static hw_side side_of(const hw_bundle *bundle, int side)
{
    return side == HW_SOURCE ? hw_bundle_source(bundle) : hw_bundle_target(bundle);
}

/* Into so many tokens at most; 0: any number. */
static bool cut(const hw_bundle *bundle, int side, const char *line, size_t bytes, int64_t most, hw_arena *arena,
                hw_tokens *all)
{
    hw_side reads = side_of(bundle, side);
    *all = hw_tokens_new(arena);
    all->most = most;
    return hw_tokenizer_encode(reads.tokenizer, reads.vocabulary, line, bytes, all);
}

static void split(const hw_bundle *bundle, int side, const char *line, size_t bytes, const hw_tokens *all,
                  hw_arena *arena, hw_sentence *words, hw_sentence *tokens)
{
    hw_side reads = side_of(bundle, side);
    *words = *tokens = (hw_sentence){.ids = hw_token_ids(all, arena)};
    split_words(&reads, bundle->config->text.joiner, line, bytes, all, arena, words);
    if (!words->count) words->ids = tokens->ids = (hw_ids){0};
    bool alike = words->count == all->count;
    for (int32_t w = 0; alike && w < words->count; w++) alike = words->words[w].count == 1;
    if (alike || !words->count)
        *tokens = *words;
    else
        split_tokens(words, all, bundle->config->text.joiner, arena, tokens);
}

void hw_sentence_split(const hw_bundle *bundle, int side, const char *line, size_t bytes, hw_arena *arena,
                       hw_sentence *words, hw_sentence *tokens)
{
    hw_tokens all;
    cut(bundle, side, line, bytes, 0, arena, &all);
    split(bundle, side, line, bytes, &all, arena, words, tokens);
}

/* 1: a pair, 0: it is left out, -1: an error. */
static int make_pair(const hw_bundle *bundle, hw_study_set *set, const char *const line[2], const size_t bytes[2],
                     int64_t number, hw_arena *arena, hw_study_pair *p, hw_error *err)
{
    int64_t tokens[2];
    hw_tokens all[2];
    for (int s = 0; s < 2; s++) {
        if (!cut(bundle, s, line[s], bytes[s], set->too_long.most, arena, &all[s])) {
            char path[HW_PATH];
            if (hw_corpus_path(path, set->directory, set->prefix, suffix_of(bundle, s), err))
                hw_tokenizer_failed(path, number + 1, err);
            return -1;
        }
        tokens[s] = all[s].count + all[s].unread;
    }
    if (!tokens[HW_SOURCE] || !tokens[HW_TARGET] ||
        hw_too_long_pair(&set->too_long, tokens[HW_SOURCE], tokens[HW_TARGET], number + 1))
        return 0;
    for (int s = 0; s < 2; s++) split(bundle, s, line[s], bytes[s], &all[s], arena, &p->words[s], &p->tokens[s]);
    p->line = number;
    return p->words[HW_SOURCE].count && p->words[HW_TARGET].count;
}

/* before: the arena without all that is of this pair. */
static bool add_pair(const hw_bundle *bundle, const char *const line[2], const size_t bytes[2], int64_t number,
                     hw_arena *arena, hw_arena_mark before, hw_study_set *set, hw_study_pair *pairs, hw_error *err)
{
    int got = make_pair(bundle, set, line, bytes, number, arena, &pairs[set->count], err);
    if (got <= 0) hw_arena_end(arena, before);
    set->count += got > 0;
    return got >= 0;
}

/* ---- a set with its gold ----------------------------------------------------------------------------------------- */

static bool load_tree(hw_arena *arena, const hw_bundle *bundle, hw_study_set *set, int side, const hw_lines *lines,
                      hw_error *err)
{
    char path[HW_PATH];
    const char *suffix = hw_arena_string(arena, "%s.conllu", suffix_of(bundle, side));
    if (!hw_corpus_path(path, set->directory, set->prefix, suffix, NULL)) return true;
    hw_conllu *tree = hw_conllu_load(arena, path, err);
    set->trees[side] = tree;
    return tree && hw_conllu_fit(tree, lines, err);
}

static bool load_links(hw_arena *arena, hw_study_set *set, hw_lines *const lines[2], hw_error *err)
{
    char path[HW_PATH];
    if (!hw_corpus_path(path, set->directory, set->prefix, "align", NULL)) return true;
    hw_alignments *links = hw_alignments_load(arena, path, err);
    set->links = links;
    return links && hw_alignments_fit(links, lines[HW_SOURCE], lines[HW_TARGET], err);
}

bool hw_study_fail_empty(const hw_bundle *bundle, const hw_study_set *set, hw_error *err)
{
    char path[HW_PATH];
    const hw_too_long *t = &set->too_long;
    if (!hw_corpus_path(path, set->directory, set->prefix, suffix_of(bundle, t->side), err)) return false;
    if (!t->pairs) return hw_fail(err, "%s: there is no pair of sentences in it to study", path);
    hw_arena *arena = hw_arena_new(0);
    hw_fail(err, "%s; there is no pair of sentences beside such to study", hw_too_long_describe(t, path, arena));
    hw_arena_free(arena);
    return false;
}

bool hw_study_set_load(hw_arena *arena, const hw_bundle *bundle, const char *directory, const char *prefix,
                       hw_study_set *set, hw_error *err)
{
    *set = (hw_study_set){
        .directory = directory, .prefix = prefix, .too_long.most = hw_longest_source(bundle->config)};
    hw_lines *lines[2];
    char path[HW_PATH];
    for (int s = 0; s < 2; s++)
        if (!hw_corpus_path(path, directory, prefix, suffix_of(bundle, s), err) ||
            !(lines[s] = hw_lines_load(arena, path, err)))
            return false;
    if (!hw_lines_parallel(lines[HW_SOURCE], lines[HW_TARGET], err)) return false;
    set->lines = lines[HW_SOURCE]->count;
    for (int s = 0; s < 2; s++) set->texts[s] = lines[s];
    hw_study_pair *pairs = hw_arena_alloc(arena, ((size_t)set->lines + 1) * sizeof *pairs);
    for (int64_t i = 0; i < set->lines; i++) {
        size_t bytes[2];
        const char *text[2];
        for (int s = 0; s < 2; s++) text[s] = hw_lines_get(lines[s], i, &bytes[s]);
        if (!add_pair(bundle, text, bytes, i, arena, hw_arena_begin(arena), set, pairs, err)) return false;
    }
    set->pairs = pairs;
    if (!set->count) return hw_study_fail_empty(bundle, set, err);
    return load_tree(arena, bundle, set, HW_SOURCE, lines[HW_SOURCE], err) &&
           load_tree(arena, bundle, set, HW_TARGET, lines[HW_TARGET], err) && load_links(arena, set, lines, err);
}

void hw_study_visit(const hw_study_set *set, hw_runner *runner, const hw_visit_options *options,
                    void (*visit)(int i, const hw_visit *visit, void *argument), void *argument)
{
    hw_arena *arena = hw_arena_new(0);
    hw_ids *ids[2];
    for (int s = 0; s < 2; s++) {
        ids[s] = hw_arena_alloc(arena, (size_t)set->count * sizeof *ids[s]);
        for (int64_t i = 0; i < set->count; i++) ids[s][i] = set->pairs[i].words[s].ids;
    }
    hw_visit_pairs(runner, set->count, ids[HW_SOURCE], ids[HW_TARGET], options, visit, argument);
    hw_arena_free(arena);
}

/* ---- two sets ---------------------------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* A number for each pair, the same where the texts are: 64 bits make chance agreement no matter. */
static uint64_t *prints_of(const hw_study_set *set, hw_arena *arena)
{
    uint64_t *prints = hw_arena_alloc(arena, (size_t)set->count * sizeof *prints + 1);
    for (int64_t i = 0; i < set->count; i++) {
        prints[i] = 0;
        for (int s = 0; s < 2; s++) {
            size_t bytes;
            hw_arena_mark mark = hw_arena_begin(arena);
            const char *line = hw_lines_get(set->texts[s], set->pairs[i].line, &bytes);
            prints[i] = hw_fingerprint_text(prints[i], hw_arena_string(arena, "%.*s", (int)bytes, line));
            hw_arena_end(arena, mark);
        }
    }
    return prints;
}

int64_t hw_study_shared(const hw_study_set *set, const hw_study_set *other)
{
    if (set->pairs == other->pairs) return set->count;
    hw_arena *arena = hw_arena_new(0);
    uint64_t *own = prints_of(set, arena), *theirs = prints_of(other, arena);
    int64_t shared = 0;
    qsort(theirs, (size_t)other->count, sizeof *theirs, ascending);
    for (int64_t i = 0; i < set->count; i++)
        shared += bsearch(&own[i], theirs, (size_t)other->count, sizeof *theirs, ascending) != NULL;
    hw_arena_free(arena);
    return shared;
}

/* ---- a stream ---------------------------------------------------------------------------------------------------- */

struct hw_study_stream {
    const hw_bundle *bundle;
    const char *directory, *prefix;
    hw_reader *reader[2];
    char path[2][HW_PATH];
    int64_t lines;
    hw_too_long too_long;
};

hw_study_stream *hw_study_stream_open(const hw_bundle *bundle, const char *directory, const char *prefix, hw_error *err)
{
    hw_study_stream *s = calloc(1, sizeof *s);
    HW_CHECK(s, "no memory for a stream");
    *s = (hw_study_stream){.bundle = bundle,
                           .directory = directory,
                           .prefix = prefix,
                           .too_long.most = hw_longest_source(bundle->config)};
    for (int i = 0; i < 2; i++)
        if (!hw_corpus_path(s->path[i], directory, prefix, suffix_of(bundle, i), err) ||
            !(s->reader[i] = hw_reader_open(s->path[i], err))) {
            hw_study_stream_close(s);
            return NULL;
        }
    return s;
}

void hw_study_stream_close(hw_study_stream *s)
{
    if (!s) return;
    for (int i = 0; i < 2; i++)
        if (s->reader[i]) hw_reader_close(s->reader[i]);
    free(s);
}

/* The next line of each side into the arena, as hw_reader_line. */
static int next_lines(hw_study_stream *s, hw_arena *arena, const char *text[2], size_t bytes[2], hw_error *err)
{
    int got[2];
    for (int i = 0; i < 2; i++) {
        char *line;
        got[i] = hw_reader_line(s->reader[i], &line, &bytes[i], err);
        if (got[i] < 0) return -1;
        if (!got[i]) continue;
        int64_t wrong = hw_utf8_invalid(line, bytes[i]);
        if (wrong >= 0) {
            hw_fail(err, "%s:%lld: byte %lld is not valid UTF-8; headwise reads UTF-8 only", s->path[i],
                    (long long)hw_reader_number(s->reader[i]), (long long)hw_reader_byte(s->reader[i], wrong));
            return -1;
        }
        text[i] = hw_arena_copy(arena, line, bytes[i] + 1);
    }
    if (got[0] == got[1]) return got[0];
    hw_fail(err, "%s ends after line %lld, but %s goes on; the two must have a line for each pair",
            s->path[got[0] ? 1 : 0], (long long)s->lines, s->path[got[0] ? 0 : 1]);
    return -1;
}

int hw_study_stream_next(hw_study_stream *s, hw_arena *arena, int64_t most, hw_study_set *set, hw_error *err)
{
    *set = (hw_study_set){.directory = s->directory, .prefix = s->prefix, .too_long = s->too_long};
    hw_study_pair *pairs = hw_arena_alloc(arena, (size_t)most * sizeof *pairs);
    const char *text[2] = {"", ""};
    size_t bytes[2];
    int got = 1;
    while (set->count < most) {
        hw_arena_mark before = hw_arena_begin(arena);
        if ((got = next_lines(s, arena, text, bytes, err)) != 1) break;
        if (!add_pair(s->bundle, text, bytes, s->lines++, arena, before, set, pairs, err)) return -1;
    }
    set->pairs = pairs;
    s->too_long = set->too_long;
    set->lines = s->lines;
    return got < 0 ? -1 : set->count > 0;
}
