/* Inside layer 6: the library SentencePiece (Kudo and Richardson 2018, "SentencePiece: a simple and language
 * independent subword tokenizer") as seen from C.
 *
 * The library is C++; sentencepiece_shim.cc is the one file of it here and does nothing but pass text through. No
 * exception leaves it, and what the library says about a failure comes back as text. Models are read and made as bytes:
 * files are the caller's. A model may be used by any number of threads. */
#ifndef HW_TEXT_SENTENCEPIECE_SHIM_H
#define HW_TEXT_SENTENCEPIECE_SHIM_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hw_spm hw_spm;

enum { HW_SPM_REASON = 512 };

/* A model from the bytes of a .model file, which are copied; NULL and the reason where they are none. */
hw_spm *hw_spm_load(const void *model, size_t bytes, char reason[HW_SPM_REASON]);
void hw_spm_free(hw_spm *m); /* NULL is fine */

/* What a piece is. Only text, symbols (text that its user wants to be one piece wherever it stands) and bytes come out
 * of encoding, beside what is unknown. */
typedef enum hw_spm_kind { HW_SPM_TEXT, HW_SPM_SYMBOL, HW_SPM_BYTE, HW_SPM_UNKNOWN, HW_SPM_OTHER } hw_spm_kind;

int hw_spm_size(const hw_spm *m);
const char *hw_spm_piece(const hw_spm *m, int id, size_t *bytes); /* valid as long as the model */
const char *hw_spm_unknown(const hw_spm *m, size_t *bytes);       /* the piece for what has none; it may have any name */
hw_spm_kind hw_spm_piece_kind(const hw_spm *m, int id);
float hw_spm_score(const hw_spm *m, int id); /* unigram: natural log-probability; BPE: higher merges earlier */
bool hw_spm_is_unigram(const hw_spm *m);
bool hw_spm_is_bpe(const hw_spm *m);

/* Text is handed over in pieces, valid during the call. */
typedef void (*hw_spm_sink)(const char *text, size_t bytes, void *context);

/* Cuts a text into pieces, each given to the sink; one that the model lacks as the text that it is. False
 * where the library fails. */
bool hw_spm_encode(const hw_spm *m, const char *text, size_t bytes, hw_spm_sink sink, void *context);

/* The same pieces, each as the bytes of the text that it stands for, which may be none. */
typedef void (*hw_spm_places)(size_t begin, size_t end, void *context);
void hw_spm_locate(const hw_spm *m, const char *text, size_t bytes, hw_spm_places sink, void *context);

/* Gives the text of the pieces to the sink, at once. False where the library fails. */
typedef struct hw_spm_text {
    const char *text;
    size_t bytes;
} hw_spm_text;
bool hw_spm_decode(const hw_spm *m, const hw_spm_text *pieces, size_t count, hw_spm_sink sink, void *context);

typedef struct hw_spm_training {
    bool bpe; /* else unigram */
    long long size;
    double coverage;
    bool byte_fallback;
    const char *normalization; /* nmt_nfkc, nfkc, nmt_nfkc_cf, nfkc_cf, identity */
    /* The next line of the text, valid until the next call; false at the end. */
    bool (*next)(const char **line, size_t *bytes, void *context);
    void *context;
} hw_spm_training;

/* Trains a model, the same for the same lines and options on any machine, and gives its bytes to the sink. False and
 * the library's reason where it cannot. */
bool hw_spm_train(const hw_spm_training *training, hw_spm_sink sink, void *context, char reason[HW_SPM_REASON]);

#ifdef __cplusplus
}
#endif

#endif
