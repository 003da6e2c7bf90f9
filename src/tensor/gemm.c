/* The only caller of CBLAS. OpenBLAS runs on the calling thread alone: parallel work is cut into shards above it, so
 * that results do not depend on the number of threads.
 *
 * It needs a buffer for each caller at once, which it keeps, and where the system refuses one (ulimit -v) it asks again
 * for ever. So it is seen to that there is room, for all threads or for one at a time. */
#include <cblas.h>
#include <limits.h>
#include <pthread.h>
#include <sys/mman.h>

#include <headwise/tensor.h>

#ifdef HW_REAL_DOUBLE
#define GEMM cblas_dgemm
#else
#define GEMM cblas_sgemm
#endif

static const size_t BLAS_BUFFER = (size_t)129 << 20; /* OpenBLAS's BUFFER_SIZE, 128 MiB, and a little */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static bool one_by_one; /* there is no room for more buffers */

static bool room_for(size_t buffers)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *block = mmap(NULL, buffers * BLAS_BUFFER, PROT_READ | PROT_WRITE, flags, -1, 0);
    return block != MAP_FAILED && !munmap(block, buffers * BLAS_BUFFER);
}

static void begin(void)
{
    openblas_set_num_threads(1);
    HW_CHECK(room_for(1), "out of memory: OpenBLAS needs %zu MiB of address space more than this process may have",
             BLAS_BUFFER >> 20);
    one_by_one = !room_for(2 * (size_t)hw_threads()); /* as much again is left for all that comes later */
}

void hw_gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, hw_real alpha, const hw_real *a,
             int64_t lda, const hw_real *b, int64_t ldb, hw_real beta, hw_real *c, int64_t ldc)
{
    if (m == 0 || n == 0) return;
    const int64_t sizes[] = {m, n, k, lda, ldb, ldc};
    for (int i = 0; i < 6; i++)
        HW_CHECK(sizes[i] >= 0 && sizes[i] <= INT_MAX, "%lld is too large for BLAS", (long long)sizes[i]);
    pthread_once(&once, begin);
    if (one_by_one) pthread_mutex_lock(&turn);
    GEMM(CblasRowMajor, transpose_a ? CblasTrans : CblasNoTrans, transpose_b ? CblasTrans : CblasNoTrans, (blasint)m,
         (blasint)n, (blasint)k, alpha, a, (blasint)lda, b, (blasint)ldb, beta, c, (blasint)ldc);
    if (one_by_one) pthread_mutex_unlock(&turn);
}

/* Measured on one core, 256 and 512 rows, GFLOP/s of product against BLAS: 64 x 64: 137-143 against 96-101; 128 x 384:
 * 134-138 against 122-129; 512 x 512: 97-106 against 122; 512 x 2048: 63-72 against 108-112. With few rows or terms
 * BLAS moves more than it multiplies: 36 of them, 9,537 x 512: 67 against 54. */
enum { SHORT_ROW_B = 256, FEW = 48 };

void hw_product(bool transpose_a, int64_t rows, int64_t cols, int64_t terms, const hw_real *a, int64_t lda,
                const hw_real *b, int64_t ldb, bool add, hw_real *c, int64_t ldc)
{
    if (ldb <= SHORT_ROW_B || rows <= FEW || terms <= FEW)
        hw_kernels_get()->product(c, ldc, rows, cols, a, transpose_a ? 1 : lda, transpose_a ? lda : 1, b, ldb, terms,
                                  add);
    else
        hw_gemm(transpose_a, false, rows, cols, terms, 1, a, lda, b, ldb, add ? 1 : 0, c, ldc);
}

const char *hw_blas_kernel(void) { return openblas_get_corename(); }
