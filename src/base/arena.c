/* Arenas: memory that is given back all at once.
 *
 * An arena is a list of chunks; allocation moves an offset in the newest. A reset keeps one chunk as large as the arena
 * ever was, so after the first step of a training the step's arena never asks the system again. Freshly taken chunks
 * double the arena; what is not touched costs no memory. Under AddressSanitizer, memory that is not handed out is
 * poisoned, so that using a block after a reset is found. */
#include <headwise/base.h>

#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define POISONING 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POISONING 1
#endif
#endif
#ifdef POISONING
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

enum { ALIGNMENT = 64, SMALLEST_CHUNK = 1 << 16 };

typedef struct chunk {
    struct chunk *older;
    size_t size; /* bytes after the header */
} chunk;

_Static_assert(sizeof(chunk) <= ALIGNMENT, "a chunk's header takes one alignment unit");

struct hw_arena {
    chunk *newest, *spare; /* spare: kept from the last hw_arena_end for the next need */
    size_t used;           /* of the newest chunk */
    size_t total, peak;    /* over all chunks: what was handed out, rounded up to the alignment */
    size_t capacity;       /* of all chunks */
    int64_t mallocs;
};

static uint8_t *chunk_data(chunk *c) { return (uint8_t *)c + ALIGNMENT; }

static size_t round_up(size_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

static void free_chunk(hw_arena *arena, chunk *c)
{
    if (!c) return;
    arena->capacity -= c->size;
    free(c);
}

static void push_chunk(hw_arena *arena, chunk *c)
{
    c->older = arena->newest;
    arena->newest = c;
    arena->used = 0;
}

static bool add_chunk(hw_arena *arena, size_t size)
{
    chunk *c = hw_memory_new(ALIGNMENT + size);
    if (!c) return false;
    c->size = size;
    arena->capacity += size;
    arena->mallocs++;
    ASAN_POISON_MEMORY_REGION(chunk_data(c), size);
    push_chunk(arena, c);
    return true;
}

static bool add_spare(hw_arena *arena, size_t size)
{
    chunk *c = arena->spare;
    if (!c || c->size < size) return false;
    arena->spare = NULL;
    push_chunk(arena, c);
    return true;
}

hw_arena *hw_arena_new(size_t reserve)
{
    hw_arena *arena = calloc(1, sizeof *arena);
    HW_CHECK(arena, "out of memory: no room for an arena");
    if (reserve)
        HW_CHECK(reserve <= PTRDIFF_MAX / 2 && add_chunk(arena, round_up(reserve)),
                 "out of memory: %zu bytes to begin with cannot be had", reserve);
    return arena;
}

void hw_arena_free(hw_arena *arena)
{
    if (!arena) return;
    for (chunk *c = arena->newest, *older; c; c = older) {
        older = c->older;
        free_chunk(arena, c);
    }
    free_chunk(arena, arena->spare);
    free(arena);
}

void hw_arena_reset(hw_arena *arena)
{
    if (arena->spare || (arena->newest && arena->newest->older)) {
        while (arena->newest) {
            chunk *older = arena->newest->older;
            free_chunk(arena, arena->newest);
            arena->newest = older;
        }
        free_chunk(arena, arena->spare);
        arena->spare = NULL;
        /* An eighth more, so that steps of slightly growing size do not each merge anew. Where that cannot be had, the
         * next allocation asks again and says so. */
        (void)add_chunk(arena, round_up(arena->peak + arena->peak / 8));
    }
    arena->used = arena->total = 0;
    if (arena->newest) ASAN_POISON_MEMORY_REGION(chunk_data(arena->newest), arena->newest->size);
}

/* NULL where there is no memory. */
static void *take(hw_arena *arena, size_t bytes)
{
    if (bytes > PTRDIFF_MAX / 2) return NULL;
    size_t size = bytes ? round_up(bytes) : ALIGNMENT; /* two blocks never share an address */
    if (!arena->newest || arena->newest->size - arena->used < size) {
        size_t room = arena->capacity > SMALLEST_CHUNK ? arena->capacity : SMALLEST_CHUNK;
        if (!add_spare(arena, size) && !add_chunk(arena, size > room ? size : room) && !add_chunk(arena, size))
            return NULL;
    }
    uint8_t *block = chunk_data(arena->newest) + arena->used;
    arena->used += size;
    arena->total += size;
    if (arena->total > arena->peak) arena->peak = arena->total;
    ASAN_UNPOISON_MEMORY_REGION(block, bytes);
    return block;
}

void *hw_arena_alloc(hw_arena *arena, size_t bytes)
{
    void *block = take(arena, bytes);
    HW_CHECK(block, "out of memory: %zu bytes more cannot be had, this arena holds %zu already", bytes, arena->total);
    return block;
}

void *hw_arena_calloc(hw_arena *arena, size_t count, size_t size)
{
    size_t bytes;
    HW_CHECK(!__builtin_mul_overflow(count, size, &bytes), "out of memory: %zu x %zu bytes is more than can be counted",
             count, size);
    return memset(hw_arena_alloc(arena, bytes), 0, bytes);
}

void *hw_arena_copy(hw_arena *arena, const void *data, size_t bytes)
{
    void *copy = hw_arena_alloc(arena, bytes);
    return bytes ? memcpy(copy, data, bytes) : copy;
}

char *hw_arena_string(hw_arena *arena, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    HW_CHECK(length >= 0, "the text for \"%s\" cannot be made", format);
    char *text = hw_arena_alloc(arena, (size_t)length + 1);
    va_start(arguments, format);
    vsnprintf(text, (size_t)length + 1, format, arguments);
    va_end(arguments);
    return text;
}

size_t hw_arena_used(const hw_arena *arena) { return arena->total; }
size_t hw_arena_peak(const hw_arena *arena) { return arena->peak; }
int64_t hw_arena_mallocs(const hw_arena *arena) { return arena->mallocs; }

hw_arena_mark hw_arena_begin(const hw_arena *arena)
{
    return (hw_arena_mark){arena->newest, arena->used, arena->total};
}

void hw_arena_end(hw_arena *arena, hw_arena_mark mark)
{
    while (arena->newest != mark.chunk) {
        chunk *c = arena->newest;
        HW_CHECK(c, "the mark is not of this arena, or older than its last reset");
        arena->newest = c->older;
        ASAN_POISON_MEMORY_REGION(chunk_data(c), c->size);
        if (arena->spare && arena->spare->size >= c->size) {
            free_chunk(arena, c);
        } else {
            free_chunk(arena, arena->spare);
            arena->spare = c;
        }
    }
    arena->used = mark.used;
    arena->total = mark.total;
    if (arena->newest)
        ASAN_POISON_MEMORY_REGION(chunk_data(arena->newest) + mark.used, arena->newest->size - mark.used);
}
