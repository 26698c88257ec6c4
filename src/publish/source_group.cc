#include "publish/source_group.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"
#include "weft/model/manifest.h"

namespace weft {
namespace {

const std::string& path_of(const Draft& draft) {
  return draft.source.path;
}

}  // namespace

SourceGroup::SourceGroup(std::span<const Draft> all, std::size_t number, ByteSource& main)
    : all_(all), number_(number), main_(main) {}

std::string_view SourceGroup::name() const {
  const std::string_view path = path_of(all_[number_]);
  return path.substr(path.rfind('/') + 1);
}

Result<std::uint32_t> SourceGroup::number_of(std::string_view path) const {
  const std::string& own = path_of(all_[number_]);
  const std::string whole = own.substr(0, own.rfind('/') + 1).append(path);
  const auto found = std::ranges::lower_bound(all_, whole, {}, path_of);
  if (!check_file_path(path).ok() || found == all_.end() || path_of(*found) != whole)
    return Error{Errc::not_found, fmt::format("no file {} is published with it", printable(path))};
  return static_cast<std::uint32_t>(found - all_.begin());
}

Result<ByteSource*> SourceGroup::beside(std::string_view path) {
  WEFT_TRY(const std::uint32_t number, number_of(path));
  if (const auto known = opened_.find(number); known != opened_.end()) return known->second.bytes.get();
  Beside file;
  WEFT_TRY(file.fd, open_source(all_[number].source, file.seen));
  file.bytes = std::make_unique<FdSource>(file.fd.get(), static_cast<std::uint64_t>(file.seen.st_size),
                                          all_[number].source.where, all_[number].source.await);
  return opened_.emplace(number, std::move(file)).first->second.bytes.get();
}

}  // namespace weft
