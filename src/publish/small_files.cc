#include "publish/small_files.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <thread>

#include "os/memory_file.h"
#include "publish/gather.h"
#include "publish/gather_rules.h"
#include "weft/model/lfs_pointer.h"

namespace weft {
namespace {

constexpr unsigned kReaders = 8;                   // fills the queue of a cold disk; cached files need only CPUs
constexpr std::size_t kBufferBytes = 256U << 10U;  // stays in a CPU's cache between reading and writing

Error cut_short(const std::string& where, std::uint64_t bytes, std::uint64_t got) {
  return Error{Errc::changed,
               fmt::format("{}: changed while it was read: expected {} bytes, got {}", where, bytes, got)};
}

// Collects bytes and writes them in large parts.
class BundleWriter {
 public:
  BundleWriter(int to, std::uint64_t at) : to_(to), at_(at), buffer_(kBufferBytes) {}

  // Appends the bytes of an open file, or these, which fit into the buffer.
  Status take(int from, std::uint64_t bytes, const std::string& where) {
    for (std::uint64_t done = 0; done < bytes;) {
      if (used_ == buffer_.size()) WEFT_CHECK(flush());
      const auto room =
          std::span(buffer_).subspan(used_, std::min<std::uint64_t>(buffer_.size() - used_, bytes - done));
      WEFT_TRY(const std::size_t got, read_some(from, done, room, where));
      if (got != room.size()) return cut_short(where, bytes, done + got);
      used_ += got;
      done += got;
    }
    return {};
  }
  Status take(std::span<const std::byte> bytes) {
    if (bytes.size() > buffer_.size() - used_) WEFT_CHECK(flush());
    std::ranges::copy(bytes, buffer_.begin() + static_cast<std::ptrdiff_t>(used_));
    used_ += bytes.size();
    return {};
  }
  Status flush() {
    WEFT_CHECK(write_exact(to_, at_, std::span(buffer_).first(used_), "a bundle in memory"));
    at_ += used_;
    used_ = 0;
    return {};
  }

 private:
  const int to_;
  std::uint64_t at_;
  std::vector<std::byte> buffer_;
  std::size_t used_ = 0;
};

// Opens the files of one directory after another.
class DirectoryFiles {
 public:
  DirectoryFiles(const FileTable& table, const SmallFilePlaces& places) : table_(table), places_(places) {}

  struct Opened {
    Fd fd;
    std::string where;
  };
  std::string_view name(std::uint64_t file) const { return table_.name(file); }
  Result<Opened> open(std::uint64_t file) {
    if (file >= end_) WEFT_CHECK(enter(table_.directory_of(file)));
    Opened opened;
    const std::string name(table_.name(file));
    opened.where = number_ == 0 ? places_.root_file(file, name) : below(path_, name);
    if (number_ == 0) {
      WEFT_TRY(opened.fd, open_to_read(opened.where));
      return opened;
    }
    WEFT_TRY(opened.fd, open_file_at(directory_.get(), name, O_RDONLY | O_NONBLOCK | O_NOCTTY, opened.where));
    return opened;
  }

 private:
  Status enter(std::uint64_t number) {
    const FileTable::Directory dir = table_.directory(number);
    number_ = number;
    end_ = dir.first_file + dir.files;
    if (number == 0) return {};
    path_ = places_.directory(table_, number);
    WEFT_TRY(directory_, open_file(path_, O_RDONLY | O_DIRECTORY));
    return {};
  }

