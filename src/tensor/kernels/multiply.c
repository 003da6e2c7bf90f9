/* y = x W' + bias over packed weights: the multiplication of everything that runs forward.
 *
 * W lies in panels of 32 outputs with k outermost (src/tensor/pack.c), so that one step of k reads one run of
 * memory. A tile of a few rows times a few vectors of outputs is held in registers over the whole of k; every result
 * is its bias, then one chain of fused multiply-adds with k ascending. Its bits therefore depend neither on the
 * other rows nor on the tile's shape nor on the processor path. (Register and cache blocking: Goto and van de Geijn
 * 2008, "Anatomy of high-performance matrix multiplication".) */
#include "kernel.h"

enum {
    PANEL = 32,
    PANEL_PARTS = PANEL / HW_PART_LANES,
    MAX_ROWS = 12,
    MAX_PARTS = 8,
    AHEAD = 512,         /* how many numbers ahead a panel is fetched: up to a third faster where W comes from afar */
    X_BLOCK = 96 * 1024, /* numbers of x read again for every panel, which should stay in the second-level cache */
};

/* Keeps GCC from reading v once more for every use. */
#if defined HW_PATH_AVX512 || defined HW_PATH_AVX2
#define IN_REGISTER(v) __asm__("" : "+v"(v))
#else
#define IN_REGISTER(v) (void)0
#endif

typedef struct job {
    hw_real *y;
    int64_t ldy;
    const hw_real *x;
    int64_t ldx;
    const hw_packed *w;
    const hw_real *bias;
    int64_t ahead, pace; /* what a tile fetches: numbers from its panel on, and how many for each k */
} job;

HW_INLINE hw_part part_load(const hw_real *p)
{
    return *(const hw_part_memory *)p;
}

/* acc += x panel: the loop over k. Few rows keep theirs in registers and read W once; many do it the other way
 * round. */
HW_INLINE void accumulate(hw_part acc[MAX_ROWS][MAX_PARTS], const job *j, const hw_real *x, const hw_real *panel, int rows,
                          int parts)
{
    const int64_t inputs = j->w->inputs, ldx = j->ldx, pace = j->pace;
    const hw_real *ahead = panel + j->ahead;
    for (int64_t k = 0; k < inputs; k++, panel += PANEL, ahead += pace) {
        hw_part a[MAX_ROWS], b[MAX_PARTS];
        __builtin_prefetch(ahead);
        __builtin_prefetch(ahead + PANEL / 2);
        if (rows < parts) {
            UNROLLED(int r = 0; r < rows; r++) a[r] = x[r * ldx + k] - (hw_part){0};
            UNROLLED(int c = 0; c < parts; c++) {
                b[c] = part_load(panel + c / PANEL_PARTS * PANEL * inputs + c % PANEL_PARTS * HW_PART_LANES);
                IN_REGISTER(b[c]);
                UNROLLED(int r = 0; r < rows; r++) acc[r][c] = hw_part_fma(a[r], b[c], acc[r][c]);
            }
        } else {
            UNROLLED(int c = 0; c < parts; c++)
                b[c] = part_load(panel + c / PANEL_PARTS * PANEL * inputs + c % PANEL_PARTS * HW_PART_LANES);
            UNROLLED(int r = 0; r < rows; r++) {
                a[r] = x[r * ldx + k] - (hw_part){0};
                IN_REGISTER(a[r]);
                UNROLLED(int c = 0; c < parts; c++) acc[r][c] = hw_part_fma(a[r], b[c], acc[r][c]);
            }
        }
    }
}

/* One tile: `rows` rows from `row` on times `parts` vectors of outputs from `first` on, at an even one. The last
 * tile may hang over the outputs' end: there bias and y go through `edge`. */
