/* Layer 6, text: from files of sentences to ragged batches of ids, and back.
 *
 * A line of text becomes tokens (hw_tokenizer), tokens become ids (hw_vocabulary), a parallel corpus becomes arrays of
 * ids (hw_corpus), and a corpus becomes the batches of a training (hw_batcher, hw_batch). Gold annotation that stands
 * beside a corpus (alignments, dependencies, groups) is read here too. Text is UTF-8; a line ends at \n only, so that
 * U+2028, U+0085, form feed and a lone \r are text like any other; a \r before the \n and a byte order mark are
 * dropped. Text that is not valid UTF-8 is an error that names file, line and byte. Lines and bytes are counted from 1,
 * everything else from 0. */
#ifndef HEADWISE_TEXT_H
#define HEADWISE_TEXT_H

#include <headwise/autograd.h>

/* hw_reader_line that also checks for UTF-8: 1, 0 at the end, -1 for an error. path: as messages call it. */
int hw_next_line(hw_reader *reader, const char *path, char **line, size_t *bytes, hw_error *err);

/* ---- vocabulary -------------------------------------------------------------------------------------------------- */

/* The special tokens have the first three ids of every vocabulary. Text cannot name them: where "<s>" stands in a
 * corpus it is an ordinary word that no vocabulary holds. */
enum { HW_UNKNOWN, HW_BEGIN, HW_END, HW_SPECIALS };

/* Tokens and their ids 0 .. size - 1. In a file: a token a line, the line's place is its id, the first three lines are
 * <unk>, <s> and </s>. It lives in the arena that it was made in, is never changed, and may be read by any number of
 * threads. */
typedef struct hw_vocabulary hw_vocabulary;

/* Reads a vocabulary file. Errors: special tokens missing, an empty line, a token twice, invalid UTF-8, each with
 * file:line. A file whose first line ends in \r\n must do so throughout; in any other a \r belongs to the token. */
hw_vocabulary *hw_vocabulary_load(hw_arena *arena, const char *path, hw_error *err);
/* Writes it whole or not at all; loading the file gives the same vocabulary whatever the tokens are. */
bool hw_vocabulary_save(const hw_vocabulary *v, const char *path, hw_error *err);
void hw_vocabulary_write(const hw_vocabulary *v, FILE *out); /* the same bytes */

int32_t hw_vocabulary_size(const hw_vocabulary *v);   /* the special tokens included */
size_t hw_vocabulary_longest(const hw_vocabulary *v); /* the bytes of its longest token */
/* The id of a token; HW_UNKNOWN for one that is not there and for the names of the special tokens. */
int32_t hw_vocabulary_find(const hw_vocabulary *v, const char *token, size_t bytes);
/* The token of an id, ended by a 0 byte; bytes may be NULL. An id that is not there is the programmer's mistake. */
const char *hw_vocabulary_token(const hw_vocabulary *v, int32_t id, size_t *bytes);
/* A hash of the file that saving writes: two vocabularies with the same fingerprint are the same. */
uint64_t hw_vocabulary_fingerprint(const hw_vocabulary *v);

/* ---- tokenizers -------------------------------------------------------------------------------------------------- */

/* One token of a line: its text, spelled as a vocabulary would spell it (so an unknown word keeps its letters), and its
 * id. The text is `bytes` long and need not end in a 0 byte; it lies in the line, in the vocabulary or in the arena of
 * the list. */
typedef struct hw_token {
    const char *text;
    size_t bytes;
    int32_t id;
} hw_token;

/* A list of tokens that grows in an arena. Filled again it keeps its room. It takes `most` tokens, where that is not 0;
 * those behind them are only counted, so that a line without end costs no memory that nobody reads. */
typedef struct hw_tokens {
    hw_arena *arena;
    int64_t count, capacity;
    hw_token *items;
    int64_t most, unread;
} hw_tokens;
hw_tokens hw_tokens_new(hw_arena *arena);
void hw_tokens_add(hw_tokens *tokens, const char *text, size_t bytes, int32_t id);

