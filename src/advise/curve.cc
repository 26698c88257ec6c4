#include "advise/curve.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace weft::advise {

double Curve::at(double step) const {
  const double x = step - from;
  switch (kind) {
    case CurveKind::exp2:
      return a * std::exp(-b * x);
    case CurveKind::exp3:
      return a * std::exp(-b * x) + c;
    case CurveKind::lin2:
      return a * x + b;
    case CurveKind::pow3:
      return a * std::pow(std::max(x, 1.0), -b) + c;
  }
  return 0;
}

std::string Curve::text() const {
  const std::string x = from == 0 ? "x = step" : fmt::format("x = step - {:.0f}", from);
  switch (kind) {
    case CurveKind::exp2:
      return fmt::format("{:.4g}*exp(-{:.4g}*x), {}", a, b, x);
    case CurveKind::exp3:
      return fmt::format("{:.4g} + {:.4g}*exp(-{:.4g}*x), {}", c, a, b, x);
    case CurveKind::lin2:
      return fmt::format("{:.4g} - {:.4g}*x, {}", b, -a, x);
    case CurveKind::pow3:
      return fmt::format("{:.4g} + {:.4g}*x^-{:.4g}, {}", c, a, b, x);
  }
  return "";
}

std::string_view name_of(CurveKind kind) {
  switch (kind) {
    case CurveKind::exp2:
      return "exp2";
    case CurveKind::exp3:
      return "exp3";
    case CurveKind::lin2:
      return "lin2";
    case CurveKind::pow3:
      return "pow3";
  }
  return "";
}

std::optional<CurveKind> curve_kind(std::string_view name) {
  if (name == "expd3") return CurveKind::exp3;
  for (const CurveKind kind : {CurveKind::exp2, CurveKind::exp3, CurveKind::lin2, CurveKind::pow3})
    if (name_of(kind) == name) return kind;
  return std::nullopt;
}

}  // namespace weft::advise
