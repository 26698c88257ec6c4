#include "drafts/draft_file.h"

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "os/file_ops.h"

namespace weft {
namespace {

constexpr char kWhere[] = "a draft";

}  // namespace

Result<std::shared_ptr<DraftFile>> DraftFile::open(DraftTree& tree, Ino ino, bool written) {
  WEFT_TRY(Fd fd, tree.open(ino, O_RDONLY));
  WEFT_TRY(const struct stat st, stat_fd(fd.get(), kWhere));
  if (!S_ISREG(st.st_mode)) return Error{Errc::invalid, "a draft: expected a regular file"};
  std::shared_ptr<DraftFile> file(new DraftFile(tree, std::move(fd), written));
  if (written)
    if (auto descriptor = file->writable(); descriptor.ok()) file->writable_ = std::move(*descriptor);
  return file;
}

DraftFile::DraftFile(DraftTree& tree, Fd fd, bool written) : tree_(tree), fd_(std::move(fd)), written_(written) {
  tree_.opened(fd_.get());
}

DraftFile::~DraftFile() {
  tree_.closed(fd_.get());
}

void DraftFile::writer_opened(Fd fd) {
  const std::lock_guard lock(mutex_);
  ++writers_;
  if (!writable_) writable_ = std::make_shared<const Fd>(std::move(fd));
}

void DraftFile::writer_closed() {
  std::shared_ptr<const Fd> last;
  const std::lock_guard lock(mutex_);
  if (writers_ > 0 && --writers_ == 0 && !written_) last = std::move(writable_);
}

Result<std::shared_ptr<const Fd>> DraftFile::writable() const {
  {
    const std::lock_guard lock(mutex_);
    if (writable_) return writable_;
  }
  WEFT_TRY(Fd fd, open_descriptor(fd_.get(), O_WRONLY | O_NOCTTY));
  return std::make_shared<const Fd>(std::move(fd));
}

std::uint64_t DraftFile::size() const {
  const auto st = stat_fd(fd_.get(), kWhere);
  return st.ok() ? static_cast<std::uint64_t>(st->st_size) : 0;
}

Result<std::size_t> DraftFile::read(std::uint64_t offset, std::span<std::byte> out) {
  return read_some(fd_.get(), offset, out, kWhere);
}

Status DraftFile::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  WEFT_TRY(const auto fd, writable());
  return write_exact(fd->get(), offset, bytes, kWhere);
}

}  // namespace weft
