// tar: headers of 512 bytes, each followed by its member's bytes, padded to a multiple of 512, then a block of zeros.
// The scanner follows the chain of headers, so a tar within a tar is a member like any other. Regular files are
// records.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/text.h"
#include "format/containers.h"
#include "format/tar_header.h"

namespace weft {
namespace {

class TarScanner final : public RecordScanner {
 public:
  TarScanner(std::uint64_t size, RecordSink& sink) : size_(size), sink_(sink) {}

  Status feed(std::span<const std::byte> bytes) override {
    while (!bytes.empty() && state_ != State::ended) {
      const auto take = static_cast<std::size_t>(std::min<std::uint64_t>(wanted_, bytes.size()));
      keep(bytes.first(take));
      bytes = bytes.subspan(take);
      at_ += take;
      wanted_ -= take;
      if (wanted_ == 0) WEFT_CHECK(complete());
    }
    return {};
  }

  Status finish(ByteSource& /*source*/) override {
    if (state_ == State::ended) return {};
    return Error{Errc::invalid, fmt::format("expected a block of zeros at the end, got the end of the file {}",
                                            state_ == State::header ? "in its place" : "within a member")};
  }

 private:
  enum class State { header, sparse_map, extra, padding, skipped, ended };

  // Keeps the bytes of a header, or of an extension of the next header: a long name or pax records.
  void keep(std::span<const std::byte> bytes) {
    if (state_ == State::header || state_ == State::sparse_map)
      std::memcpy(block_.data() + (kTarBlock - wanted_), bytes.data(), bytes.size());
    if (state_ == State::extra) extra_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  void expect(State state, std::uint64_t bytes) {
    state_ = state;
    wanted_ = bytes;
  }

  Status complete() {
    if (state_ == State::extra) WEFT_CHECK(take_extra());
    if (state_ == State::sparse_map) return pass_sparse(kMapGoesOnAt);
    if (state_ != State::header) {
      if (const std::uint64_t padding = padding_; padding > 0) {
        padding_ = 0;
        expect(State::padding, padding);
      } else {
        expect(State::header, kTarBlock);
      }
      return {};
    }
    WEFT_TRY(std::optional<TarHeader> header, parse_tar_header(block_));
    if (header) return take_header(*std::move(header));
    state_ = State::ended;
    return {};
  }

  // Expects the bytes after a header, and then their padding.
  Status pass(State state, std::uint64_t bytes) {
    if (bytes > size_ - at_)
      return Error{Errc::invalid, fmt::format("expected {} bytes of a member at {}, got the end of the file at {}",
                                              bytes, at_, size_)};
    padding_ = (kTarBlock - bytes % kTarBlock) % kTarBlock;
    if (bytes > 0) {
      expect(state, bytes);
      return {};
    }
    expect(State::header, kTarBlock);
    return {};
  }

  Status take_header(TarHeader header) {
    type_ = header.type;
    if (type_ == 'X') type_ = 'x';  // Solaris
    if (type_ == 'x' || type_ == 'g' || type_ == 'L' || type_ == 'K') {
      if (header.size > limits::kTarExtraMax)
        return Error{Errc::invalid, fmt::format("expected a long name or pax records of at most {} bytes, got {}",
                                                limits::kTarExtraMax, header.size)};
      extra_.clear();
      return pass(State::extra, header.size);
    }
    const PaxFacts facts = std::exchange(facts_, {});
    if (facts.name) header.name = *facts.name;
    if (facts.link) header.link = *facts.link;
    if (facts.size) header.size = *facts.size;
    return take_member(header, facts.sparse);
  }

  Status take_extra() {
    const std::string_view text = std::string_view(extra_).substr(0, std::min(extra_.find('\0'), extra_.size()));
    if (type_ == 'L') facts_.name = text;
    if (type_ == 'K') facts_.link = text;
    if (type_ == 'x') return parse_pax(extra_, facts_);
    PaxFacts global;  // times and owners, as programs write them; checked, and not used
    return type_ == 'g' ? parse_pax(extra_, global) : Status{};
  }

  // Reports a member to the sink. Links and directories have no bytes, whatever their size says.
  Status take_member(const TarHeader& header, bool sparse) {
    const MemberPath member = member_path(header.name);
    if (type_ == '5') return pass(State::skipped, 0);
    if (type_ == '1' || type_ == '2') {
      WEFT_CHECK(take_link(header, member));
      return pass(State::skipped, 0);
    }
    if (type_ == '3' || type_ == '4' || type_ == '6') {
      WEFT_CHECK(sink_.left_out(header.name, type_ == '6' ? "a fifo" : "a device"));
      return pass(State::skipped, 0);
    }
    if (type_ == 'S') {
      WEFT_CHECK(sink_.left_out(header.name, "a sparse member"));
      sparse_bytes_ = header.size;
      return pass_sparse(kHeaderGoesOnAt);
    }
    if (sparse || !member.why.empty() || is_meta(type_)) {
      if (!is_meta(type_)) WEFT_CHECK(sink_.left_out(header.name, sparse ? "a sparse member" : member.why));
      return pass(State::skipped, header.size);
    }
    const Record record{member.path, at_, header.size};
    WEFT_CHECK(pass(State::skipped, header.size));
    return sink_.record(record);
  }

  // GNU's old sparse members have map blocks between the header and the bytes. A byte of the header and of each map
  // block says whether another block follows.
  static constexpr std::size_t kHeaderGoesOnAt = 482;
  static constexpr std::size_t kMapGoesOnAt = 504;
  Status pass_sparse(std::size_t goes_on_at) {
    if (block_[goes_on_at] == std::byte{0}) return pass(State::skipped, sparse_bytes_);
    expect(State::sparse_map, kTarBlock);
    return {};
  }

  // True for metadata of GNU tar: volume labels, directory lists, continued members and long names.
  static bool is_meta(char type) { return type == 'V' || type == 'M' || type == 'D' || type == 'N'; }

  Status take_link(const TarHeader& header, const MemberPath& member) {
    if (!member.why.empty()) return sink_.left_out(header.name, member.why);
    std::string target = header.link;
    if (type_ == '2') {
      if (target.starts_with('/')) return sink_.left_out(member.path, "a link that leaves the tar");
      const std::optional<std::string> found = resolved(member.path, target);
      if (!found) return sink_.left_out(member.path, "a link that leaves the tar");
      target = *found;
    }
    const MemberPath to = member_path(target);
    if (!to.why.empty()) return sink_.left_out(member.path, "a link that leaves the tar");
    return sink_.link(member.path, to.path);
  }

  // Returns the target of a symbolic link at `path`; nothing if it leaves the tar.
  static std::optional<std::string> resolved(std::string_view path, std::string_view target) {
    std::vector<std::string_view> parts = split(path, '/');
    parts.pop_back();
    for (const std::string_view one : split(target, '/')) {
      if (one == "..") {
        if (parts.empty()) return std::nullopt;
        parts.pop_back();
      } else if (!one.empty() && one != ".") {
        parts.push_back(one);
      }
    }
    std::string out;
    for (const std::string_view one : parts) out.append(out.empty() ? "" : "/").append(one);
    return out;
  }

  const std::uint64_t size_;
  RecordSink& sink_;
  State state_ = State::header;
  std::uint64_t wanted_ = kTarBlock;  // bytes until the state is complete
  std::uint64_t at_ = 0;              // offset of the next byte in the file
  std::uint64_t padding_ = 0;         // padding after the bytes of the state
  std::array<std::byte, kTarBlock> block_{};
  std::uint64_t sparse_bytes_ = 0;  // size of a sparse member
  char type_ = '0';                 // type of the last header
  std::string extra_;               // extension of the next header: a long name or pax records
  PaxFacts facts_;                  // facts about the next member
};

class Tar final : public ContainerFormat {
 public:
  std::string_view name() const override { return "tar"; }
  bool claims(std::string_view file_name, std::span<const std::byte> head) const override {
    constexpr std::string_view kMagic = "ustar";
    constexpr std::size_t kMagicAt = 257;
    return file_name.ends_with(".tar") ||
           (head.size() >= kTarBlock &&
            std::ranges::equal(head.subspan(kMagicAt, kMagic.size()), std::as_bytes(std::span(kMagic))));
  }
  bool names_are_paths() const override { return true; }
  std::unique_ptr<RecordScanner> scan(std::uint64_t size, RecordSink& sink) const override {
    return std::make_unique<TarScanner>(size, sink);
  }
};

}  // namespace

const ContainerFormat& tar_container() {
  static const Tar format;
  return format;
}

}  // namespace weft
