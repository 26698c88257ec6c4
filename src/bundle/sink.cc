#include "bundle/sink.h"

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "bundle/members.h"
#include "bundle/tar_writer.h"
#include "os/entries.h"
#include "os/file_ops.h"
#include "os/safe_path.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr std::uint64_t kWritebackEvery = 32U << 20U;

// The place of a bundle, and the name beside it under which it is written.
struct Place {
  SafePath directory;
  std::string name;

  SafePath done() const { return directory / name; }
  SafePath partial() const { return directory / fmt::format(".{}.partial", name); }
};

Result<Place> place_of(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  const auto slash = path.rfind('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  if (name.empty() || name == "." || name == "..")
    return Error{Errc::invalid, fmt::format("{}: expected the name of a new bundle", path)};
  const std::string above = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  WEFT_TRY(Beneath directory, Beneath::open(above));
  Place place{SafePath(std::move(directory)), name};
  const auto there = stat_file(place.done());
  if (there.ok()) return Error{Errc::exists, fmt::format("{}: expected a new name, got one that exists", path)};
  if (there.error().code != Errc::not_found) return there.error();
  return place;
}

// Opens the first file that is written, and locks it: so only one process writes this bundle.
Result<Fd> open_locked(const SafePath& file) {
  WEFT_TRY(Fd fd, open_file(file, O_RDWR | O_CREAT));
  const bool locked = lock_fd(fd.get(), LockKind::exclusive, LockWait::no, file).ok();
  WEFT_TRY(const struct stat opened, stat_fd(fd.get(), file));
  const auto named = stat_file(file);  // another process may have renamed the file before the lock
  if (locked && named.ok() && inode_of(*named) == inode_of(opened)) return fd;
  return Error{Errc::busy, fmt::format("{}: another process writes this bundle", file)};
}

class TarFile final : public BundleSink {
 public:
  TarFile(int fd, std::string where, std::uint64_t created_ns) : fd_(fd), where_(std::move(where)), tar_(created_ns) {}

  Status begin(std::string_view name, std::uint64_t size) override { return append(tar_.begin(name, size)); }
  Status write(std::span<const std::byte> bytes) override {
    tar_.count(bytes.size());
    return append(bytes);
  }
  Status finish() override { return append(tar_.end()); }

 private:
  Status append(std::span<const std::byte> bytes) { return append_exact(fd_, bytes, where_); }

  const int fd_;
  const std::string where_;
  TarWriter tar_;
};

class PlacedFile final : public BundleSink {
 public:
  PlacedFile(Place place, Fd fd, std::uint64_t created_ns)
      : place_(std::move(place)), fd_(std::move(fd)), tar_(fd_.get(), place_.partial().str(), created_ns) {}
  ~PlacedFile() override {
    if (!placed_) static_cast<void>(remove_file(place_.partial()));
  }

  Status begin(std::string_view name, std::uint64_t size) override { return tar_.begin(name, size); }
  Status write(std::span<const std::byte> bytes) override {
    WEFT_CHECK(tar_.write(bytes));
    written_ += bytes.size();
    if (written_ < started_ + kWritebackEvery) return {};
    start_writeback(fd_.get(), started_, written_ - started_);
    started_ = written_;
    return {};
  }
  Status finish() override {
    WEFT_CHECK(tar_.finish());
    WEFT_CHECK(sync_file(fd_.get(), place_.partial()));
    WEFT_CHECK(rename_new(place_.partial(), place_.done()));
    placed_ = true;
    return sync_directory(place_.directory);
  }

 private:
  const Place place_;
  const Fd fd_;
  TarFile tar_;
  std::uint64_t written_ = 0, started_ = 0;
  bool placed_ = false;
};

class PlacedDirectory final : public BundleSink {
 public:
  PlacedDirectory(Place place, Fd lock)
      : place_(std::move(place)), root_(place_.partial().held()), fd_(std::move(lock)) {}
  ~PlacedDirectory() override {
    if (!placed_) static_cast<void>(remove_tree(place_.partial()));
  }

  // The first member is the list, whose file is open and locked until the end.
  Status begin(std::string_view name, std::uint64_t /*size*/) override {
    if (std::exchange(begun_, true)) {
      WEFT_CHECK(end_member());
      WEFT_TRY(fd_, open_file(root_ / name, O_WRONLY | O_CREAT | O_EXCL));
    }
    name_ = name;
    return {};
  }
  Status write(std::span<const std::byte> bytes) override { return append_exact(fd_.get(), bytes, root_ / name_); }
  Status finish() override {
    WEFT_CHECK(end_member());
    for (const std::string_view folder : {"manifests", "blobs"}) WEFT_CHECK(sync_directory(root_ / folder));
    WEFT_CHECK(sync_directory(root_));
    WEFT_CHECK(rename_new(place_.partial(), place_.done()));
    placed_ = true;
    return sync_directory(place_.directory);
  }

 private:
  Status end_member() {
    WEFT_CHECK(sync_file(fd_.get(), root_ / name_));
    if (name_ == kBundleListName) lock_ = std::move(fd_);
    return {};
  }

  const Place place_;
  const SafePath root_;
  Fd fd_;    // of the member that is being written
  Fd lock_;  // of the list
  std::string name_;
  bool begun_ = false;
  bool placed_ = false;
};

}  // namespace

Result<std::unique_ptr<BundleSink>> bundle_file(const std::string& path, std::uint64_t created_ns) {
  WEFT_TRY(Place place, place_of(path));
  WEFT_TRY(Fd fd, open_locked(place.partial()));
  WEFT_CHECK(resize_file(fd.get(), 0, place.partial()));
  return std::unique_ptr<BundleSink>(std::make_unique<PlacedFile>(std::move(place), std::move(fd), created_ns));
}

// Removes what a killed process has left. Of two processes that begin at once, one fails, because the other has removed
// its directory.
Result<std::unique_ptr<BundleSink>> bundle_directory(const std::string& path) {
  WEFT_TRY(Place place, place_of(path));
  const SafePath partial = place.partial();
  const SafePath list = partial / kBundleListName;
  if (stat_file(partial).ok()) {
    if (stat_file(list).ok()) WEFT_CHECK(open_locked(list));
    WEFT_CHECK(remove_tree(partial));
  }
  WEFT_CHECK(make_directory(partial));
  WEFT_TRY(Fd fd, open_locked(list));
  for (const std::string_view folder : {"manifests", "blobs"}) WEFT_CHECK(make_directory(partial / folder));
  return std::unique_ptr<BundleSink>(std::make_unique<PlacedDirectory>(std::move(place), std::move(fd)));
}

std::unique_ptr<BundleSink> bundle_stream(int fd, std::string where, std::uint64_t created_ns) {
  return std::make_unique<TarFile>(fd, std::move(where), created_ns);
}

}  // namespace weft
