// What differs from OpenBLAS as it comes: how many threads it uses, and products of few rows.

#include <stdlib.h>
#include <unistd.h>

enum order { ROW_MAJOR = 101, COLUMN_MAJOR = 102 };
enum transpose { NO_TRANSPOSE = 111, TRANSPOSE = 112, CONJUGATE = 113 };

void scipy_openblas_set_num_threads(int count);
void scipy_cblas_sgemm(enum order, enum transpose, enum transpose, int, int, int, float,
                       const float *, int, const float *, int, float, float *, int);
void scipy_cblas_sgemv(enum order, enum transpose, int, int, float, const float *, int,
                       const float *, int, float, float *, int);

// Its threads wait for each other by spinning. When they cannot all run at once, because MLX's own
// threads or other programs want the processor too, a product takes many times longer than on one
// thread. So half the processors is all it gets, unless the user has decided.
__attribute__((constructor)) static void set_threads(void) {
  if (getenv("OPENBLAS_NUM_THREADS") != NULL) {
    return;
  }
  long processors = sysconf(_SC_NPROCESSORS_ONLN);
  scipy_openblas_set_num_threads(processors > 3 ? (int)(processors / 2) : 1);
}

// OpenBLAS copies the whole right-hand matrix into its own layout, which for the few rows of a
// decode step takes longer than to multiply by it. One or two rows are multiplied as vectors. A few
// more go in blocks of columns small enough for the kernels that copy nothing.
#define VECTOR_ROWS 2
#define FEW_ROWS 8
// OpenBLAS uses those kernels up to a million multiplications.
#define SMALL_PRODUCT 600000

void cblas_sgemm(enum order order, enum transpose transpose_a, enum transpose transpose_b, int m,
                 int n, int k, float alpha, const float *a, int lda, const float *b, int ldb,
                 float beta, float *c, int ldc) {
  int is_a_transposed = transpose_a != NO_TRANSPOSE;
  int is_b_transposed = transpose_b != NO_TRANSPOSE;
  if (order == ROW_MAJOR && m <= VECTOR_ROWS && n > 1 && k > 0) {
    for (int row = 0; row < m; row++) {
      scipy_cblas_sgemv(ROW_MAJOR, is_b_transposed ? NO_TRANSPOSE : TRANSPOSE,
                        is_b_transposed ? n : k, is_b_transposed ? k : n, alpha, b, ldb,
                        is_a_transposed ? a + row : a + (long)row * lda, is_a_transposed ? lda : 1,
                        beta, c + (long)row * ldc, 1);
    }
    return;
  }
  int block = n;
  if (order == ROW_MAJOR && m <= FEW_ROWS && k > 0) {
    int columns = SMALL_PRODUCT / (m * k);
    if (columns >= 32 && columns < n) {
      block = columns / 32 * 32;
    }
  }
  for (int start = 0; start < n; start += block) {
    scipy_cblas_sgemm(order, transpose_a, transpose_b, m, n - start < block ? n - start : block, k,
                      alpha, a, lda, is_b_transposed ? b + (long)start * ldb : b + start, ldb, beta,
                      c + start, ldc);
  }
}