/* How text is cut. The kinds stand in one table (src/text/tokenizer.c):
 *   word  what blanks and tabs separate (no other character does). With a joiner, say "@@ ", a token that ends in "@@"
 *         is a piece of the word that goes on in the next token, in files ("bo@@ ra@@ ti") as on output ("borati"); and
 *         a word that the vocabulary lacks is cut into pieces that it has, the longest first, going back where that
 *         leads nowhere.
 *   char  every code point a token; a blank is shown as U+2581, and U+2581 itself is doubled, so that decoding gives
 *         the line.
 *   sentencepiece  as a model of the library SentencePiece says: the line is normalised and cut into pieces, in which
 *         a blank is shown as U+2581. The model's own ids are not used. */
typedef struct hw_tokenizer hw_tokenizer;
typedef struct hw_tokenizer_options {
    const char *name;   /* of the kind */
    const char *joiner; /* "@@ " or "@@"; NULL or "": none */
    const char *model;  /* sentencepiece: the path of its .model file; else NULL or "" */
} hw_tokenizer_options;

/* Errors: an unknown kind (the nearest is named), a joiner where the kind has none, a joiner that is only blank, holds
 * a blank inside, is not UTF-8 or is longer than 15 bytes; a model where the kind has none, none where it needs one, a
 * file that is no model. The caller frees it. Any number of threads may use one. */
hw_tokenizer *hw_tokenizer_new(const hw_tokenizer_options *options, hw_error *err);
hw_tokenizer *hw_tokenizer_share(hw_tokenizer *t); /* t itself, with one owner more, who frees it too */
void hw_tokenizer_free(hw_tokenizer *t);           /* gone with its last owner; NULL is fine */
const char *hw_tokenizer_kind_name(int i);         /* the i-th kind's name; NULL past the last */

/* Cuts a line (without its \n) into tokens, in place of what the list held. v gives the ids; NULL: all are HW_UNKNOWN
 * and no word is cut into pieces, which is how vocabularies are counted. Any bytes are taken, though callers check
 * UTF-8 before. False, and no tokens, where SentencePiece fails: the machine has no memory left for it, or the model is
 * broken in a way that loading did not see. Without a model it does not fail. */
bool hw_tokenizer_encode(const hw_tokenizer *t, const hw_vocabulary *v, const char *line, size_t bytes,
                         hw_tokens *tokens);
/* Fails, saying so of a line. */
bool hw_tokenizer_failed(const char *path, int64_t line, hw_error *err);

/* Is it a piece of a word that goes on in the next token? Only where there is a joiner. */
bool hw_tokenizer_goes_on(const hw_tokenizer *t, const hw_token *token);

/* A token of the vocabulary as decoding takes it: the unknown one by the name that the tokenizer's model has for it. */
hw_token hw_tokenizer_token(const hw_tokenizer *t, const hw_vocabulary *v, int32_t id);

/* The text that tokens stand for, in the arena, ended by a 0 byte; *bytes, where not NULL, is its length. `word` puts
 * one blank between words and none after a joiner. NULL where SentencePiece fails. */
char *hw_tokenizer_decode(const hw_tokenizer *t, hw_arena *arena, const hw_token *tokens, int64_t count, size_t *bytes);
/* The same for ids; <s> and </s> are left out, an unknown word reads <unk> (sentencepiece: as its model shows it). */
char *hw_tokenizer_decode_ids(const hw_tokenizer *t, const hw_vocabulary *v, hw_arena *arena, const int32_t *ids,
                              int64_t count, size_t *bytes);
/* A line of a file as a reader would write it: `word` cuts and joins again ("bo@@ ra@@ ti  dort" -> "borati dort"); for
 * the other kinds files hold what readers write. */
char *hw_tokenizer_detokenize(const hw_tokenizer *t, hw_arena *arena, const char *line, size_t bytes, size_t *length);

/* ---- tokenizers with a model ------------------------------------------------------------------------------------- */

enum { HW_SUBWORDS = 8000 }; /* a size for most corpora */

