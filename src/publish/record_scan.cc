#include "publish/record_scan.h"

#include "base/limits.h"
#include "base/text.h"
#include "publish/fd_source.h"

namespace weft {

RecordScan::RecordScan(Draft& draft, int fd) : draft_(draft), fd_(fd) {
  if (draft.container == nullptr) return;
  const auto size = static_cast<std::uint64_t>(draft.seen.st_size);
  maker_.emplace(size);
  scanner_ = draft.container->scan(size, *maker_);
}

SeenBytes RecordScan::seen() {
  if (!scanner_) return {};
  return [this](std::span<const std::byte> bytes) { feed(bytes); };
}

void RecordScan::feed(std::span<const std::byte> bytes) {
  if (fed_.ok()) fed_ = scanner_->feed(bytes);
}

Status RecordScan::finish(File& file) {
  if (!scanner_) return {};
  FdSource source(fd_, static_cast<std::uint64_t>(draft_.seen.st_size), draft_.source.path);
  if (fed_.ok()) fed_ = scanner_->finish(source);
  if (fed_.ok()) {
    auto table = maker_->make(draft_.container->names_are_paths());
    if (table.ok()) {
      draft_.records = *std::move(table);
      return {};
    }
    fed_ = std::move(table).error();
  }
  const Errc code = fed_.error().code;
  if (code != Errc::invalid && code != Errc::unsupported) return fed_;
  file.metadata.emplace_back(kNoRecords, printable(fed_.error().message, limits::kMetadataTextMax));
  return {};
}

}  // namespace weft
