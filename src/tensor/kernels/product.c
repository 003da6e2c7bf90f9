/* C = A B or C += A B for gradients: dX = dU W and dW = dU' X.
 *
 * Both are sums of rows of B, which lie as they are needed, so nothing is laid out anew beforehand: a tile of a few
 * rows times 32 columns of C is held in registers over a stretch of the sum, whose part of B (a stretch of rows, 32
 * columns wide) stays in the first-level cache for all tiles below it. Each number of C is one chain of fused
 * multiply-adds with the terms ascending, from 0 or from what C held; storing it between stretches changes no bit. So,
 * unlike those of BLAS, gradients have the same bits on every processor path (Goto and van de Geijn 2008: blocking). */
#include "kernel.h"

enum {
    COLUMNS = 32,
    PARTS = COLUMNS / HW_PART_LANES,
    AHEAD = 32,    /* terms ahead whose part of B is fetched: weights come from afar */
    STRETCH = 160, /* terms whose part of B stays in the first-level cache */
};

#if defined HW_PATH_AVX512
#define HEIGHTS(T) T(1) T(2) T(3) T(4) T(5) T(6) T(7) T(8) T(9) T(10) T(11) T(12)
enum { TALL = 12, WIDE = 2 };
#elif defined HW_PATH_AVX2
#define HEIGHTS(T) T(1) T(2) T(3) T(4) T(5) T(6)
enum { TALL = 6, WIDE = 2 };
#else
#define HEIGHTS(T) T(1)
enum { TALL = 1, WIDE = PARTS };
#endif

typedef struct job {
    hw_real *c;
    int64_t ldc;
    const hw_real *a;
    int64_t row_step, term_step; /* one of them is 1 */
    const hw_real *b;            /* the panel: its first column and term */
    int64_t ldb, terms;
    bool add;
} job;

/* `rows` rows from `row` on times WIDE vectors from column on. A is read along rows, or, transposed, along terms. */
HW_INLINE void tile(const job *j, int64_t row, int64_t column, int rows, bool transposed)
{
    hw_part acc[TALL][WIDE];
    hw_real *c = j->c + row * j->ldc + column;
    const hw_real *b = j->b + column, *a = j->a + row * j->row_step;
    if (transposed) /* the gradient of a weight comes from afar: fetch the next strip of it meanwhile */
        UNROLLED(int r = 0; r < rows; r++)
            UNROLLED(int v = 0; v < WIDE; v++) __builtin_prefetch(c + (rows + r) * j->ldc + v * HW_PART_LANES, 1);
    UNROLLED(int r = 0; r < rows; r++)
        UNROLLED(int v = 0; v < WIDE; v++)
            acc[r][v] = j->add ? (hw_part)*(const hw_part_memory *)(c + r * j->ldc + v * HW_PART_LANES) : (hw_part){0};
    for (int64_t t = 0; t < j->terms; t++, b += j->ldb) {
        hw_part row_of_b[WIDE];
        UNROLLED(int v = 0; v < WIDE; v++) row_of_b[v] = *(const hw_part_memory *)(b + v * HW_PART_LANES);
        if (!transposed) UNROLLED(int v = 0; v < WIDE; v++) __builtin_prefetch(b + AHEAD * j->ldb + v * HW_PART_LANES);
        UNROLLED(int r = 0; r < rows; r++) {
            hw_part factor = (transposed ? a[t * j->term_step + r] : a[r * j->row_step + t]) - (hw_part){0};
            UNROLLED(int v = 0; v < WIDE; v++) acc[r][v] = hw_part_fma(factor, row_of_b[v], acc[r][v]);
        }
    }
    UNROLLED(int r = 0; r < rows; r++)
        UNROLLED(int v = 0; v < WIDE; v++) *(hw_part_memory *)(c + r * j->ldc + v * HW_PART_LANES) = acc[r][v];
}

#define DEFINE(rows)                                                                                                   \
    static void plain_##rows(const job *j, int64_t row, int64_t column) { tile(j, row, column, rows, false); }         \
    static void transposed_##rows(const job *j, int64_t row, int64_t column) { tile(j, row, column, rows, true); }
HEIGHTS(DEFINE)

static void (*const tiles[2][TALL + 1])(const job *j, int64_t row, int64_t column) = {
#define ENTER(rows) [rows] = plain_##rows,
    {HEIGHTS(ENTER)},
#undef ENTER
#define ENTER(rows) [rows] = transposed_##rows,
    {HEIGHTS(ENTER)},
};

/* All rows of one panel's columns, in strips of nearly equal height: 13 rows are 7 + 6, not 12 + 1. */
static void panel(const job *j, int64_t rows)
{
    const bool transposed = j->row_step == 1;
    const int64_t strips = (rows + TALL - 1) / TALL, low = rows / strips, taller = rows % strips;
    for (int64_t s = 0, row = 0; s < strips; s++) {
        const int64_t height = low + (s < taller);
        for (int64_t v = 0; v < PARTS; v += WIDE) tiles[transposed][height](j, row, v * HW_PART_LANES);
        row += height;
    }
}

/* A panel narrower than 32 columns: through copies that are wide enough. */
static void narrow_panel(const job *j, int64_t rows, int64_t cols)
{
    enum { AT_A_TIME = 24 };
    hw_real b[STRETCH * COLUMNS] = {0}, c[AT_A_TIME * COLUMNS] = {0};
    for (int64_t t = 0; t < j->terms; t++) memcpy(b + t * COLUMNS, j->b + t * j->ldb, (size_t)cols * sizeof *b);
    job inner = *j;
    inner.b = b;
    inner.ldb = COLUMNS;
    inner.c = c;
    inner.ldc = COLUMNS;
    for (int64_t row = 0; row < rows; row += AT_A_TIME) {
        const int64_t count = rows - row < AT_A_TIME ? rows - row : AT_A_TIME;
        hw_real *out = j->c + row * j->ldc;
        inner.a = j->a + row * j->row_step;
        if (j->add)
            for (int64_t r = 0; r < count; r++) memcpy(c + r * COLUMNS, out + r * j->ldc, (size_t)cols * sizeof *c);
        panel(&inner, count);
        for (int64_t r = 0; r < count; r++) memcpy(out + r * j->ldc, c + r * COLUMNS, (size_t)cols * sizeof *c);
    }
}

void HW_KERNEL(product)(hw_real *c, int64_t ldc, int64_t rows, int64_t cols, const hw_real *a, int64_t row_step,
                        int64_t term_step, const hw_real *b, int64_t ldb, int64_t terms, bool add)
{
    if (rows <= 0 || cols <= 0) return;
    if (terms <= 0 && !add)
        for (int64_t r = 0; r < rows; r++) memset(c + r * ldc, 0, (size_t)cols * sizeof *c);
    const int64_t stretches = (terms + STRETCH - 1) / STRETCH;
    for (int64_t s = 0, t = 0; s < stretches; s++) {
        const int64_t count = (terms - t) / (stretches - s);
        for (int64_t column = 0; column < cols; column += COLUMNS) {
            const job j = {c + column, ldc, a + t * term_step, row_step, term_step, b + t * ldb + column, ldb, count,
                           add || s > 0};
            if (cols - column >= COLUMNS) panel(&j, rows);
            else narrow_panel(&j, rows, cols - column);
        }
        t += count;
    }
}
