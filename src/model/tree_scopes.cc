#include "model/tree_scopes.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "weft/model/tree.h"

namespace weft {
namespace {

using Names = std::unordered_set<std::string_view>;

Status check_view_name(const File& file, const Tensor& tensor) {
  std::size_t bytes = escape_component(tensor.name).size() + std::string_view(".npy").size();
  if (bytes <= limits::kNameMax) return {};
  return Error{Errc::invalid,
               fmt::format("{}: tensor \"{}\": expected a name whose view's has at most {} bytes, got {}", file.path,
                           printable(tensor.name), limits::kNameMax, bytes)};
}

// Returns the names of a file's tensors, sorted.
Result<std::vector<std::string_view>> names_of(const File& file) {
  std::vector<std::string_view> names;
  names.reserve(file.tensors.size());
  for (const Tensor& tensor : file.tensors) {
    WEFT_CHECK(check_view_name(file, tensor));
    names.emplace_back(tensor.name);
  }
  std::ranges::sort(names);
  if (const auto twice = std::ranges::adjacent_find(names); twice != names.end())
    return Error{Errc::invalid, fmt::format("{}: tensor \"{}\" is there twice", file.path, printable(*twice))};
  return names;
}

Result<Scope> aside(const File& file, std::uint32_t index) {
  Scope scope{fmt::format("@{}", escape_component(file.path)), {index}};
  if (scope.dir.size() <= limits::kNameMax) return scope;
  return Error{
      Errc::invalid,
      fmt::format("{}: a name of its tensors is taken by an earlier file, and its own directory of views would "
                  "have a name of {} bytes, expected at most {}",
                  file.path, scope.dir.size(), limits::kNameMax)};
}

}  // namespace

// The names of plain files enter the set only once another file has tensors: a set of a million names takes more memory
// than the names.
Result<std::vector<Scope>> plan_scopes(const Manifest& manifest) {
  std::vector<Scope> scopes(1);
  Names taken;
  std::vector<std::string_view> before;  // names of the last plain file, not in `taken` yet
  for (std::uint32_t i = 0; i < manifest.files.size(); ++i) {
    const File& file = manifest.files[i];
    WEFT_TRY(std::vector<std::string_view> names, names_of(file));
    if (!names.empty()) taken.insert(before.begin(), before.end());
    if (std::ranges::any_of(names, [&](std::string_view name) { return taken.contains(name); })) {
      WEFT_TRY(Scope scope, aside(file, i));
      scopes.push_back(std::move(scope));
      before.clear();
      continue;
    }
    scopes.front().files.push_back(i);
    if (!names.empty()) before = std::move(names);
  }
  return scopes;
}

}  // namespace weft
