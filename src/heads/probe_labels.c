/* The labels that probes look for, one table. A label that is a function of the word alone would only tell that the
 * word can be read off, so those are asked for words that were not learnt from. */
#include <stdlib.h>
#include <string.h>

#include <headwise/heads.h>

enum { FARTHEST_HEAD = 5, LAST_POSITION = 10, DEEPEST = 2 };

static const char *upos(const hw_sentence *s, const hw_conllu_word *tree, int32_t w, char text[128])
{
    (void)s, (void)text;
    return tree[w].upos;
}

static const char *position(const hw_sentence *s, const hw_conllu_word *tree, int32_t w, char text[128])
{
    (void)s, (void)tree;
    snprintf(text, 128, "%d%s", w < LAST_POSITION ? w : LAST_POSITION, w < LAST_POSITION ? "" : "+");
    return text;
}

static const char *previous(const hw_sentence *s, const hw_conllu_word *tree, int32_t w, char text[128])
{
    (void)tree;
    if (!w) return NULL;
    snprintf(text, 128, "%.*s", (int)s->words[w - 1].bytes, s->words[w - 1].text);
    return text;
}

/* How many pairs of brackets, or of other marks, w stands in; -1: it is a mark itself. */
static int inside(const hw_sentence *s, const hw_conllu_word *tree, int32_t w, bool brackets)
{
    int depth = 0;
    if (tree[w].match >= 0) return -1;
    for (int32_t i = 0; i < w && i < s->count; i++)
        if (tree[i].match > w) depth += !!strchr("([{", *tree[i].form) == brackets;
    return depth;
}

static const char *depth(const hw_sentence *s, const hw_conllu_word *tree, int32_t w, char text[128])
{
    int d = inside(s, tree, w, true);
    if (d < 0) return NULL;
    snprintf(text, 128, "%d%s", d < DEEPEST ? d : DEEPEST, d < DEEPEST ? "" : "+");
    return text;
}

static const char *quote(const hw_sentence *s, const hw_conllu_word *tree, int32_t w, char text[128])
{
    (void)text;
    int d = inside(s, tree, w, false);
    return d < 0 ? NULL : d ? "open" : "closed";
}

static bool is_relation(const char *relation, const char *name)
{
    size_t n = strlen(name);
    return !strncmp(relation, name, n) && (!relation[n] || relation[n] == ':');
}

/* The word that w agrees with: the noun of an adjective or determiner, the subject of a verb; -1: none. */
static int32_t agrees_with(const hw_sentence *s, const hw_conllu_word *tree, int32_t w)
{
    if (is_relation(tree[w].relation, "amod") || is_relation(tree[w].relation, "det")) return tree[w].head;
    for (int32_t i = 0; i < s->count; i++)
        if (tree[i].head == w && is_relation(tree[i].relation, "nsubj")) return i;
    return -1;
}

/* The value of a feature of the word that w agrees with. */
static const char *agreement(const hw_sentence *s, const hw_conllu_word *tree, int32_t w, const char *feature,
                             char text[128])
{
    int32_t other = agrees_with(s, tree, w);
    const char *at = other < 0 ? NULL : strstr(tree[other].features, feature);
    if (!at) return NULL;
    at += strlen(feature);
    snprintf(text, 128, "%.*s", (int)strcspn(at, "|"), at);
    return text;
}

static const char *number(const hw_sentence *s, const hw_conllu_word *tree, int32_t w, char text[128])
{
    return agreement(s, tree, w, "Number=", text);
}

static const char *gender(const hw_sentence *s, const hw_conllu_word *tree, int32_t w, char text[128])
{
    return agreement(s, tree, w, "Gender=", text);
}

static const char *head(const hw_sentence *s, const hw_conllu_word *tree, int32_t w, char text[128])
{
    (void)s;
    int32_t offset = tree[w].head - w;
    if (tree[w].head < 0) return "root";
    if (abs(offset) > FARTHEST_HEAD) return offset < 0 ? "far left" : "far right";
    snprintf(text, 128, "%+d", offset);
    return text;
}

static const hw_probe_label table[] = {
    {"upos", "part of speech", true, true, upos},
    {"position", "place in the sentence, from 0", false, false, position},
    {"previous", "the word before", false, false, previous},
    {"depth", "how many brackets are open", false, true, depth},
    {"quote", "whether a quotation is open", false, true, quote},
    {"number", "number of the noun or subject that the word agrees with", true, true, number},
    {"gender", "gender of the noun or subject that the word agrees with", true, true, gender},
    {"head", "where the head stands, in words from here", false, true, head},
};

const hw_probe_label *hw_probe_label_at(int i)
{
    return i >= 0 && i < (int)(sizeof table / sizeof *table) ? &table[i] : NULL;
}