typedef struct hw_subword_options {
    bool bpe;                  /* else unigram */
    int64_t size;              /* tokens of the vocabulary at most, special tokens included */
    double coverage;           /* share of the text's characters that become pieces, above 0, up to 1 */
    bool byte_fallback;        /* 256 pieces for bytes, of which any other character is made: nothing is unknown */
    const char *normalization; /* nmt_nfkc, nfkc, nmt_nfkc_cf, nfkc_cf (cf folds case) or identity */
    int64_t lines;             /* use so many lines at most, evenly over the text; 0: all */
} hw_subword_options;

/* Trains a SentencePiece model on the lines of all files together, plain or gzip, which are read more than once; blank
 * lines and those of more than 4,192 bytes are passed over. The model is the same on any machine. Errors: files, no
 * text, a size that is too small for the characters of the text. The caller frees it. */
hw_tokenizer *hw_tokenizer_train(const hw_subword_options *options, int count, const char *const *paths, hw_error *err);
bool hw_tokenizer_has_model(const hw_tokenizer *t);
/* Have both the same model, to the byte, or neither one? Models of the same pieces may still cut a line otherwise. */
bool hw_tokenizer_same_model(const hw_tokenizer *a, const hw_tokenizer *b);
/* Writes the model, whole or not at all. Only where it has one. */
bool hw_tokenizer_save(const hw_tokenizer *t, const char *path, hw_error *err);
void hw_tokenizer_write(const hw_tokenizer *t, FILE *out);
/* The vocabulary that its model brings, in the arena: every piece that can stand in a line, in the model's order, after
 * the special tokens. NULL where it has no model. */
hw_vocabulary *hw_tokenizer_vocabulary(const hw_tokenizer *t, hw_arena *arena);
/* Fails where v does not hold just the pieces of the model; the two names are for the message. */
bool hw_tokenizer_fits(const hw_tokenizer *t, const hw_vocabulary *v, const char *model, const char *vocabulary,
                       hw_error *err);

/* ---- building a vocabulary --------------------------------------------------------------------------------------- */

/* How often each token stands in some text. Both sides of a corpus may be counted into one for a joint vocabulary. It
 * lives in an arena. */
typedef struct hw_counts hw_counts;
hw_counts *hw_counts_new(hw_arena *arena);
void hw_counts_add(hw_counts *counts, const char *token, size_t bytes, int64_t times);
/* Adds every token of a file, plain or gzip. Errors: unreadable, invalid UTF-8. */
bool hw_counts_add_file(hw_counts *counts, const hw_tokenizer *t, const char *path, hw_error *err);
int64_t hw_counts_total(const hw_counts *counts);                               /* of all tokens */
int64_t hw_counts_distinct(const hw_counts *counts);                            /* how many different ones */
int64_t hw_counts_get(const hw_counts *counts, const char *token, size_t bytes); /* 0 where it never stood */

typedef struct hw_vocabulary_options {
    int64_t min_count; /* rarer tokens are left out; 0 or 1: none */
    int64_t max_size;  /* of the whole, special tokens included; 0: no limit */
} hw_vocabulary_options;
/* The vocabulary of what was counted, from the commonest token down, equally common ones by their bytes. */
hw_vocabulary *hw_vocabulary_build(hw_arena *arena, const hw_counts *counts, const hw_vocabulary_options *options);

/* ---- files of lines ---------------------------------------------------------------------------------------------- */

enum { HW_PATH = 4096 };

/* The file DIRECTORY/PREFIX.SUFFIX, or else the same with .gz, into path. Fails where neither exists, naming both. With
 * err NULL it tells whether there is one. */
bool hw_corpus_path(char path[HW_PATH], const char *directory, const char *prefix, const char *suffix, hw_error *err);

/* All lines of a file as they stand there, for evaluation. They live in an arena. */
typedef struct hw_lines {
    int64_t count;
    const char *path;
    const char *text;     /* the lines, each ended by a 0 byte */
    const int64_t *start; /* [count + 1] offsets into text */
} hw_lines;
hw_lines *hw_lines_load(hw_arena *arena, const char *path, hw_error *err); /* errors: unreadable, invalid UTF-8 */
const char *hw_lines_get(const hw_lines *lines, int64_t i, size_t *bytes);  /* bytes may be NULL */
/* Fails where two files that belong together have different numbers of lines, saying both. */
bool hw_lines_parallel(const hw_lines *a, const hw_lines *b, hw_error *err);