HW_INLINE void tile(const job *j, int64_t row, int64_t first, int rows, int parts)
{
    const int64_t inputs = j->w->inputs, column = first * HW_PART_LANES, valid = j->w->outputs - column;
    const bool whole = valid >= parts * HW_PART_LANES;
    hw_real edge[MAX_PARTS * HW_PART_LANES] = {0};
    const hw_real *bias = edge;
    if (j->bias && whole) bias = j->bias + column;
    else if (j->bias) memcpy(edge, j->bias + column, (size_t)valid * sizeof *edge);

    hw_part acc[MAX_ROWS][MAX_PARTS];
    UNROLLED(int r = 0; r < rows; r++)
        UNROLLED(int c = 0; c < parts; c++) acc[r][c] = part_load(bias + c * HW_PART_LANES);
    const hw_real *panel = j->w->panels + first / PANEL_PARTS * PANEL * inputs + first % PANEL_PARTS * HW_PART_LANES;
    accumulate(acc, j, j->x + row * j->ldx, panel, rows, parts);
    UNROLLED(int r = 0; r < rows; r++) {
        hw_real *y = j->y + (row + r) * j->ldy + column, *out = whole ? y : edge;
        UNROLLED(int c = 0; c < parts; c++) *(hw_part_memory *)(out + c * HW_PART_LANES) = acc[r][c];
        if (!whole) memcpy(y, edge, (size_t)valid * sizeof *y);
    }
}

/* The tiles that fit a path's registers; for few rows also wide ones, since a chain alone waits for its own last
 * step. */
#if defined HW_PATH_AVX512
#define TILES(T)                                                                                                       \
    T(1, 2) T(2, 2) T(3, 2) T(4, 2) T(5, 2) T(6, 2) T(7, 2) T(8, 2) T(9, 2) T(10, 2) T(11, 2) T(12, 2)                 \
    T(1, 4) T(2, 4) T(3, 4) T(4, 4) T(5, 4) T(6, 4) T(1, 8) T(2, 8)
enum { TALL = 12 };
#elif defined HW_PATH_AVX2
#define TILES(T) T(1, 2) T(2, 2) T(3, 2) T(4, 2) T(5, 2) T(6, 2) T(1, 4) T(2, 4) T(3, 4) T(1, 8)
enum { TALL = 6 };
#else
#define TILES(T) T(1, 2)
enum { TALL = 1 };
#endif

#define DEFINE(rows, parts)                                                                                            \
    static void tile_##rows##_##parts(const job *j, int64_t row, int64_t first) { tile(j, row, first, rows, parts); }
TILES(DEFINE)

static void (*const tiles[TALL + 1][MAX_PARTS + 1])(const job *j, int64_t row, int64_t first) = {
#define ENTER(rows, parts) [rows][parts] = tile_##rows##_##parts,
    TILES(ENTER)
};

static inline int64_t up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* All outputs for rows start .. start + count - 1, in strips of nearly equal height: 13 rows are 7 + 6, not 12 + 1. The
 * strips run inside the panels, so that a panel is read from afar once: each strip fetches its share of the next one. A
 * strip alone fetches its own. */
static void block(job j, int64_t start, int64_t count)
{
    const int64_t strips = up(count, TALL), parts = up(j.w->outputs, 2 * HW_PART_LANES) * 2;
    const int64_t low = count / strips, taller = count % strips; /* so many strips have low + 1 rows */
    int width = 2;
    for (int64_t first = 0; first < parts; first += width) {
        for (width = MAX_PARTS; !tiles[taller ? low + 1 : low][width] || first + width > parts;) width /= 2;
        const int64_t next = up(width, PANEL_PARTS) * PANEL;
        int64_t row = start;
        j.pace = strips > 1 ? up(next, strips) : PANEL;
        for (int64_t s = 0; s < strips; s++) {
            const int64_t rows = low + (s < taller);
            j.ahead = strips > 1 ? (next + s * j.pace) * j.w->inputs : AHEAD;
            tiles[rows][width](&j, row, first);
            row += rows;
        }
    }
}

void HW_KERNEL(multiply)(hw_real *y, int64_t ldy, const hw_real *x, int64_t ldx, int64_t rows, const hw_packed *w,
                         const hw_real *bias)
{
    const job j = {y, ldy, x, ldx, w, bias, 0, 0};
    int64_t step = X_BLOCK / (w->inputs + 1) / TALL * TALL;
    if (step < TALL) step = TALL;
    for (int64_t start = 0; start < rows; start += step) block(j, start, rows - start < step ? rows - start : step);
}
