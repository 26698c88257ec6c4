// LMDB, data version 1, as 64-bit little-endian machines write it: pages of one size, two of them meta pages, and trees
// of branch and leaf pages. A value that does not fit into its leaf has overflow pages of its own. The scanner waits
// for the whole file. It then reads the branches, leaves and overflow headers below the newer meta page.
#include <fmt/core.h>

#include <array>
#include <string>
#include <vector>

#include "base/limits.h"
#include "format/containers.h"
#include "format/cursor.h"

namespace weft {
namespace {

constexpr std::uint64_t kPageHeader = 16;
constexpr std::uint64_t kMetaBytes = 136;
constexpr std::uint32_t kLmdbMagic = 0xbeefc0de;
constexpr std::uint32_t kVersion = 1;
constexpr std::uint64_t kNoPage = UINT64_MAX;
constexpr std::uint64_t kPageMin = 512, kPageMax = 65'536;
constexpr std::uint64_t kNodeHeader = 8;
constexpr std::uint64_t kDatabaseBytes = 48;
constexpr unsigned kBranch = 1, kLeaf = 2, kOverflow = 4, kPageKinds = 15;  // flags of a page
constexpr unsigned kBigData = 1, kSubData = 2, kDupData = 4;                // flags of a node
constexpr unsigned kDupSort = 4;                                            // flags of a database
constexpr std::size_t kFreeAt = 24, kMainAt = kFreeAt + kDatabaseBytes;     // offsets in a meta page's payload
constexpr std::size_t kLastPageAt = kMainAt + kDatabaseBytes, kTxnAt = kLastPageAt + 8;

template <class... Args>
Error invalid(fmt::format_string<Args...> format, Args&&... args) {
  return Error{Errc::invalid, fmt::format(format, std::forward<Args>(args)...)};
}

struct Database {
  unsigned flags = 0;
  std::uint64_t root = kNoPage;
};

Database load_database(const std::byte* bytes) {
  return {load_le<std::uint16_t>(bytes + 4), load_le<std::uint64_t>(bytes + 40)};
}

struct Meta {
  std::uint64_t page_bytes = 0;
  std::uint64_t last_page = 0;
  std::uint64_t transaction = 0;
  Database main;
};

// Walks the trees of one file once.
class LmdbWalk {
 public:
  LmdbWalk(ByteSource& source, RecordSink& sink) : source_(source), sink_(sink) {}

  Status run() {
    WEFT_CHECK(read_metas());
    seen_.assign(meta_.last_page + 1, false);
    seen_[0] = seen_[1] = true;
    return walk_database(meta_.main, "");
  }

 private:
  Result<Meta> read_meta(std::uint64_t at) {
    std::array<std::byte, kMetaBytes> payload{};
    if (source_.size() < at + kPageHeader + kMetaBytes)
      return invalid("expected two meta pages, got the end of the file");
    WEFT_CHECK(source_.read(at + kPageHeader, payload));
    const auto magic = load_le<std::uint32_t>(payload.data());
    if (magic != kLmdbMagic) return invalid("expected a meta page at {}, got other bytes", at);
    const auto version = load_le<std::uint32_t>(payload.data() + 4);
    if (version != kVersion)
      return Error{Errc::unsupported, fmt::format("expected data version {}, got {}", kVersion, version)};
    Meta meta;
    meta.page_bytes = load_le<std::uint32_t>(payload.data() + kFreeAt);  // LMDB's md_pad of the free-page database
    meta.main = load_database(payload.data() + kMainAt);
    meta.last_page = load_le<std::uint64_t>(payload.data() + kLastPageAt);
    meta.transaction = load_le<std::uint64_t>(payload.data() + kTxnAt);
    if (meta.page_bytes < kPageMin || meta.page_bytes > kPageMax || (meta.page_bytes & (meta.page_bytes - 1)) != 0)
      return invalid("expected pages of {} to {} bytes, a power of two, got {}", kPageMin, kPageMax, meta.page_bytes);
    return meta;
  }

  // Both meta pages must be valid: LMDB itself does not open a file with a damaged one.
  Status read_metas() {
    WEFT_TRY(meta_, read_meta(0));
    WEFT_TRY(const Meta second, read_meta(meta_.page_bytes));
    if (second.page_bytes != meta_.page_bytes)
      return invalid("expected meta pages of one page size, got {} and {}", meta_.page_bytes, second.page_bytes);
    if (second.transaction > meta_.transaction) meta_ = second;
    // A file may end within its last page, but each page in use begins within the file.
    const std::uint64_t pages = (source_.size() + meta_.page_bytes - 1) / meta_.page_bytes;
    if (meta_.last_page < 1 || meta_.last_page >= pages)
      return invalid("expected {} pages, got a file of {}", meta_.last_page, pages);
    if (meta_.last_page >= limits::kLmdbPagesMax)
      return Error{Errc::unsupported,
                   fmt::format("expected fewer than {} pages, got {}", limits::kLmdbPagesMax, meta_.last_page + 1)};
    return {};
  }

  Status walk_database(const Database& database, const std::string& prefix) {
    if ((database.flags & kDupSort) != 0)
      return Error{Errc::unsupported, "a database with several values for a key (MDB_DUPSORT)"};
    if (database.root == kNoPage) return {};
    return walk_page(database.root, prefix, 0);
  }

  Status take_page(std::uint64_t number) {
    if (number > meta_.last_page) return invalid("expected pages up to {}, got page {}", meta_.last_page, number);
    if (seen_[number]) return invalid("page {} is used twice", number);
    seen_[number] = true;
    return {};
  }