/* ---- corpus ------------------------------------------------------------------------------------------------------ */

typedef struct hw_ids {
    const int32_t *ids;
    int64_t count;
} hw_ids;

/* Why a pair is not trained on. Pairs keep in step whatever is dropped. */
typedef enum hw_drop {
    HW_DROP_BLANK,     /* a side has nothing but blanks and tabs, or nothing that makes a token */
    HW_DROP_LONG,
    HW_DROP_RATIO,
    HW_DROP_IDENTICAL,
    HW_DROP_DUPLICATE,
    HW_DROPS
} hw_drop;

/* Pairs that are left out because a side has more than `most` tokens (0: none is), since what is done with them costs
 * the square of that: how many, and the first of them. */
typedef struct hw_too_long {
    int64_t most, pairs;
    int side;             /* 0: its source, 1: its target, */
    int64_t line, tokens; /* where that stands in its file, from 1, and how many it has */
} hw_too_long;
/* Is the pair of this line such a one? It is counted. */
bool hw_too_long_pair(hw_too_long *t, int64_t source_tokens, int64_t target_tokens, int64_t line);
/* The first of them in words, "d/test.en:3: the line has 20000 tokens, more than the 1024 that are read", in the arena.
 * path: of the side's file. */
const char *hw_too_long_describe(const hw_too_long *t, const char *path, hw_arena *arena);

/* What is dropped beside blank ones, and where a corpus is kept. */
typedef struct hw_corpus_options {
    int64_t max_length;   /* tokens of a side at most; 0: no limit */
    double max_ratio;     /* the longer side has at most so many times the tokens of the shorter; 0: no limit */
    bool drop_identical;  /* pairs whose sides are the same text */
    bool drop_duplicates; /* pairs that stood there before */
    const char *alignment; /* suffix of a file of word alignments beside both sides ("align"); NULL: none is read */
    const char *scratch;  /* a directory for arrays of more than `memory` bytes; NULL: they stay in memory */
    size_t memory;
} hw_corpus_options;

/* The pairs of a parallel corpus as ids, in the order of the files, special tokens not included. */
typedef struct hw_corpus hw_corpus;
typedef struct hw_corpus_counts {
    int64_t lines;                          /* of each file */
    int64_t pairs;                          /* kept */
    int64_t dropped[HW_DROPS];              /* lines = pairs + all of these */
    hw_too_long too_long;                   /* those of HW_DROP_LONG */
    int64_t source_tokens, target_tokens;   /* of the pairs kept, without special tokens */
    int64_t source_unknown, target_unknown; /* how many of them the vocabulary lacks */
    int64_t source_longest, target_longest; /* the longest sentence kept, in tokens */
    int64_t aligned;                        /* how many pairs kept have a link, where an alignment was read */
} hw_corpus_counts;

/* What is needed to read one side. */
typedef struct hw_side {
    const char *suffix; /* "en": the file is DIRECTORY/PREFIX.en or PREFIX.en.gz */
    const hw_tokenizer *tokenizer;
    const hw_vocabulary *vocabulary;
} hw_side;

/* How many of the line's tokens each of its words has, what blanks separate; in the arena. Every token belongs to one
 * word: what stands between two (the blanks of `char`) to the one behind it, at the end of the line to the last. */
int32_t *hw_word_tokens(const hw_side *side, const char *line, size_t bytes, const hw_tokens *tokens, hw_arena *arena,
                        int64_t *words);

/* Reads both sides; what is dropped is counted. options NULL: only blank pairs are. Errors: no such file, unreadable,
 * invalid UTF-8, sides of different length (both counts are said), no pair left, no memory; an alignment that is
 * missing, of another length, malformed or beyond its pair (file:line:column). The caller frees it. */
hw_corpus *hw_corpus_load(const char *directory, const char *prefix, const hw_side *source, const hw_side *target,
                          const hw_corpus_options *options, hw_error *err);
