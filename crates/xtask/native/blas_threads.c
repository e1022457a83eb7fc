// Decides how many threads OpenBLAS uses, once it is loaded and unless the user has decided.
//
// Its threads wait for each other by spinning. When they cannot all run at once, because MLX's own
// threads or other programs want the processor too, a product takes many times longer than on one
// thread. So half the processors is all it gets.

#include <stdlib.h>
#include <unistd.h>

void scipy_openblas_set_num_threads(int count);

__attribute__((constructor)) static void set_threads(void) {
  if (getenv("OPENBLAS_NUM_THREADS") != NULL) {
    return;
  }
  long processors = sysconf(_SC_NPROCESSORS_ONLN);
  scipy_openblas_set_num_threads(processors > 3 ? (int)(processors / 2) : 1);
}
