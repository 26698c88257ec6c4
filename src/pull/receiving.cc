#include "pull/receiving.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "base/text.h"

namespace weft {
namespace {

// Each has two descriptors open while it arrives.
constexpr std::size_t kArrivingFilesMax = 256;
// How long await() waits, and how often it looks whether it is cancelled.
constexpr auto kAwaitTime = std::chrono::seconds(1);
constexpr auto kAwaitStep = std::chrono::milliseconds(100);

Error interrupted() {
  return {Errc::cancelled, "interrupted"};
}

// Moves the largest files that an import can verify to the end, and returns the number of the first. Both parts are by
// path.
std::size_t move_arriving(std::vector<HubFile>& files, const std::function<bool(const HubFile&)>& into_import) {
  const auto candidates = std::stable_partition(files.begin(), files.end(), [&](const HubFile& file) {
    return !file.sha256 || file.size < kArrivingFileMin || !into_import(file);
  });
  std::ranges::sort(candidates, files.end(), std::ranges::greater(), &HubFile::size);
  const auto arriving = std::min<std::ptrdiff_t>(files.end() - candidates, kArrivingFilesMax);
  std::rotate(candidates, candidates + arriving, files.end());
  const auto cut = files.end() - arriving;
  std::ranges::sort(files.begin(), cut, {}, &HubFile::path);
  std::ranges::sort(cut, files.end(), {}, &HubFile::path);
  return static_cast<std::size_t>(cut - files.begin());
}

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

Receiving::Receiving(PullSource& source, ReceiveOptions options, std::span<const HubFile> files, const PullArea& area,
                     Progress& progress, std::atomic<bool>& failed)
    : source_(source),
      options_(std::move(options)),
      area_(area),
      progress_(progress),
      failed_(failed),
      files_(files.begin(), files.end()),
      first_arriving_(options_.into_import ? move_arriving(files_, options_.into_import) : files_.size()),
      states_(files_.size()),
      unverified_(first_arriving_),
      undone_(files_.size()),
      running_(options_.connections) {}

Receiving::~Receiving() {
  static_cast<void>(end());
}

Result<std::unique_ptr<Receiving>> Receiving::begin(PullSource& source, ReceiveOptions options,
                                                    std::span<const HubFile> files, const PullArea& area,
                                                    Progress& progress, std::atomic<bool>& failed) {
  std::set<std::string_view> wanted;
  for (const HubFile& file : files) wanted.insert(file.path);
  WEFT_CHECK(keep_only(area.files(), "", wanted));
  failed = false;
  std::unique_ptr<Receiving> one(new Receiving(source, std::move(options), files, area, progress, failed));
  WEFT_CHECK(one->make_places());
  std::uint64_t total = 0;
  for (std::size_t number = 0; number < one->first_arriving_; ++number) total += one->files_[number].size;
  progress.total(total);
  one->connections_.emplace(one->options_.connections);
  for (unsigned i = 0; i < one->options_.connections; ++i) one->connections_->submit([&it = *one] { it.work(); });
  return one;
}

// An import finds the files before their bytes are there.
Status Receiving::make_places() {
  const MutexLock lock(mutex_);
  for (std::size_t number = first_arriving_; number < files_.size(); ++number) {
    const auto made = ReceivedFile::open(area_.files(), area_.notes(), files_[number], HashedBy::import);
    if (!made.ok()) {
      remove_places();
      return named(files_[number], made.error());
    }
    states_[number].is_place = (*made)->received() == 0;
  }
  return {};
}

// No thread receives any more.
void Receiving::remove_places() {
  for (std::size_t number = first_arriving_; number < files_.size(); ++number) {
    const State& state = states_[number];
    const bool is_place = state.file ? state.file->received() == 0 : state.is_place && state.stage != Stage::done;
    if (is_place) static_cast<void>(remove_file(area_.files() / files_[number].path));
  }
}

Status Receiving::wait_verified() {
  UniqueLock lock(mutex_);
  while (unverified_ > 0 && !error_) changed_.wait(lock);
  return error_ ? Status{*error_} : Status{};
}

Status Receiving::wait_received() {
  UniqueLock lock(mutex_);
  while (undone_ > 0 && !error_) changed_.wait(lock);
  return error_ ? Status{*error_} : Status{};
}

// Returns files_.size() if the file does not arrive.
std::size_t Receiving::number_of(std::string_view path) const {
  const auto from = files_.begin() + static_cast<std::ptrdiff_t>(first_arriving_);
  const auto found = std::ranges::lower_bound(from, files_.end(), path, {}, &HubFile::path);
  return found == files_.end() || found->path != path ? files_.size()
                                                      : static_cast<std::size_t>(found - files_.begin());
}

std::optional<Digest> Receiving::expected(std::string_view path) const {
  const std::size_t number = number_of(path);
  return number == files_.size() ? std::nullopt : files_[number].sha256;
}

std::uint64_t Receiving::arrived(const Awaited& what) const {
  const State& state = states_[what.number];
  if (state.stage == Stage::done) return files_[what.number].size;
  return state.file ? state.file->arrived(what.range.offset) : what.range.offset;
}

Result<std::uint64_t> Receiving::await(std::string_view path, Range range) {
  const Awaited what{number_of(path), range};
  if (what.number == files_.size()) return Error{Errc::internal, fmt::format("{} does not arrive", printable(path))};
  const auto until = std::chrono::steady_clock::now() + kAwaitTime;
  UniqueLock lock(mutex_);
  awaited_ = what;
  for (;; arrived_.wait_for(lock, kAwaitStep)) {
    const std::uint64_t end = arrived(what);
    const bool is_there = end >= range.offset + range.length;
    if (!is_there && error_) return *error_;
    if (!is_there && (ended_ || progress_.cancelled())) return interrupted();
    if (is_there || std::chrono::steady_clock::now() >= until) return end;
  }
}

Status Receiving::end() {
  {
    const MutexLock lock(mutex_);
    if (undone_ > 0 && connections_) {
      ended_ = true;
      failed_ = true;
    }
    changed_.notify_all();
  }
  const bool is_first = connections_.has_value();
  connections_.reset();
  const MutexLock lock(mutex_);
  if (is_first && undone_ > 0) remove_places();
  return error_ ? Status{*error_} : Status{};
}

bool Receiving::is_doubtful(std::string_view path) const {
  const MutexLock lock(mutex_);
  for (std::size_t number = 0; number < files_.size(); ++number)
    if (files_[number].path == path) return states_[number].doubtful;
  return false;
}

// One connection.
void Receiving::work() {
  std::optional<Error> error;
  for (bool goes_on = true; goes_on && !error;) {
    auto more = step();
    if (more.ok())
      goes_on = *more;
    else
      error = std::move(more).error();
  }
  const MutexLock lock(mutex_);
  --running_;
  if (!error && running_ == 0 && undone_ > 0) error = Error{Errc::internal, "some files were not received"};
  if (error && !error_ && !ended_) error_ = std::move(error);
  if (error_) failed_ = true;
  changed_.notify_all();
  arrived_.notify_all();
}

// Returns false if there is nothing left to take.
Result<bool> Receiving::step() {
  if (failed_ || progress_.cancelled()) return interrupted();
  WEFT_TRY(const Work work, take());
  if (!work.file) return false;
  WEFT_CHECK(work.pieces.count > 0 ? receive(work) : begin_file(work));
  WEFT_CHECK(settle(work));
  return true;
}

// Pieces of the files that were opened first come first, so that few files are open. Waits for a file that another
// connection has just opened: it may have pieces.
Result<Receiving::Work> Receiving::take() {
  UniqueLock lock(mutex_);
  for (;; changed_.wait(lock)) {
    if (failed_) return Work{};
    WEFT_TRY(Work awaited, take_awaited());
    if (awaited.file) return awaited;
    for (const std::size_t number : open_)
      if (const auto pieces = states_[number].file->take_pieces(options_.connections))
        return Work{number, states_[number].file, *pieces};
    while (next_ < files_.size() && states_[next_].stage != Stage::untouched) ++next_;
    if (next_ < files_.size()) return open(next_);
    if (beginning_ == 0) return Work{};
  }
}

Result<Receiving::Work> Receiving::take_awaited() {
  if (!awaited_) return Work{};
  const State& state = states_[awaited_->number];
  if (state.stage == Stage::untouched) return open(awaited_->number);
  if (state.stage != Stage::open) return Work{};
  const auto piece = state.file->take_piece_at(arrived(*awaited_));
  return piece ? Work{awaited_->number, state.file, *piece} : Work{};
}

Result<Receiving::Work> Receiving::open(std::size_t number) {
  const HubFile& wanted = files_[number];
  const HashedBy hashed_by = number < first_arriving_ ? HashedBy::receiver : HashedBy::import;
  auto file = ReceivedFile::open(area_.files(), area_.notes(), wanted, hashed_by);
  if (!file.ok()) return named(wanted, std::move(file).error());
  if (number < first_arriving_)
    progress_.phase(fmt::format("file {} of {}: {}", number + 1, files_.size(), wanted.path));
  ++beginning_;
  states_[number].stage = Stage::beginning;
  states_[number].file = std::move(file).value();
  return Work{number, states_[number].file};
}

// Finds bytes that are on this node, and lets other connections receive the rest.
Status Receiving::begin_file(const Work& work) {
  const std::uint64_t resumed = work.file->received();
  resumed_ += resumed;
  advance(work.number, resumed);
  const bool may_be_known = options_.known && resumed == 0 && work.number < first_arriving_;
  const Status copied = may_be_known ? copy_known(work) : Status{};
  const MutexLock lock(mutex_);
  State& state = states_[work.number];
  state.doubtful = work.file->is_doubtful();
  state.stage = Stage::open;
  if (copied.ok()) open_.push_back(work.number);
  --beginning_;
  changed_.notify_all();
  return copied;
}

// If some known bytes cannot be read, the hub has them.
Status Receiving::copy_known(const Work& work) {
  Status written;
  Pieces left = work.file->all();
  static_cast<void>(options_.known(files_[work.number], [&](std::span<const std::byte> bytes) -> Status {
    work.file->doubt();
    known_ += bytes.size();
    advance(work.number, bytes.size());
    written = progress_.cancelled() ? Status(interrupted()) : work.file->write(left, bytes);
    return written;
  }));
  return written;
}

Status Receiving::receive(const Work& work) {
  Pieces left = work.pieces;
  const ByteSink sink = [&](std::span<const std::byte> bytes) -> Status {
    WEFT_CHECK(work.file->write(left, bytes));
    advance(work.number, bytes.size());
    bytes_ += bytes.size();
    tell_waiting(work.number);
    return {};
  };
  Status read = source_.read(files_[work.number], work.file->missing(left), sink);
  const Status noted = work.file->note(left);
  return read.ok() ? noted : read;
}

Status Receiving::settle(const Work& work) {
  const auto verdict = work.file->hash_ready();
  if (!verdict.ok()) return named(files_[work.number], verdict.error());
  if (*verdict != ReceivedFile::Verdict::verified && *verdict != ReceivedFile::Verdict::whole) return {};
  {
    const MutexLock lock(mutex_);
    states_[work.number].stage = Stage::done;
    states_[work.number].file.reset();
    std::erase(open_, work.number);
    --undone_;
    if (work.number < first_arriving_) --unverified_;
    changed_.notify_all();
  }
  tell_waiting(work.number);
  return {};
}

// The import reports bytes that arrive into it.
void Receiving::advance(std::size_t number, std::uint64_t bytes) {
  if (number < first_arriving_) progress_.advance(bytes);
}

void Receiving::tell_waiting(std::size_t number) {
  const MutexLock lock(mutex_);
  if (!awaited_ || awaited_->number != number) return;
  if (arrived(*awaited_) >= awaited_->range.offset + awaited_->range.length) arrived_.notify_all();
}

Error Receiving::named(const HubFile& file, Error error) const {
  error.message = fmt::format("{}: \"{}\": {}", source_.text(), printable(file.path), error.message);
  return error;
}

Result<std::vector<std::string>> drop_damaged(std::span<const HubFile> files, const PullArea& area) {
  std::vector<std::string> damaged;
  for (const HubFile& wanted : files) {
    WEFT_TRY(const auto file, ReceivedFile::open(area.files(), area.notes(), wanted));
    WEFT_TRY(const auto verdict, file->hash_ready());
    if (verdict == ReceivedFile::Verdict::restarted) damaged.push_back(wanted.path);
  }
  return damaged;
}

}  // namespace weft