  Status walk_page(std::uint64_t number, const std::string& prefix, std::size_t depth) {
    if (depth >= limits::kLmdbDepthMax) return invalid("expected at most {} levels of pages", limits::kLmdbDepthMax);
    WEFT_CHECK(take_page(number));
    std::vector<std::byte> page(meta_.page_bytes);
    if (source_.size() - number * meta_.page_bytes < page.size()) return invalid("page {} is cut short", number);
    WEFT_CHECK(source_.read(number * meta_.page_bytes, page));
    const unsigned flags = load_le<std::uint16_t>(page.data() + 10) & kPageKinds;
    if (load_le<std::uint64_t>(page.data()) != number || (flags != kBranch && flags != kLeaf))
      return invalid("page {} is no branch and no leaf", number);
    const auto lower = load_le<std::uint16_t>(page.data() + 12);
    if (lower < kPageHeader || lower > page.size()) return invalid("page {} has pointers outside", number);
    const std::size_t nodes = (lower - kPageHeader) / 2;
    for (std::size_t i = 0; i < nodes; ++i) {
      const auto at = load_le<std::uint16_t>(page.data() + kPageHeader + 2 * i);
      if (at < lower || at + kNodeHeader > page.size()) return invalid("page {} has a node outside", number);
      const auto node = std::span(page).subspan(at);
      WEFT_CHECK(flags == kBranch ? walk_branch(node, prefix, depth) : walk_leaf(node, {number, at}, prefix));
    }
    return {};
  }

  Status walk_branch(std::span<const std::byte> node, const std::string& prefix, std::size_t depth) {
    std::uint64_t number = load_le<std::uint16_t>(node.data() + 4);
    number = number << 32U | load_le<std::uint32_t>(node.data());
    return walk_page(number, prefix, depth + 1);
  }

  struct NodePlace {
    std::uint64_t page;
    std::uint64_t at;
  };

  Status walk_leaf(std::span<const std::byte> node, NodePlace place, const std::string& prefix) {
    const auto flags = load_le<std::uint16_t>(node.data() + 4);
    const auto key_bytes = load_le<std::uint16_t>(node.data() + 6);
    const auto length = load_le<std::uint32_t>(node.data());
    const std::uint64_t data_at = kNodeHeader + key_bytes;
    const std::uint64_t data_bytes = (flags & kBigData) != 0 ? 8 : length;
    if (key_bytes == 0 || data_at + data_bytes > node.size())
      return invalid("page {} has a key or a value that leaves it", place.page);
    if ((flags & kDupData) != 0)
      return Error{Errc::unsupported, "a database with several values for a key (MDB_DUPSORT)"};
    std::string name = prefix;
    name.append(reinterpret_cast<const char*>(node.data() + kNodeHeader), key_bytes);
    if (name.size() > limits::kRecordNameMax)
      return invalid("expected names of at most {} bytes", limits::kRecordNameMax);
    if ((flags & kSubData) != 0) {
      if (length != kDatabaseBytes) return invalid("page {} has a database of {} bytes", place.page, length);
      if (!prefix.empty()) return invalid("page {} has a database within a database", place.page);
      return walk_database(load_database(node.data() + data_at), name + "/");
    }
    if ((flags & kBigData) != 0) return take_overflow(load_le<std::uint64_t>(node.data() + data_at), name, length);
    return sink_.record({name, place.page * meta_.page_bytes + place.at + data_at, length});
  }

  Status take_overflow(std::uint64_t first, const std::string& name, std::uint64_t length) {
    WEFT_CHECK(take_page(first));
    std::array<std::byte, kPageHeader> header{};
    const std::uint64_t at = first * meta_.page_bytes;
    if (source_.size() - at < kPageHeader + length) return invalid("the value at page {} leaves the file", first);
    WEFT_CHECK(source_.read(at, header));
    const std::uint64_t pages = load_le<std::uint32_t>(header.data() + 12);
    if (load_le<std::uint64_t>(header.data()) != first ||
        (load_le<std::uint16_t>(header.data() + 10) & kPageKinds) != kOverflow || pages == 0 ||
        pages > meta_.last_page - first + 1 || pages * meta_.page_bytes < kPageHeader + length)
      return invalid("page {} is no overflow page of {} bytes", first, length);
    for (std::uint64_t i = 1; i < pages; ++i) WEFT_CHECK(take_page(first + i));
    return sink_.record({name, at + kPageHeader, length});
  }

  ByteSource& source_;
  RecordSink& sink_;
  Meta meta_;
  std::vector<bool> seen_;  // by page number: the walk has used the page
};

class LmdbScanner final : public RecordScanner {
 public:
  explicit LmdbScanner(RecordSink& sink) : sink_(sink) {}
  Status feed(std::span<const std::byte> /*bytes*/) override { return {}; }  // a tree's pages may lie anywhere
  Status finish(ByteSource& source) override { return LmdbWalk(source, sink_).run(); }

 private:
  RecordSink& sink_;
};

class Lmdb final : public ContainerFormat {
 public:
  std::string_view name() const override { return "lmdb"; }
  bool claims(std::string_view file_name, std::span<const std::byte> head) const override {
    return file_name == "data.mdb" ||
           (head.size() >= kPageHeader + 4 && load_le<std::uint32_t>(head.data() + kPageHeader) == kLmdbMagic);
  }
  bool names_are_paths() const override { return false; }
  std::unique_ptr<RecordScanner> scan(std::uint64_t /*size*/, RecordSink& sink) const override {
    return std::make_unique<LmdbScanner>(sink);
  }
};

}  // namespace

const ContainerFormat& lmdb_container() {
  static const Lmdb format;
  return format;
}

}  // namespace weft