/* An empty corpus, and one pair more for it; line is its number in the files. For text that is made up. */
hw_corpus *hw_corpus_new(void);
void hw_corpus_add(hw_corpus *corpus, hw_ids source, hw_ids target, int64_t line);
void hw_corpus_free(hw_corpus *corpus); /* NULL is fine */
/* Lets go of the memory that looking at pairs of a large corpus has taken; they are read again when asked for. */
void hw_corpus_release(const hw_corpus *corpus);

const hw_corpus_counts *hw_corpus_count(const hw_corpus *corpus);
hw_ids hw_corpus_source(const hw_corpus *corpus, int64_t pair); /* valid as long as nothing is added */
hw_ids hw_corpus_target(const hw_corpus *corpus, int64_t pair);
int64_t hw_corpus_line(const hw_corpus *corpus, int64_t pair); /* its line in the files, from 1 */
/* A hash of all ids, their cut into sentences, and their lines: whether this is the corpus that something began with. */
uint64_t hw_corpus_fingerprint(const hw_corpus *corpus);
/* The counts in words, for logs: "998 of 1000 pairs (dropped: 2 with a blank side), 11300 source tokens (2
 * unknown), ...". Returns text. */
const char *hw_corpus_describe(const hw_corpus *corpus, char text[512]);

/* ---- subword regularization -------------------------------------------------------------------------------------- */

/* Draws other cuts of sentences that a SentencePiece model has cut. It may be used by any number of threads. */
typedef struct hw_sampler hw_sampler;
/* For the ids of v and the model of t, both of which outlive it. alpha, 0 to 1: a cut is drawn by its probability to
 * this power (unigram), or each merge is left out with this probability (BPE). Fails where the tokenizer has no model or
 * one of another type. The caller frees it. */
hw_sampler *hw_sampler_new(const hw_tokenizer *t, const hw_vocabulary *v, double alpha, hw_error *err);
void hw_sampler_free(hw_sampler *s); /* NULL is fine */
/* A cut, in the arena, of the sentence whose best cut is given. A function of its arguments alone. */
hw_ids hw_sampler_draw(const hw_sampler *s, hw_ids best, hw_random *random, hw_arena *arena);

/* ---- batches ----------------------------------------------------------------------------------------------------- */

/* A link of an alignment, between words or tokens counted from 0. */
typedef struct hw_link {
    int32_t source, target;
    bool sure;
} hw_link;
typedef struct hw_pair_links {
    int64_t count;
    const hw_link *links; /* between tokens, special ones not counted; ordered by target, then source, each once */
} hw_pair_links;

/* Some pairs of sentences, their tokens one after another without padding. A sentence has n + 1 source rows and m + 1
 * target rows: the source is w1 .. wn </s>, the decoder is fed <s> w1 .. wm and predicts w1 .. wm </s>. Everything
 * lives in the arena that the batch was made in. A shard or a micro-batch is an hw_batch too, whose segments start at
 * row 0. */
typedef struct hw_batch {
    int64_t sentences;
    int64_t source_rows, target_rows;           /* the sums of the segments' lengths */
    hw_segments source, target;                 /* a run of rows a sentence */
    const int32_t *source_ids;                  /* [source_rows] */
    const int32_t *target_in, *target_out;      /* [target_rows] */
    int64_t first_source_row, first_target_row; /* where row 0 stands in the whole step's batch, for dropout */
    const int64_t *lines;                       /* [sentences] each pair's line in the corpus' files, from 1 */
    const hw_pair_links *links;                 /* [sentences]; NULL: the corpus was read without an alignment */
} hw_batch;

/* A batch of these sentences. targets NULL: there are only sources, as when translating (target lengths are then 0). */
hw_batch *hw_batch_new(hw_arena *arena, int64_t sentences, const hw_ids *sources, const hw_ids *targets,
                       const int64_t *lines);

/* Cuts a step's batch into exactly `shards` batches of nearly the same number of source and target rows: sentences go,
 * the longest first, to the shard with the fewest rows (Graham 1969, LPT). Where there are fewer sentences than shards
 * some are empty. The rows of the shards, one after another, are the rows of the whole batch that dropout counts by. A
 * pure function of the batch and the number. -> [shards] */
