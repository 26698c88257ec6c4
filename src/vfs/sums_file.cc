#include "vfs/sums_file.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dataset/dataset_table.h"
#include "dataset/small_sums.h"
#include "dataset/sums_text.h"
#include "vfs/dataset_dir.h"

namespace weft {
namespace {

// The small files of a data set, and the file with their digests.
struct SmallPart {
  DatasetTablePointer table;
  SmallSums lines;
  std::shared_ptr<OpenFile> digests;

  Status read(std::uint64_t offset, std::span<std::byte> out) const {
    return lines.read(offset, out, [this](std::uint64_t first, std::span<Digest> some) -> Status {
      const auto bytes = std::as_writable_bytes(some);
      WEFT_TRY(const std::size_t got, digests->read(first * sizeof(Digest), bytes));
      return got == bytes.size() ? Status{} : Status(Error{Errc::io, "the sums of small files ended early"});
    });
  }
};

// A version may have millions of files, so a part of the lines is made when it is read.
class SumsFile final : public OpenFile {
 public:
  SumsFile(TreeVersionPointer version, std::optional<SmallPart> small)
      : version_(std::move(version)), small_(std::move(small)) {
    const std::span<const File> files = published_files(version_->manifest());
    for (std::size_t i = 0; i < files.size(); ++i) {
      if (i % kStartsStep == 0) starts_.push_back(head_bytes_);
      if (files[i].sha256) head_bytes_ += sums_line_bytes(files[i].path);
    }
  }

  std::uint64_t size() const override { return head_bytes_ + (small_ ? small_->lines.bytes() : 0); }

  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> out) override {
    const std::uint64_t whole = size();
    out = out.first(static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), whole - std::min(offset, whole))));
    std::size_t from_head = 0;
    if (offset < head_bytes_) {
      from_head = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), head_bytes_ - offset));
      read_head(offset, out.first(from_head));
    }
    if (const auto rest = out.subspan(from_head); !rest.empty())
      WEFT_CHECK(small_->read(offset + from_head - head_bytes_, rest));
    return out.size();
  }

  int backing_fd() const override { return -1; }

 private:
  static constexpr std::size_t kStartsStep = 256;

  // Fills `out` with a part of the lines of the published files.
  void read_head(std::uint64_t offset, std::span<std::byte> out) const {
    const std::span<const File> files = published_files(version_->manifest());
    const auto step = static_cast<std::size_t>(std::ranges::upper_bound(starts_, offset) - starts_.begin()) - 1;
    std::uint64_t at = starts_[step];
    for (std::size_t i = step * kStartsStep; !out.empty(); ++i) {
      if (!files[i].sha256) continue;
      const std::uint64_t start = std::exchange(at, at + sums_line_bytes(files[i].path));
      if (at <= offset) continue;
      std::string line;
      append_sums_line(line, *files[i].sha256, files[i].path);
      const std::uint64_t skip = offset - start;
      const std::size_t bytes = std::min<std::size_t>(line.size() - skip, out.size());
      std::memcpy(out.data(), line.data() + skip, bytes);
      out = out.subspan(bytes);
      offset += bytes;
    }
  }

  const TreeVersionPointer version_;
  const std::optional<SmallPart> small_;
  std::uint64_t head_bytes_ = 0;       // of the lines of the published files
  std::vector<std::uint64_t> starts_;  // of each kStartsStep files: where their lines begin
};

// Returns nothing for a version without sums of small files. Errc::corrupt: they do not fit the file table.
Result<std::optional<SmallPart>> small_part(VersionFiles& versions, const TreeVersionPointer& version) {
  const std::span<const File> sums = files_of(version->manifest(), FileRole::sums);
  if (sums.empty()) return std::optional<SmallPart>();
  WEFT_TRY(DatasetTablePointer table, small_table_of(*version));
  const FileTable& files = table->small_files()->table;
  if (sums.front().size != files.files() * sizeof(Digest))
    return Error{Errc::corrupt, "the sums of small files: expected a digest for each file"};
  const auto number = static_cast<std::uint32_t>(sums.data() - version->manifest().files.data());
  WEFT_TRY(auto digests, versions.open_file(version, number));
  return std::optional(SmallPart{std::move(table), SmallSums(files), std::move(digests)});
}

}  // namespace

Result<std::shared_ptr<OpenFile>> open_sums(VersionFiles& versions, VersionId id) {
  WEFT_TRY(TreeVersionPointer version, versions.load(id, 0));
  WEFT_TRY(std::optional<SmallPart> small, small_part(versions, version));
  return std::shared_ptr<OpenFile>(std::make_shared<SumsFile>(std::move(version), std::move(small)));
}

}  // namespace weft
