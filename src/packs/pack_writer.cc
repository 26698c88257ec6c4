#include "packs/pack_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include <fmt/core.h>

#include "os/entries.h"
#include "os/holes.h"
#include "weft/bytes/run_list.h"

namespace weft {
namespace {

// Often enough that the last fsync has little to write, rarely enough that the disk gets long runs.
constexpr std::uint64_t kWritebackEvery = 32U << 20U;
// The page cache handles shorter writes better.
constexpr std::size_t kDirectMin = 1U << 20U;
constexpr std::size_t kBounceBytes = 1U << 20U;

std::uint64_t round_up(std::uint64_t offset) {
  return (offset + kPackBlock - 1) / kPackBlock * kPackBlock;
}

}  // namespace

Result<std::unique_ptr<PackWriter>> PackWriter::create(const SafePath& store_path, const SafePath& temp_path,
                                                       PackKind kind) {
  WEFT_TRY(auto pack, create_in(packs_dir(store_path), temp_path, new_pack_id(kind)));
  if (kind == PackKind::manifests) {
    WEFT_TRY(pack->copy_, open_file(pack->path_ + ".copy", O_RDWR | O_CREAT | O_EXCL));
  }
  return pack;
}

Result<std::unique_ptr<PackWriter>> PackWriter::create_in(const SafePath& directory, const SafePath& temp_path,
                                                          PackId id) {
  SafePath path = temp_path / pack_name(id);
  WEFT_TRY(Fd fd, open_file(path + ".pack", O_RDWR | O_CREAT | O_EXCL));
  auto direct = open_file(path + ".pack", O_WRONLY | O_DIRECT);
  std::unique_ptr<PackWriter> pack(new PackWriter(id, std::move(fd), std::move(path), directory));
  if (direct.ok()) pack->direct_ = std::move(direct).value();
  return pack;
}

Result<std::unique_ptr<PackWriter>> PackWriter::take(const SafePath& store_path, const SafePath& temp_path, int fd,
                                                     Take take) {
  return take_in(packs_dir(store_path), temp_path, new_pack_id(PackKind::blobs), fd, take);
}

Result<std::unique_ptr<PackWriter>> PackWriter::take_in(const SafePath& directory, const SafePath& temp_path, PackId id,
                                                        int fd, Take take) {
  std::unique_ptr<PackWriter> none;
  WEFT_TRY(const bool can, can_take(temp_path, fd, take));
  if (!can) return none;
  auto lease = ReadLease::take(fd);
  if (!lease) return none;
  SafePath path = temp_path / pack_name(id);
  if (!link_descriptor(fd, path + ".pack")) return none;
  auto own = open_descriptor(fd);
  if (!own.ok()) {
    WEFT_CHECK(remove_file(path + ".pack"));
    return none;
  }
  std::unique_ptr<PackWriter> pack(new PackWriter(id, std::move(own).value(), std::move(path), directory));
  pack->taken_ = std::move(lease);
  return pack;
}

// False if the file is of another file system, or has too many names.
Result<bool> PackWriter::can_take(const SafePath& temp_path, int fd, Take take) {
  const nlink_t names_max = take == Take::share ? 2 : 1;
  WEFT_TRY(const struct stat st, stat_fd(fd, "a file to take"));
  WEFT_TRY(const struct stat home, stat_fd(temp_path.root().fd(), temp_path));
  return st.st_dev == home.st_dev && st.st_nlink <= names_max;
}

// Makes sure that hold() can succeed, while the file can still be copied. Removes the second name again: the name would
// outlive an import that is killed while the file arrives, and a file with two names is not taken.
Result<std::unique_ptr<PackWriter>> PackWriter::take_arriving(const SafePath& store_path, const SafePath& temp_path,
                                                              int fd, Take take) {
  std::unique_ptr<PackWriter> none;
  WEFT_TRY(const bool can, can_take(temp_path, fd, take));
  const PackId id = new_pack_id(PackKind::blobs);
  SafePath path = temp_path / pack_name(id);
  if (!can || !ReadLease::can_take(fd) || !link_descriptor(fd, path + ".pack")) return none;
  WEFT_CHECK(remove_file(path + ".pack"));
  auto own = open_descriptor(fd);
  if (!own.ok()) return none;
  return std::unique_ptr<PackWriter>(
      new PackWriter(id, std::move(own).value(), std::move(path), packs_dir(store_path)));
}

Status PackWriter::hold() {
  taken_ = ReadLease::take(fd_.get());
  if (taken_ && link_descriptor(fd_.get(), path_ + ".pack")) return {};
  return Error{Errc::busy, fmt::format("a file that is to be published: {}",
                                       taken_ ? "it cannot get a second name" : "somebody has it open for writing")};
}

PackEntry PackWriter::take_entry(const ContentId& id) {
  return lines_.take(id);
}

Status PackWriter::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  if (copy_.valid()) WEFT_CHECK(write_exact(copy_.get(), offset, bytes, path_ + ".copy"));
  const std::vector<Range> runs = runs_to_write(fd_.get(), offset, bytes);
  for (const Range& run : runs) WEFT_CHECK(write_run(offset + run.offset, bytes.subspan(run.offset, run.length)));
  const bool ends_in_hole = runs.empty() || runs.back().offset + runs.back().length < bytes.size();
  return ends_in_hole ? extend_file(fd_.get(), offset + bytes.size(), path_) : Status{};
}