hw_batch *hw_batch_shards(hw_arena *arena, const hw_batch *batch, int shards);

/* Cuts a shard, in order, into *count micro-batches of about the same size: as many as `rows` rows a side in each
 * need, give or take a sentence (so 520 rows at a limit of 512 become 260 and 260). None is empty; a sentence much
 * longer than the limit goes alone. rows 0: no limit. -> [*count]; an empty shard has none. */
hw_batch *hw_batch_micro(hw_arena *arena, const hw_batch *shard, int64_t rows, int64_t *count);

/* How a corpus is cut into batches. At least one of the limits must be given; 0 is none. */
typedef struct hw_batcher_options {
    uint64_t seed;
    int64_t target_tokens; /* at most so many target rows in a batch (</s> included) */
    int64_t source_tokens; /* and so many source rows */
    int64_t sentences;     /* and so many sentences */
    bool in_order;         /* file order and one pass (validation, scoring), not shuffled epochs without end */
    const hw_sampler *source_sampler, *target_sampler; /* cut the side anew in each epoch; NULL: no */
} hw_batcher_options;

/* Where the next batch begins. All that a checkpoint has to keep. */
typedef struct hw_batch_place {
    int64_t epoch; /* from 0 */
    int64_t next;  /* the place of the next sentence in the epoch's order */
} hw_batch_place;

/* The sequence of a corpus' batches: a pure function of corpus, options and place. Every epoch has each pair exactly
 * once, in an order drawn from seed and epoch; no batch reaches into the next epoch. A pair that is larger than a limit
 * goes alone. Set `place` to go on from anywhere. Nothing is allocated beyond the batch itself. */
typedef struct hw_batcher {
    const hw_corpus *corpus; /* outlives it */
    hw_batcher_options options;
    hw_batch_place place;
    int64_t oversized;       /* pairs that are larger than a limit as they stand in the corpus, for one warning */
} hw_batcher;
hw_batcher hw_batcher_new(const hw_corpus *corpus, const hw_batcher_options *options); /* the corpus is not empty */
/* The next batch, in the arena; place moves on. With in_order, NULL at the end. */
hw_batch *hw_batcher_next(hw_batcher *batcher, hw_arena *arena);

/* ---- gold beside a corpus ---------------------------------------------------------------------------------------- */

/* Word alignments, PREFIX.align, in Pharaoh's format: a line a pair, links separated by blanks, `i-j` sure and `ipj`
 * possible, source word i and target word j counted from 0. Words are what blanks separate in the files. */
typedef struct hw_alignments {
    int64_t count;        /* of lines */
    const char *path;
    const int64_t *start; /* [count + 1]: line i has links start[i] .. start[i + 1] - 1 */
    const hw_link *links; /* of a line: ordered by source, then target, each pair once (sure where it stood as both) */
} hw_alignments;
hw_alignments *hw_alignments_load(hw_arena *arena, const char *path, hw_error *err);
/* Fails where the number of lines differs from the corpus' or a link points beyond a sentence. */
bool hw_alignments_fit(const hw_alignments *a, const hw_lines *source, const hw_lines *target, hw_error *err);

/* Dependencies and parts of speech, PREFIX.SUFFIX.conllu (universaldependencies.org/format.html). Multiword ranges
 * (1-2), empty nodes (1.1) and comments are passed over. In MISC, Match=ID names the mark that closes or opens with
 * this one (brackets, quotes), mutually. */
typedef struct hw_conllu_word {
    const char *form, *upos, *relation; /* FORM, UPOS, DEPREL */
    const char *features;               /* FEATS, "Gender=Fem|Number=Sing", or "_" */
    int32_t head;                       /* the head's place in the sentence from 0, or -1 for a root */
    int32_t match;                      /* the matching mark's place, or -1 */
    int64_t line;                       /* in the file, for messages */
} hw_conllu_word;
typedef struct hw_conllu {
    int64_t count; /* of sentences */
    const char *path;
    const int64_t *start; /* [count + 1]: sentence i is words[start[i]] .. words[start[i + 1] - 1] */
    const hw_conllu_word *words;
} hw_conllu;
/* Errors, with file:line: not 10 columns, ids out of order, a head or match out of range, heads in a circle, an empty
 * form. */