  const FileTable& table_;
  const SmallFilePlaces& places_;
  std::uint64_t number_ = 0;
  std::uint64_t end_ = 0;  // number after the directory's last file
  std::string path_;
  Fd directory_;
};

// Copies a file that may be a Git LFS pointer.
Status copy_tiny(const DirectoryFiles::Opened& opened, std::string_view name, std::uint64_t bytes, BundleWriter& to) {
  std::array<std::byte, kLfsPointerMax> buffer{};
  const auto wanted = std::span(buffer).first(bytes);
  WEFT_TRY(const std::size_t got, read_some(opened.fd.get(), 0, wanted, opened.where));
  if (got != bytes) return cut_short(opened.where, bytes, got);
  if (Status whole = refuse_lfs_pointer(name, bytes, wanted); !whole.ok())
    return Error{whole.error().code, fmt::format("{}: {}", opened.where, whole.error().message)};
  return to.take(wanted);
}

Status copy_file(DirectoryFiles& files, std::uint64_t file, std::uint64_t bytes, BundleWriter& to) {
  WEFT_TRY(const DirectoryFiles::Opened opened, files.open(file));
  WEFT_TRY(const struct stat before, stat_fd(opened.fd.get(), opened.where));
  if (!S_ISREG(before.st_mode) || static_cast<std::uint64_t>(before.st_size) != bytes)
    return Error{Errc::changed, fmt::format("{}: changed since it was found: expected a file of {} bytes, got {} of {}",
                                            opened.where, bytes, kind_of(before.st_mode), before.st_size)};
  if (bytes <= kLfsPointerMax)
    WEFT_CHECK(copy_tiny(opened, files.name(file), bytes, to));
  else
    WEFT_CHECK(to.take(opened.fd.get(), bytes, opened.where));
  WEFT_TRY(const struct stat after, stat_fd(opened.fd.get(), opened.where));
  return check_unchanged(opened.where, before, after);
}

}  // namespace

std::string SmallFilePlaces::directory(const FileTable& table, std::uint64_t number) const {
  const std::string path = table.path_of(number);
  return below(paths[source_of(path)], path);
}

std::uint32_t SmallFilePlaces::source_of(std::string_view path) const {
  return std::ranges::lower_bound(top, path.substr(0, path.find('/')), {}, &TopDirectory::name)->path;
}

std::string SmallFilePlaces::root_file(std::uint64_t file, const std::string& name) const {
  const RootFile& from = root_files[file];
  return from.is_path ? paths[from.path] : below(paths[from.path], name);
}

BundleReader::BundleReader(std::vector<std::byte> table, SmallFilePlaces places)
    : bytes_(std::move(table)),
      table_(FileTable::check(bytes_).value()),
      places_(std::move(places)),
      bundles_(plan_bundles(table_)) {}

BundleReader::~BundleReader() = default;

Result<Fd> BundleReader::open_table() const {
  return memory_file("the table of small files", bytes_);
}

Result<Fd> BundleReader::open(std::size_t number) {
  auto bundle = ahead_.valid() && ahead_number_ == number ? ahead_.get() : read(number);
  if (bundle.ok() && number + 1 < bundles_.size()) {
    ahead_number_ = number + 1;
    ahead_ = std::async(std::launch::async, [this, next = number + 1] { return read(next); });
  }
  return bundle;
}

// Each thread reads a run of files of about equal bytes.
Result<Fd> BundleReader::read(std::size_t number) {
  const Bundle& bundle = bundles_[number];
  WEFT_TRY(Fd fd, memory_file(fmt::format("bundle {}", number)));
  const std::uint64_t end = bundle.first_file + bundle.files;
  const std::uint64_t start = table_.range(bundle.first_file).offset;
  std::vector<Status> outcomes(kReaders);
  std::vector<std::thread> readers;
  std::uint64_t first = bundle.first_file;
  for (unsigned i = 0; i < kReaders && first < end; ++i) {
    std::uint64_t last = first;
    while (last < end && (table_.range(last).offset - start) * kReaders < (i + 1) * bundle.bytes) ++last;
    if (i + 1 == kReaders) last = end;
    readers.emplace_back([this, &bundle, first, last, to = fd.get(), &outcome = outcomes[i]] {
      outcome = read_files(bundle, first, last, to);
    });
    first = last;
  }
  for (std::thread& reader : readers) reader.join();
  for (const Status& outcome : outcomes) WEFT_CHECK(outcome);
  return fd;
}

Status BundleReader::read_files(const Bundle& bundle, std::uint64_t first, std::uint64_t end, int to) {
  if (first == end) return {};
  const std::uint64_t start = table_.range(bundle.first_file).offset;
  BundleWriter writer(to, table_.range(first).offset - start);
  DirectoryFiles files(table_, places_);
  for (std::uint64_t file = first; file < end; ++file)
    WEFT_CHECK(copy_file(files, file, table_.range(file).length, writer));
  return writer.flush();
}

}  // namespace weft
