// `std::format` for compilers that do not ship <format> yet (GCC before 13); mlx-c uses it.
#pragma once
#if __has_include(<format>)
#include <format>
#else
#define FMT_HEADER_ONLY
#include <fmt/format.h>
namespace std {
using fmt::format;
}
#endif