hw_conllu *hw_conllu_load(hw_arena *arena, const char *path, hw_error *err);
/* Fails where sentences and lines differ in number, or a sentence's forms from its line's words. */
bool hw_conllu_fit(const hw_conllu *c, const hw_lines *lines, hw_error *err);

/* Labels of a corpus' pairs, PREFIX.groups, one a line ("seen", "unseen"), so that figures can be given for each group
 * apart. */
typedef struct hw_groups {
    int64_t count; /* of lines */
    const char *path;
    int32_t groups;           /* how many different labels */
    const char *const *names; /* [groups] in the order in which they first stand in the file */
    const int32_t *group;     /* [count] */
} hw_groups;
hw_groups *hw_groups_load(hw_arena *arena, const char *path, hw_error *err);

/* ---- grammars ---------------------------------------------------------------------------------------------------- */

/* A synchronous grammar in YAML and the parallel corpus that it generates, with its gold annotation. data/toy/grammar.yaml
 * is an example that uses everything and explains itself; every fault in a grammar is reported with file:line:column. */
typedef struct hw_grammar hw_grammar;
hw_grammar *hw_grammar_load(const char *path, hw_error *err); /* the caller frees it */
void hw_grammar_free(hw_grammar *grammar);                    /* NULL is fine */

/* Numbers of sentence pairs and the seed; -1: what the grammar's own `corpus` says. */
typedef struct hw_grammar_options {
    int64_t pairs, valid, test, seed;
    bool train_annotation; /* train.align and train.*.conllu too */
} hw_grammar_options;

/* How often something that a rule counts stands in a set. */
typedef struct hw_grammar_phenomenon {
    const char *name;
    int64_t sentences, times, repeated; /* repeated: sentences that have it twice or more */
} hw_grammar_phenomenon;

/* How far the heads of a relation are: head - dependent, in words, over train, valid and test. A fixed offset that is right in
 * most cases needs no head that reads the sentence. The relation `match X` is a closing mark X to its opening one. */
typedef struct hw_grammar_relation {
    const char *side, *name;
    int64_t count;
    int commonest; /* the commonest signed distance */
    double share;  /* of it */
} hw_grammar_relation;

/* What came out. Names live as long as the grammar, arrays until hw_grammar_report_clear. */
typedef struct hw_grammar_report {
    const char *side[2];                  /* source, target */
    int64_t train, valid, test, seed;
    int64_t unseen;                       /* test sentences with a held-out combination */
    int64_t vocabulary[2];                /* different words of a side */
    double mean_length[2];                /* words of a sentence */
    int shortest[2], longest[2];
    double spelled_share;                 /* of the source's words that are pieces of spelled names */
    int64_t ambiguous;                    /* sources that were drawn with two targets; only the first is kept */
    char ambiguity[1024];                 /* the first of them, "source => one | other"; or empty */
    int phenomena, relations;
    hw_grammar_phenomenon *phenomenon;
    hw_grammar_relation *relation;
} hw_grammar_report;
void hw_grammar_report_clear(hw_grammar_report *report);

/* Writes into the directory, which is made where it is missing: train, valid and test as PREFIX.SIDE; for valid and test also
 * PREFIX.align and PREFIX.SIDE.conllu, and test.groups: a label a line, `unseen` where the sentence has a combination
 * that the grammar holds out (training and valid have none of those), else `seen`. No source sentence stands twice in all three
 * together. Test and valid do not depend on the number of training pairs; the same seed gives the same bytes. Each file is
 * written whole or not at all. Errors: a grammar that has not so many different sentences or cannot finish them, files. */
bool hw_grammar_generate(const hw_grammar *grammar, const hw_grammar_options *options, const char *directory,
                         hw_grammar_report *report, hw_progress_function progress, void *context, hw_error *err);

#endif
