// Symbols that mlx-rs links and that mlx-c or the system provide on Apple platforms only.
#include <chrono>
#include <cstdint>

#include "mlx/c/error.h"
#include "mlx/c/private/mlx.h"

// Seeds MLX's default random state: any clock that differs between runs will do.
extern "C" std::uint64_t mach_approximate_time() {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
}

// mlx-c leaves these out unless the target is arm64. Both sides agree on 16 bits of storage.
#ifndef __aarch64__
namespace {
template <typename T>
int item(T* result, mlx_array array) {
  try {
    *result = mlx_array_get_(array).item<T>();
    return 0;
  } catch (std::exception& error) {
    mlx_error(error.what());
    return 1;
  }
}

template <typename T>
const T* data(mlx_array array) {
  try {
    return mlx_array_get_(array).data<T>();
  } catch (std::exception& error) {
    mlx_error(error.what());
    return nullptr;
  }
}
} // namespace

extern "C" int mlx_array_item_float16(mlx::core::float16_t* result, mlx_array array) {
  return item(result, array);
}
extern "C" int mlx_array_item_bfloat16(mlx::core::bfloat16_t* result, mlx_array array) {
  return item(result, array);
}
extern "C" const mlx::core::float16_t* mlx_array_data_float16(mlx_array array) {
  return data<mlx::core::float16_t>(array);
}
extern "C" const mlx::core::bfloat16_t* mlx_array_data_bfloat16(mlx_array array) {
  return data<mlx::core::bfloat16_t>(array);
}
#endif
