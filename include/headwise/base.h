/* Layer 0, base: errors, memory arenas, random numbers, threads, files.
 *
 * Every other layer stands on this one. Nothing here prints or exits: what the user or the machine did wrong comes back
 * as false or NULL with a complete message in hw_error; what the programmer did wrong aborts through HW_CHECK with file
 * and line. */
#ifndef HEADWISE_BASE_H
#define HEADWISE_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The one number type of all tensors, chosen when building: make REAL=float (as shipped) or REAL=double (for
 * checks). */
#ifdef HW_REAL_DOUBLE
typedef double hw_real;
#define HW_REAL_NAME "double"
#else
typedef float hw_real;
#define HW_REAL_NAME "float"
#endif

#define HW_VERSION "0.1.0"

/* ---- errors ------------------------------------------------------------------------------------------------------ */

/* What went wrong, as one complete sentence for the user: what, where, what was expected, what to do. */
typedef struct hw_error {
    char message[2048];
} hw_error;

/* Writes the message (err may be NULL) and returns false, so that a caller can write `return hw_fail(err, ...)`. */
bool hw_fail(hw_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts a context in front of the message that is there already ("models/toy: " ...). Returns false. */
bool hw_fail_in(hw_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A mistake of the programmer: prints "headwise: file:line: message" to standard error and aborts. */
_Noreturn void hw_abort(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));
#define HW_CHECK(condition, ...)                                                                                       \
    do {                                                                                                               \
        if (!(condition)) hw_abort(__FILE__, __LINE__, __VA_ARGS__);                                                   \
    } while (0)

/* The candidate nearest to word by edit distance, or NULL where none is near enough to be a misspelling.
 * candidate(i, argument) gives the i-th of count names. */
const char *hw_nearest(const char *word, int count, const char *(*candidate)(int i, const void *argument),
                       const void *argument);
/* "; did you mean NEAREST?" into text, which is returned; "" where nearest is NULL. For names of options and the like. */
enum { HW_SUGGESTION = 128 };
const char *hw_suggestion(const char *nearest, char text[HW_SUGGESTION]);

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Memory for large arrays, aligned to 64 bytes, from 2 MiB on in large pages where the system has them. NULL where it
 * cannot be had; free() gives it back. */
void *hw_memory_new(size_t bytes);
/* Gives the memory of whole pages within the block back: what stood there is lost and reads as zeros. */
void hw_memory_forget(void *block, size_t bytes);

/* ---- arenas ------------------------------------------------------------------------------------------------------ */

/* Memory that is given back all at once. Blocks are aligned to 64 bytes and not initialised. An arena serves one
 * thread. A reset keeps the memory, merged into one piece, so that a step which needs no more than the last one never
 * calls malloc. */
typedef struct hw_arena hw_arena;

hw_arena *hw_arena_new(size_t reserve); /* reserve: bytes taken at once, may be 0; the caller frees the arena */
void hw_arena_free(hw_arena *arena);    /* NULL is fine */
void hw_arena_reset(hw_arena *arena);   /* all blocks are given back */
void *hw_arena_alloc(hw_arena *arena, size_t bytes);                /* aborts when the machine has no memory left */
void *hw_arena_calloc(hw_arena *arena, size_t count, size_t size);  /* zeroed */
void *hw_arena_copy(hw_arena *arena, const void *data, size_t bytes);
char *hw_arena_string(hw_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
size_t hw_arena_used(const hw_arena *arena);   /* bytes handed out since the last reset */
size_t hw_arena_peak(const hw_arena *arena);   /* the largest hw_arena_used ever */
int64_t hw_arena_mallocs(const hw_arena *arena); /* how often it asked the system for memory */

/* A place in the arena to go back to: everything allocated after it is given back. */
typedef struct hw_arena_mark {
    void *chunk;
    size_t used, total;
} hw_arena_mark;
hw_arena_mark hw_arena_begin(const hw_arena *arena);
void hw_arena_end(hw_arena *arena, hw_arena_mark mark);

/* ---- random numbers ---------------------------------------------------------------------------------------------- */

/* Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"): a pure function from key and
 * counter to four random words, so that any element of any random array can be drawn by anyone at any time. */
void hw_philox(uint64_t key, const uint32_t counter[4], uint32_t out[4]);

/* A sequence drawn from Philox, for shuffles and initial weights. Copy it to save its place. */
typedef struct hw_random {
    uint64_t key, stream, position;
} hw_random;
hw_random hw_random_new(uint64_t seed, uint64_t stream);
uint32_t hw_random_bits(hw_random *random);
uint64_t hw_random_below(hw_random *random, uint64_t bound); /* uniform in 0..bound-1 without bias; bound > 0 */
double hw_random_uniform(hw_random *random);                 /* in [0, 1), 53 bits */
double hw_random_normal(hw_random *random);                  /* mean 0, deviation 1 */

/* ---- threads ----------------------------------------------------------------------------------------------------- */

/* Calls function(i, argument) once for every i in 0..n-1 on up to hw_threads() threads, and returns when all are done.
 * Which thread runs which i is open, so results must not depend on it. A call from inside another runs in place. */
void hw_parallel(int n, void (*function)(int i, void *argument), void *argument);
enum { HW_MOST_THREADS = 1024 };
void hw_threads_set(int threads); /* 0: all cores that this process may use; never more than HW_MOST_THREADS */
int hw_threads(void);
int hw_thread_index(void);        /* 0..hw_threads()-1, inside hw_parallel; 0 outside */

/* ---- files ------------------------------------------------------------------------------------------------------- */

/* Reads lines from a plain or gzip file ("-": standard input). A line ends at \n only; a \r before it and a byte order
 * mark at the start of the file are dropped. */
typedef struct hw_reader hw_reader;
enum { HW_LONGEST_LINE = 256 << 20 }; /* bytes; a longer one is an error, before it takes all memory */
hw_reader *hw_reader_open(const char *path, hw_error *err); /* NULL: the message names the path and the reason */
void hw_reader_close(hw_reader *reader);
/* 1: a line, ended by a 0 byte beyond its length and valid until the next call; 0: the end; -1: an error. */
int hw_reader_line(hw_reader *reader, char **line, size_t *length, hw_error *err);
int64_t hw_reader_number(const hw_reader *reader); /* of the last line read, from 1 */
/* The number in its file's line, from 1, of the byte that is line[at]: a byte order mark before it counts. */
int64_t hw_reader_byte(const hw_reader *reader, int64_t at);
bool hw_reader_waiting(hw_reader *reader);         /* true if reading on would have to wait for more input */

/* A file written whole or not at all. begin opens a temporary file beside PATH, `.NAME.headwise-XXXXXX.tmp`, another
 * for each writer; commit syncs it and renames it over PATH, so the last to commit wins; abandon removes it. Writing is
 * by stdio on ->stream; commit reports any write error that happened on the way. Symbolic links stay: what they lead to
 * is replaced, or made. A new file's permissions are as umask says, a replaced one's as they were. What is at PATH but
 * no regular file is refused. From begin to commit the struct stays where it is. */
typedef struct hw_atomic {
    FILE *stream;
    char path[4096], target[4096], temporary[4096]; /* as given, links followed, "" where there is none */
    struct hw_atomic *next;
} hw_atomic;
bool hw_atomic_begin(hw_atomic *file, const char *path, hw_error *err);
bool hw_atomic_commit(hw_atomic *file, hw_error *err);
void hw_atomic_abandon(hw_atomic *file);
/* The same for what the user names as a place for output, which may also be a pipe, a terminal, /dev/stdout or another
 * device: into these is written at once. */
bool hw_output_begin(hw_atomic *file, const char *path, hw_error *err);
/* Commits files of one directory that belong together: none where one cannot be written, and never some of this program
 * and some of another that commits its own at the same time. Ends all of them, whatever it returns. */
bool hw_atomic_commit_all(hw_atomic *const *files, int count, hw_error *err);
/* Removes temporary files from a directory that killed programs left; others' are locked and stay. begin does so for
 * its own PATH. */
void hw_atomic_clean(const char *directory);
/* For a signal's handler, when the program is about to end: removes the temporary files of all that are open, and
 * directories as hw_directories_remove_empty does. */
void hw_atomic_remove_all(void);

/* Appends to an open file, whose name is path, all bytes or none: where a disk is full, what it took is cut off. */
bool hw_append_whole(int file, const char *path, const void *bytes, size_t size, hw_error *err);

/* The whole file, read-only. data is NULL where size is 0. */
typedef struct hw_map {
    const uint8_t *data;
    size_t size;
    void *base; /* what to unmap */
} hw_map;
bool hw_map_open(hw_map *map, const char *path, hw_error *err);
void hw_map_forget(const hw_map *map, const void *data, size_t bytes); /* this part is not needed soon: its memory goes back */
void hw_map_close(hw_map *map);

bool hw_directory_make(const char *path, hw_error *err); /* with its parents; an existing one is fine */
/* For a program that ends without having done its work: removes the directories that it made, where nothing is in
 * them, but one that another process had when this one wanted to lock it. */
void hw_directories_remove_empty(void);
/* Takes a directory, so that no other process that asks gets it before this one ends or closes the number, which is
 * returned. *reason is 0, or errno: EWOULDBLOCK, another has it; others, its file system knows no locks. -1: it cannot
 * be opened. */
int hw_directory_lock(const char *path, int *reason);
/* Whether that would go well, and whether files could be written into it; makes nothing. */
bool hw_directory_can_be_made(const char *path, hw_error *err);
bool hw_file_exists(const char *path); /* where not, errno says why */

/* Bytes of memory that this process may have yet: the machine's, or less where a control group or `ulimit -v` says so. */
double hw_memory_most(void);

/* Seconds from an arbitrary start, never running backwards. */
double hw_seconds(void);

/* ---- UTF-8 ------------------------------------------------------------------------------------------------------- */

/* The code point at text (bytes 0..size-1) and its length in *bytes; -1 for a malformed sequence, with *bytes = 1. */
int32_t hw_utf8_decode(const char *text, size_t size, int *bytes);
/* Writes the code point to out (room for 4) and returns its length. */
int hw_utf8_encode(int32_t codepoint, char *out);
/* The offset of the first byte that is not well-formed UTF-8 (no surrogates, no overlong forms), or -1. */
int64_t hw_utf8_invalid(const char *text, size_t size);
/* Writes the text with U+FFFD for every byte that is not well-formed to out (room for 3 size + 1), ends it by a 0 byte
 * and returns its length. */
size_t hw_utf8_mend(const char *text, size_t size, char *out);

/* Text that somebody else chose (a path, a word, a message with either) as a JSON string of the library jansson, which
 * takes well-formed UTF-8 only: mended where it is not. Never NULL; the caller decrefs it. */
struct json_t *hw_json_text(const char *text);
struct json_t *hw_json_text_of(const char *text, size_t size);
struct json_t *hw_json_number(double x); /* null where it is not finite */

/* "61,200": a number for people to read, into text, which is returned. */
const char *hw_thousands(int64_t number, char text[32]);
/* The word that goes with a number: hw_plural(n, "line", "lines"). */
const char *hw_plural(int64_t number, const char *one, const char *many);

/* ---- progress ---------------------------------------------------------------------------------------------------- */

/* How far a long work has come. The library only calls; whoever asked decides how to show it. */
typedef struct hw_progress {
    const char *what;       /* "train", "translate" ... */
    int64_t done, total;    /* total 0: unknown */
    double seconds;         /* since the work began */
    const char *detail;     /* "loss 2.31, learning rate 0.0012, 61,200 tokens/s" */
    bool last;
} hw_progress;
typedef void (*hw_progress_function)(const hw_progress *progress, void *context);

#endif
