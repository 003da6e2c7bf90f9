/* The only caller of CBLAS. OpenBLAS runs on the calling thread alone: parallel work is cut into shards above it, so
 * that results do not depend on the number of threads. */
#include <cblas.h>
#include <limits.h>
#include <pthread.h>

#include <headwise/tensor.h>

#ifdef HW_REAL_DOUBLE
#define GEMM cblas_dgemm
#else
#define GEMM cblas_sgemm
#endif

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void one_thread(void)
{
    openblas_set_num_threads(1);
}

void hw_gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, hw_real alpha, const hw_real *a,
             int64_t lda, const hw_real *b, int64_t ldb, hw_real beta, hw_real *c, int64_t ldc)
{
    if (m == 0 || n == 0) return;
    const int64_t sizes[] = {m, n, k, lda, ldb, ldc};
    for (int i = 0; i < 6; i++)
        HW_CHECK(sizes[i] >= 0 && sizes[i] <= INT_MAX, "%lld is too large for BLAS", (long long)sizes[i]);
    pthread_once(&once, one_thread);
    GEMM(CblasRowMajor, transpose_a ? CblasTrans : CblasNoTrans, transpose_b ? CblasTrans : CblasNoTrans, (blasint)m,
         (blasint)n, (blasint)k, alpha, a, (blasint)lda, b, (blasint)ldb, beta, c, (blasint)ldc);
}

const char *hw_blas_kernel(void)
{
    return openblas_get_corename();
}
