// The curves that a loss is expected to follow.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft::advise {

// exp3 is also the paper's Expd3, c - (c - a)*exp(-b*x): these are the same curves with another a.
enum class CurveKind : std::uint8_t { exp2, exp3, lin2, pow3 };

// With x = step - from:
//   exp2  a*exp(-b*x)
//   exp3  a*exp(-b*x) + c
//   lin2  a*x + b
//   pow3  a*x^(-b) + c, where x is at least 1
struct Curve {
  CurveKind kind = CurveKind::lin2;
  double a = 0;
  double b = 0;
  double c = 0;
  double from = 0;

  double at(double step) const;
  std::string text() const;  // "0.35 + 2.2*exp(-0.0011*x), x = step - 100"
};

std::string_view name_of(CurveKind kind);
std::optional<CurveKind> curve_kind(std::string_view name);  // accepts "expd3" for exp3

}  // namespace weft::advise
