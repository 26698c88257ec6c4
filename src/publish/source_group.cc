#include "publish/source_group.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "os/sys.h"
#include "publish/fd_source.h"
#include "publish/gather.h"
#include "weft/model/manifest.h"

namespace weft {
namespace {

const std::string& path_of(const Draft& draft) {
  return draft.source.path;
}

}  // namespace

class SourceGroup::Beside final : public ByteSource {
 public:
  Beside(SourceGroup& group, const SourceFile& source) : group_(group), source_(source) {}

  std::uint64_t size() const override { return static_cast<std::uint64_t>(seen_.st_size); }
  Status read(std::uint64_t offset, std::span<std::byte> out) override {
    if (!bytes_) {
      struct stat now {};
      WEFT_TRY(Fd fd, open_source(source_, now));
      WEFT_CHECK(check_source(source_, seen_, now));
      keep(std::move(fd));
    }
    return bytes_->read(offset, out);
  }

  // Call it once, before all others.
  Status open() {
    WEFT_TRY(Fd fd, open_source(source_, seen_));
    keep(std::move(fd));
    return {};
  }
  void close() {
    bytes_.reset();
    fd_.reset();
  }
  const struct stat& seen() const { return seen_; }

 private:
  void keep(Fd fd) {
    fd_ = std::move(fd);
    bytes_.emplace(fd_.get(), size(), source_.where, source_.await);
    group_.open_.push_back(this);
    if (group_.open_.size() <= kBesideOpenMax) return;
    group_.open_.front()->close();
    group_.open_.pop_front();
  }

  SourceGroup& group_;
  const SourceFile& source_;
  struct stat seen_ {};
  Fd fd_;
  std::optional<FdSource> bytes_;
};

SourceGroup::~SourceGroup() = default;

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
  if (const auto known = opened_.find(number); known != opened_.end()) return known->second.get();
  auto file = std::make_unique<Beside>(*this, all_[number].source);
  WEFT_CHECK(file->open());
  return opened_.emplace(number, std::move(file)).first->second.get();
}

std::map<std::uint32_t, struct stat> SourceGroup::opened() const {
  std::map<std::uint32_t, struct stat> out;
  for (const auto& [number, file] : opened_) out.emplace(number, file->seen());
  return out;
}

}  // namespace weft