Status PackWriter::write_run(std::uint64_t offset, std::span<const std::byte> bytes) {
  std::size_t head = round_up(offset) - offset;
  if (!direct_.valid() || bytes.size() < head + kDirectMin) return write_buffered(offset, bytes);
  std::size_t body = (bytes.size() - head) / kPackBlock * kPackBlock;
  WEFT_CHECK(write_buffered(offset, bytes.first(head)));
  WEFT_CHECK(write_direct(offset + head, bytes.subspan(head, body)));
  return write_buffered(offset + head + body, bytes.subspan(head + body));
}

Status PackWriter::write_buffered(std::uint64_t offset, std::span<const std::byte> bytes) {
  WEFT_CHECK(write_exact(fd_.get(), offset, bytes, path_));
  std::uint64_t before = std::exchange(buffered_, buffered_ + bytes.size());
  const bool due = before / kWritebackEvery != buffered_ / kWritebackEvery;
  if (due && !in_memory_) start_writeback(fd_.get(), 0, 0);
  return {};
}

Status PackWriter::write_direct(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    std::span<const std::byte> piece = aligned(bytes);
    Status written = write_exact(direct_.get(), offset, piece, path_);
    if (!written.ok() && (written.error().code == Errc::invalid || written.error().code == Errc::unsupported)) {
      direct_.reset();  // this file system has other alignment rules
      return write_buffered(offset, bytes);
    }
    WEFT_CHECK(std::move(written));
    past_cache_ = true;
    offset += piece.size();
    bytes = bytes.subspan(piece.size());
  }
  return {};
}

// Returns the bytes themselves if they are aligned for O_DIRECT, else their beginning, copied into an aligned buffer.
std::span<const std::byte> PackWriter::aligned(std::span<const std::byte> bytes) {
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % kPackBlock == 0) return bytes;
  if (!bounce_) bounce_ = make_block_buffer(kBounceBytes);
  std::size_t size = std::min(bytes.size(), kBounceBytes);
  std::memcpy(bounce_.get(), bytes.data(), size);
  return {bounce_.get(), size};
}

std::uint64_t PackWriter::reserve(std::uint64_t length, std::uint64_t like) {
  std::uint64_t at = end_;
  if (length >= kAlignedBlobMin && at % kPackBlock != like % kPackBlock) at = round_up(at) + like % kPackBlock;
  end_ = at + length;
  return at;
}

