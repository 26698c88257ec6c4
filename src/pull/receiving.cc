#include "pull/receiving.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "base/text.h"
#include "base/thread_pool.h"

namespace weft {
namespace {

class Receiving {
 public:
  Receiving(PullSource& source, const ReceiveOptions& options, std::span<const HubFile> files, const PullArea& area,
            Progress& progress, std::atomic<bool>& failed)
      : source_(source), options_(options), files_(files), area_(area), progress_(progress), failed_(failed) {}

  Result<ReceivedBytes> run() {
    std::uint64_t total = 0;
    for (const HubFile& file : files_) total += file.size;
    progress_.total(total);
    ThreadPool pool(options_.connections);
    pool.parallel_for(options_.connections, [this](std::size_t /*connection*/) { work(); });
    const MutexLock lock(mutex_);
    if (error_) return *error_;
    if (!open_.empty()) return named(open_.front()->wanted(), Error{Errc::internal, "it was not verified"});
    return ReceivedBytes{bytes_, resumed_, known_};
  }

 private:
  struct Work {
    std::shared_ptr<ReceivedFile> file;  // null: there is nothing left to take
    std::optional<std::size_t> piece;    // none: this connection opened the file just now
  };

  // One connection.
  void work() {
    for (bool goes_on = true; goes_on;) {
      auto more = step();
      goes_on = more.ok() && *more;
      if (more.ok()) continue;
      const MutexLock lock(mutex_);
      if (!error_) error_ = std::move(more).error();
      failed_ = true;
      begun_.notify_all();
    }
  }

  // Returns false if there is nothing left to take.
  Result<bool> step() {
    if (failed_ || progress_.cancelled()) return Error{Errc::cancelled, "interrupted"};
    WEFT_TRY(const Work work, take());
    if (!work.file) return false;
    WEFT_CHECK(work.piece ? receive(*work.file, *work.piece) : begin(work.file));
    WEFT_CHECK(settle(work.file));
    return true;
  }

  // Pieces of the files that were opened first come first, so that few files are open. Waits for a file that another
  // connection has just opened: it may have pieces.
  Result<Work> take() {
    UniqueLock lock(mutex_);
    for (;; begun_.wait(lock)) {
      for (const auto& file : open_)
        if (const auto piece = file->take_piece()) return Work{file, piece};
      if (next_ < files_.size() && !failed_) return open_next();
      if (beginning_ == 0 || failed_) return Work{};
    }
  }

  Result<Work> open_next() WEFT_REQUIRES(mutex_) {
    const HubFile& wanted = files_[next_++];
    auto file = ReceivedFile::open(area_.files(), area_.notes(), wanted);
    if (!file.ok()) return named(wanted, std::move(file).error());
    progress_.phase(fmt::format("file {} of {}: {}", next_, files_.size(), wanted.path));
    ++beginning_;
    return Work{std::move(file).value(), std::nullopt};
  }

  // Finds bytes that are on this node, and lets other connections receive the rest.
  Status begin(const std::shared_ptr<ReceivedFile>& file) {
    const std::uint64_t resumed = file->received();
    resumed_ += resumed;
    progress_.advance(resumed);
    const Status copied = resumed == 0 && options_.known ? copy_known(*file) : Status{};
    const MutexLock lock(mutex_);
    if (copied.ok()) open_.push_back(file);
    --beginning_;
    begun_.notify_all();
    return copied;
  }

  // If some known bytes cannot be read, the hub has them.
  Status copy_known(ReceivedFile& file) {
    Status written;
    std::size_t piece = 0;
    static_cast<void>(options_.known(file.wanted(), [&](std::span<const std::byte> bytes) -> Status {
      file.doubt();
      written = progress_.cancelled() ? Status(Error{Errc::cancelled, "interrupted"}) : write(file, piece, bytes);
      return written;
    }));
    return written;
  }

  // Writes known bytes, which follow those before, from the first byte of the file on.
  Status write(ReceivedFile& file, std::size_t& piece, std::span<const std::byte> bytes) {
    known_ += bytes.size();
    progress_.advance(bytes.size());
    while (!bytes.empty()) {
      const auto part = bytes.first(std::min<std::uint64_t>(bytes.size(), file.missing(piece).length));
      WEFT_CHECK(file.write(piece, part));
      bytes = bytes.subspan(part.size());
      if (file.missing(piece).length == 0) WEFT_CHECK(file.note(piece++));
    }
    return {};
  }

  Status receive(ReceivedFile& file, std::size_t piece) {
    const ByteSink sink = [&](std::span<const std::byte> bytes) -> Status {
      WEFT_CHECK(file.write(piece, bytes));
      progress_.advance(bytes.size());
      bytes_ += bytes.size();
      return {};
    };
    Status read = source_.read(file.wanted(), file.missing(piece), sink);
    const Status noted = file.note(piece);
    return read.ok() ? noted : read;
  }

  Status settle(const std::shared_ptr<ReceivedFile>& file) {
    auto verdict = file->hash_ready();
    if (!verdict.ok()) return named(file->wanted(), std::move(verdict).error());
    if (*verdict != ReceivedFile::Verdict::verified) return {};
    const MutexLock lock(mutex_);
    std::erase(open_, file);
    return {};
  }

  Error named(const HubFile& file, Error error) const {
    error.message = fmt::format("{}: \"{}\": {}", source_.text(), printable(file.path), error.message);
    return error;
  }

  PullSource& source_;
  const ReceiveOptions& options_;
  const std::span<const HubFile> files_;
  const PullArea& area_;
  Progress& progress_;
  std::atomic<bool>& failed_;
  std::atomic<std::uint64_t> bytes_{0}, resumed_{0}, known_{0};
  Mutex mutex_;
  std::vector<std::shared_ptr<ReceivedFile>> open_ WEFT_GUARDED_BY(mutex_);  // not verified yet
  Condition begun_;                                                          // of beginning_, and of an error
  std::size_t beginning_ WEFT_GUARDED_BY(mutex_) = 0;                        // files in begin()
  std::size_t next_ WEFT_GUARDED_BY(mutex_) = 0;                             // the first file that was not opened
  std::optional<Error> error_ WEFT_GUARDED_BY(mutex_);                       // the first one
};

// Removes all entries below a directory that are neither a wanted file nor a directory of one. `below` is "" or ends
// with '/'.
Status keep_only(const SafePath& directory, const std::string& below, const std::set<std::string_view>& wanted) {
  WEFT_TRY(const auto names, list_directory(directory));
  for (const std::string& name : names) {
    const std::string path = below + name;
    if (wanted.contains(path)) continue;
    const std::string inside = path + "/";
    const auto first = wanted.lower_bound(inside);
    WEFT_TRY(const struct stat st, stat_file(directory / name));
    if (first == wanted.end() || !first->starts_with(inside) || !S_ISDIR(st.st_mode)) {
      WEFT_CHECK(remove_tree(directory / name));
    } else {
      WEFT_CHECK(keep_only(directory / name, inside, wanted));
    }
  }
  return {};
}

}  // namespace

Result<ReceivedBytes> receive_files(PullSource& source, const ReceiveOptions& options, std::span<const HubFile> files,
                                    const PullArea& area, Progress& progress, std::atomic<bool>& failed) {
  std::set<std::string_view> wanted;
  for (const HubFile& file : files) wanted.insert(file.path);
  WEFT_CHECK(keep_only(area.files(), "", wanted));
  return Receiving(source, options, files, area, progress, failed).run();
}

}  // namespace weft
