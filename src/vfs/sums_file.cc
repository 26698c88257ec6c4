#include "vfs/sums_file.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

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

class SumsFile final : public OpenFile {
 public:
  SumsFile(TreeVersionPointer version, std::optional<SmallPart> small)
      : version_(std::move(version)), small_(std::move(small)) {
    for (const File& file : published_files(version_->manifest()))
      if (file.sha256) head_bytes_ += sums_line_bytes(file.path);
  }

  std::uint64_t size() const override { return head_bytes_ + (small_ ? small_->lines.bytes() : 0); }

  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> out) override {
    const std::uint64_t whole = size();
    out = out.first(static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), whole - std::min(offset, whole))));
    std::size_t from_head = 0;
    if (offset < head_bytes_) {
      from_head = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), head_bytes_ - offset));
      if (from_head != 0) std::memcpy(out.data(), head().data() + offset, from_head);
    }
    if (const auto rest = out.subspan(from_head); !rest.empty())
      WEFT_CHECK(small_->read(offset + from_head - head_bytes_, rest));
    return out.size();
  }

  int backing_fd() const override { return -1; }

 private:
  // The lines of the published files.
  const std::string& head() {
    std::call_once(made_, [this] {
      head_.reserve(head_bytes_);
      for (const File& file : published_files(version_->manifest()))
        if (file.sha256) append_sums_line(head_, *file.sha256, file.path);
    });
    return head_;
  }

  const TreeVersionPointer version_;
  const std::optional<SmallPart> small_;
  std::uint64_t head_bytes_ = 0;
  std::once_flag made_;
  std::string head_;
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