void PackWriter::give_back(std::uint64_t offset) {
  end_ = offset;
  cut_ = true;
}

void PackWriter::keep_in_memory() {
  in_memory_ = true;
  direct_.reset();
  set_boot(boot_id());
}

void PackWriter::list(const PackEntry& entry) {
  lines_.add(entry);
}

Status PackWriter::set_size(std::uint64_t size) {
  if (::ftruncate(fd_.get(), static_cast<off_t>(size)) != 0)
    return Error{Errc::io, fmt::format("{}: cannot be made {} bytes long", path_, size)};
  return {};
}

// Frees whole blocks only: zeroing a part of a block is a write, and breaks the sharing of a cloned block.
Status PackWriter::prune() {
  lines_.sort();
  WEFT_CHECK(set_size(listed_end()));
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    const std::uint64_t begin = round_up(end);
    const std::uint64_t next = lines_.blob(i).offset / kPackBlock * kPackBlock;
    if (begin < next) WEFT_CHECK(punch_hole(fd_.get(), begin, next - begin, path_));
    end = end_of(lines_.blob(i));
  }
  return {};
}

// Call after lines_.sort().
std::uint64_t PackWriter::listed_end() const {
  return end_of(lines_.blob(lines_.size() - 1));
}

Status PackWriter::begin_sync() {
  direct_.reset();
  lines_.sort();
  toc_.pack = id_;
  if (cut_) WEFT_CHECK(set_size(listed_end()));
  WEFT_TRY(const struct stat st, stat_fd(fd_.get(), path_));
  toc_.size = static_cast<std::uint64_t>(st.st_size);
  if (!in_memory_) start_writeback(fd_.get(), 0, 0);
  if (copy_.valid()) start_writeback(copy_.get(), 0, 0);
  WEFT_TRY(toc_fd_, begin_toc(path_ + ".toc", toc_, lines_));
  lines_ = {};
  return {};
}

Status PackWriter::sync() {
  if (!toc_fd_.valid()) WEFT_CHECK(begin_sync());
  if (!in_memory_) WEFT_CHECK(sync_file(fd_.get(), path_));
  if (copy_.valid()) WEFT_CHECK(sync_file(copy_.get(), path_ + ".copy"));
  // Drops the few cached pages of a file written by O_DIRECT. A later mapping would otherwise get small folios around
  // them, at a tenth of the speed.
  if (past_cache_) drop_pages(fd_.get());
  WEFT_CHECK(sync_file(toc_fd_.get(), path_ + ".toc"));
  toc_fd_.reset();
  return {};
}

// Changes the owner, so that no new writer can open the file. An earlier writer has broken the lease, even if its
// open() still waits; holds() tells.
Status PackWriter::take_over() const {
  WEFT_TRY(const struct stat before, stat_fd(fd_.get(), path_));
  Status given = give_to_owner(fd_.get(), directory_);
  if (given.ok() && taken_->holds()) return {};
  if (own_user() == 0) static_cast<void>(change_owner(fd_.get(), before.st_uid, before.st_gid));
  static_cast<void>(set_mode(fd_.get(), before.st_mode & 07777U, path_));
  return given.ok() ? Error{Errc::busy, "a file that is to be published: somebody has opened it for writing meanwhile"}
                    : std::move(given);
}

// The .toc goes first: a .pack without .toc would be damage, a .toc without .pack is only litter. The .copy goes last
// and is removed first (remove_pack()): a .copy without .pack shows that the pack is lost.
Status PackWriter::publish() {
  if (taken_) WEFT_CHECK(take_over());
  WEFT_CHECK(rename_new(path_ + ".toc", toc_in(directory_, id_)));
  WEFT_CHECK(rename_new(path_ + ".pack", pack_in(directory_, id_)));
  return copy_.valid() ? rename_new(path_ + ".copy", copy_in(directory_, id_)) : Status{};
}

Status PackWriter::unlink() {
  return remove_file(path_ + ".pack");
}

}  // namespace weft
