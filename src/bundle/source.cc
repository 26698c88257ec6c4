#include "bundle/source.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "base/limits.h"
#include "base/text.h"
#include "bundle/members.h"
#include "format/tar_header.h"
#include "os/safe_path.h"
#include "os/sys.h"

namespace weft {
namespace {

Error damaged(std::string_view where, std::string_view what) {
  return Error{Errc::corrupt, fmt::format("{}: {}", where, what)};
}

Error other_size(std::string_view where, std::string_view name, std::uint64_t expected, std::uint64_t got) {
  return damaged(where, fmt::format("{}: expected {} bytes, got {}", name, expected, got));
}

Result<std::uint64_t> check_list_size(std::string_view where, std::uint64_t size) {
  if (size > 0 && size <= limits::kBundleListMax) return size;
  return damaged(where,
                 fmt::format("{}: expected 1 to {} bytes, got {}", kBundleListName, limits::kBundleListMax, size));
}

// Opens a file and checks that it is a regular one. Returns it with its size.
Result<std::pair<Fd, std::uint64_t>> open_regular(const BundleFiles& files, const std::string& name) {
  const std::string where = name.empty() ? files.where : fmt::format("{}/{}", files.where, name);
  auto fd = files.open(name);
  if (!fd.ok() && fd.error().code == Errc::not_found && !name.empty())
    return damaged(files.where, fmt::format("expected a file {}, got none", name));
  if (!fd.ok()) return std::move(fd).error();
  WEFT_TRY(const struct stat st, stat_fd(fd->get(), where));
  if (!S_ISREG(st.st_mode)) return damaged(where, "expected a regular file");
  return std::pair(std::move(fd).value(), static_cast<std::uint64_t>(st.st_size));
}

class TarSource final : public BundleSource {
 public:
  TarSource(std::string where, Fd fd, std::uint64_t size) : where_(std::move(where)), fd_(std::move(fd)), size_(size) {}

  Status begin(std::string_view name, std::uint64_t size) override {
    WEFT_TRY(const std::uint64_t got, header_of(name));
    return got == size ? Status{} : Status{other_size(where_, name, size, got)};
  }
  Result<std::uint64_t> begin_list() override {
    WEFT_TRY(const std::uint64_t size, header_of(kBundleListName));
    return check_list_size(where_, size);
  }
  Status read(std::span<std::byte> out) override {
    if (out.size() > left_) return Error{Errc::internal, fmt::format("{}: a read beyond a member", where_)};
    WEFT_CHECK(take(out));
    left_ -= out.size();
    return {};
  }
  Status end() override {
    WEFT_TRY(const auto header, next_header());
    if (!header) return {};
    return damaged(where_, fmt::format("expected the end of the bundle, got {}", printable(header->name)));
  }

 private:
  Status take(std::span<std::byte> out) {
    if (out.size() > size_ - at_) return damaged(where_, fmt::format("it ends after {} bytes", size_));
    WEFT_CHECK(read_exact(fd_.get(), at_, out, where_));
    at_ += out.size();
    return {};
  }

  // Returns the next header that is none of pax; nothing at the end of the tar.
  Result<std::optional<TarHeader>> next_header() {
    PaxFacts facts;
    for (;;) {
      at_ = std::min(size_, (at_ + left_ + kTarBlock - 1) / kTarBlock * kTarBlock);
      left_ = 0;
      std::array<std::byte, kTarBlock> block;
      WEFT_CHECK(take(block));
      auto header = parse_tar_header(block);
      if (!header.ok()) return damaged(where_, header.error().message);
      if (!*header) return std::optional<TarHeader>();
      if ((*header)->type != 'x') {
        if (facts.size) (*header)->size = *facts.size;
        if (facts.name || facts.link || facts.sparse) return damaged(where_, "expected plain members");
        return std::move(*header);
      }
      if ((*header)->size > limits::kBundlePaxMax) return damaged(where_, "a header that is too long");
      std::string records((*header)->size, '\0');
      WEFT_CHECK(take(std::as_writable_bytes(std::span(records))));
      if (const Status parsed = parse_pax(records, facts); !parsed.ok()) return damaged(where_, parsed.error().message);
    }
  }

