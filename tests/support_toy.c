#include "support_toy.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "support_files.h"

toy_table *toy_table_load(hw_arena *arena)
{
    hw_error err;
    hw_lines *lines = hw_lines_load(arena, "tests/fixtures/toy_paradigms.tsv", &err);
    ck_assert_msg(lines != NULL, "%s", err.message);
    toy_table *table = hw_arena_calloc(arena, 1, sizeof *table);
    for (int64_t i = 0; i < lines->count; i++) {
        char *text = hw_arena_string(arena, "%s", hw_lines_get(lines, i, NULL)), *field;
        if (text[0] == '#') continue;
        ck_assert_int_lt(table->count, TOY_ROWS);
        toy_row *row = &table->row[table->count++];
        while ((field = strsep(&text, "\t"))) {
            ck_assert_int_lt(row->fields, TOY_FIELDS);
            row->field[row->fields++] = field;
        }
    }
    return table;
}

const toy_row *toy_find(const toy_table *table, const char *kind, int from, int to, const char *word)
{
    for (int i = 0; i < table->count; i++) {
        const toy_row *row = &table->row[i];
        if (strcmp(row->field[0], kind)) continue;
        for (int k = from; k <= to && k < row->fields; k++)
            if (!strcmp(row->field[k], word)) return row;
    }
    return NULL;
}

toy_set *toy_load(hw_arena *arena, const char *directory, const char *prefix, bool gold)
{
    static const char *const suffixes[] = {"en", "fr"};
    toy_set *set = hw_arena_calloc(arena, 1, sizeof *set);
    hw_error err = {""};
    for (int s = 0; s < 2; s++) {
        set->line[s] = hw_lines_load(arena, hw_arena_string(arena, "%s/%s.%s", directory, prefix, suffixes[s]), &err);
        ck_assert_msg(set->line[s] != NULL, "%s", err.message);
        if (!gold) continue;
        const char *path = hw_arena_string(arena, "%s/%s.%s.conllu", directory, prefix, suffixes[s]);
        set->gold[s] = hw_conllu_load(arena, path, &err);
        ck_assert_msg(set->gold[s] && hw_conllu_fit(set->gold[s], set->line[s], &err), "%s", err.message);
    }
    ck_assert_msg(hw_lines_parallel(set->line[0], set->line[1], &err), "%s", err.message);
    if (!gold) return set;
    set->links = hw_alignments_load(arena, hw_arena_string(arena, "%s/%s.align", directory, prefix), &err);
    ck_assert_msg(set->links && hw_alignments_fit(set->links, set->line[0], set->line[1], &err), "%s", err.message);
    return set;
}

toy_sentence toy_words(const hw_conllu *gold, int64_t i)
{
    return (toy_sentence){gold->words + gold->start[i], (int)(gold->start[i + 1] - gold->start[i])};
}

int toy_dependent(const toy_sentence *s, int i, const char *relation)
{
    for (int k = 0; k < s->count; k++)
        if (s->word[k].head == i && !strcmp(s->word[k].relation, relation)) return k;
    return -1;
}

int toy_controller(const toy_sentence *s, int i)
{
    const hw_conllu_word *word = &s->word[i];
    if (!strcmp(word->relation, "amod")) return word->head;
    if (!strcmp(word->relation, "conj")) return toy_controller(s, word->head);
    int subject = toy_dependent(s, i, "nsubj");
    bool relative = subject >= 0 && (!strcmp(s->word[subject].form, "qui") || !strcmp(s->word[subject].form, "that"));
    return relative ? word->head : subject;
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

/* The first lines of a file, or the first sentences where an empty line ends each. */
static void copy_some(const char *from, const char *to, int count, bool sentences)
{
    char line[4096];
    FILE *in = fopen(from, "r"), *out = fopen(to, "w");
    ck_assert(in && out);
    while (count && fgets(line, sizeof line, in)) {
        fputs(line, out);
        if (!sentences || *line == '\n') count--;
    }
    fclose(in);
    fclose(out);
}

void toy_copy(const char *from, const char *to, int count, bool gold)
{
    static const struct {
        const char *suffix;
        bool gold, sentences;
    } files[] = {{"en", false, false},
                 {"fr", false, false},
                 {"align", true, false},
                 {"en.conllu", true, true},
                 {"fr.conllu", true, true}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (gold || !files[i].gold)
            copy_some(hw_arena_string(scratch_arena(), "data/toy/%s.%s", from, files[i].suffix),
                      scratch_path(hw_arena_string(scratch_arena(), "%s.%s", to, files[i].suffix)), count,
                      files[i].sentences);
}
