#include "weft/model/lfs_pointer.h"

#include <algorithm>
#include <array>

namespace weft {
namespace {

constexpr std::string_view kLfsMagic = "version https://git-lfs.github.com/spec/";
static_assert(kLfsMagic.size() == kLfsPointerHead);

bool is_name_of_text(std::string_view file_name) {
  constexpr std::array<std::string_view, 4> kTexts = {".md", ".txt", ".rst", ".html"};
  return file_name.find('.') == std::string_view::npos ||
         std::ranges::any_of(kTexts, [&](std::string_view suffix) { return file_name.ends_with(suffix); });
}

}  // namespace

Status refuse_lfs_pointer(std::string_view file_name, std::uint64_t size, std::span<const std::byte> head) {
  if (size > kLfsPointerMax || head.size() < kLfsMagic.size() || is_name_of_text(file_name)) return {};
  if (!std::ranges::equal(head.first(kLfsMagic.size()), std::as_bytes(std::span(kLfsMagic)))) return {};
  return Error{Errc::invalid, "expected the file itself, got a Git LFS pointer to it: run git lfs pull"};
}

}  // namespace weft