  Result<std::uint64_t> header_of(std::string_view name) {
    WEFT_TRY(const auto header, next_header());
    if (!header) return damaged(where_, fmt::format("expected {}, got the end", name));
    if (header->name != name || header->type != '0')
      return damaged(where_, fmt::format("expected a file {}, got {}", name, printable(header->name)));
    if (header->size > size_ - at_)
      return damaged(where_, fmt::format("{}: expected {} bytes, got {}", name, header->size, size_ - at_));
    left_ = header->size;
    return header->size;
  }

  const std::string where_;
  const Fd fd_;
  const std::uint64_t size_;
  std::uint64_t at_ = 0;
  std::uint64_t left_ = 0;  // bytes of the member that were not read
};

class DirectorySource final : public BundleSource {
 public:
  explicit DirectorySource(BundleFiles files) : files_(std::move(files)) {}

  Status begin(std::string_view name, std::uint64_t size) override {
    WEFT_CHECK(open(name));
    return size_ == size ? Status{} : Status{other_size(files_.where, name, size, size_)};
  }
  Result<std::uint64_t> begin_list() override {
    WEFT_CHECK(open(kBundleListName));
    return check_list_size(files_.where, size_);
  }
  Status read(std::span<std::byte> out) override {
    if (out.size() > size_ - at_) return Error{Errc::internal, fmt::format("{}: a read beyond it", files_.where)};
    WEFT_CHECK(read_exact(fd_.get(), at_, out, files_.where));
    at_ += out.size();
    return {};
  }
  Status end() override { return {}; }

 private:
  Status open(std::string_view name) {
    WEFT_TRY(auto opened, open_regular(files_, std::string(name)));
    fd_ = std::move(opened.first);
    size_ = opened.second;
    at_ = 0;
    return {};
  }

  const BundleFiles files_;
  Fd fd_;
  std::uint64_t size_ = 0, at_ = 0;
};

}  // namespace

Result<BundleFiles> bundle_at(const std::string& path) {
  WEFT_TRY(const struct stat st, stat_file(path));
  if (!S_ISDIR(st.st_mode))
    return BundleFiles{path, false, [path](const std::string& name) -> Result<Fd> {
                         if (!name.empty()) return Error{Errc::invalid, fmt::format("{}: not a directory", path)};
                         return open_file(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
                       }};
  WEFT_TRY(Beneath beneath, Beneath::open(path));
  return BundleFiles{path, true, [root = SafePath(std::move(beneath))](const std::string& name) -> Result<Fd> {
                       if (name.empty()) return Error{Errc::invalid, fmt::format("{}: a directory", root)};
                       return open_file(root / name, O_RDONLY);
                     }};
}

Result<std::unique_ptr<BundleSource>> open_bundle(const BundleFiles& files) {
  if (files.directory) return std::unique_ptr<BundleSource>(std::make_unique<DirectorySource>(files));
  WEFT_TRY(auto opened, open_regular(files, ""));
  return std::unique_ptr<BundleSource>(
      std::make_unique<TarSource>(files.where, std::move(opened.first), opened.second));
}

Result<BundleList> read_list(BundleSource& source, std::string_view where) {
  WEFT_TRY(const std::uint64_t size, source.begin_list());
  std::vector<std::byte> bytes(size);
  WEFT_CHECK(source.read(bytes));
  return decode_bundle_list(bytes, fmt::format("{}: {}", where, kBundleListName));
}

Result<std::shared_ptr<const BundleList>> read_bundle_list(const BundleFiles& files) {
  WEFT_TRY(const auto source, open_bundle(files));
  WEFT_TRY(BundleList list, read_list(*source, files.where));
  return std::shared_ptr<const BundleList>(std::make_shared<const BundleList>(std::move(list)));
}

}  // namespace weft
