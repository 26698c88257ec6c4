#include "publish/draft.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/limits.h"
#include "base/sha256.h"
#include "base/text.h"
#include "dataset/record_table.h"
#include "publish/cut.h"
#include "publish/dataset_draft.h"
#include "publish/fd_source.h"
#include "publish/shards.h"
#include "publish/showable.h"
#include "publish/source_group.h"
#include "weft/store/assembly.h"

namespace weft {
namespace {

// Finds the records of a container while its bytes are read for the store. One thread. Does nothing for a draft without
// a container.
class RecordScan {
 public:
  // `fd` is the open file of the draft; both outlive the scan.
  RecordScan(Draft& draft, int fd);

  SeenBytes seen();
  // Call it after all bytes were seen. Stores the record table in the draft, or in `file` the reason why there is none.
  Status finish(File& file);

 private:
  void feed(std::span<const std::byte> bytes);

  Draft& draft_;
  const int fd_;
  std::optional<RecordTableMaker> maker_;
  std::unique_ptr<RecordScanner> scanner_;
  Status fed_;
};

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

// The layout of a source, and the numbers of the sources that hold its parts.
struct Found {
  Layout layout;
  PartFiles files;
};

// A source that a format opened while it parsed another source. The file must not change until its content is read.
struct Glimpse {
  std::uint32_t source = 0;
  struct stat seen {};
};

// Removes the place from the start of a message.
std::string without_place(const SourceFile& source, std::string message) {
  const std::string place = source.where + ": ";
  return message.starts_with(place) ? message.substr(place.size()) : message;
}

Status read_index(Draft& draft, ByteSource& bytes) {
  auto index = parse_shard_index(draft.source.where, bytes);
  if (index.ok()) {
    draft.shard_index = *std::move(index);
    return {};
  }
  if (must_be_sound(draft.source.path) || index.error().code != Errc::invalid) return std::move(index).error();
  draft.index_remark = without_place(draft.source, index.error().message);
  return {};
}

// Returns a remark on the index of a draft; "": none.
Result<std::string> remark_on_index(const Draft& draft, const Manifest& version) {
  if (!draft.index_remark.empty()) return draft.index_remark;
  const SourceFile& source = draft.source;
  auto remark = check_shards(source.where, source.path, draft.shard_index, version);
  if (remark.ok() || must_be_sound(source.path) || remark.error().code != Errc::invalid) return remark;
  return without_place(source, remark.error().message);
}

class HeaderReading {
 public:
  HeaderReading(std::span<Draft> drafts, Formats formats) : drafts_(drafts), formats_(formats) {}

  // Parses the next source and fills in the rest of its draft.
  Status add_next() {
    const std::size_t number = found_.size();
    Draft& draft = drafts_[number];
    const std::string& where = draft.source.where;
    WEFT_TRY(Fd fd, open_source(draft.source, draft.seen));
    FdSource bytes(fd.get(), static_cast<std::uint64_t>(draft.seen.st_size), where, draft.source.await);
    SourceGroup group(drafts_, number, bytes);
    Found& found = found_.emplace_back();
    WEFT_TRY(found.layout, parse_file(where, group, formats_));
    found.files.push_back(static_cast<std::uint32_t>(number));
    for (const std::string& path : found.layout.others) {
      WEFT_TRY(const std::uint32_t other, group.number_of(path));
      found.files.push_back(other);
    }
    for (const auto& [source, seen] : group.opened()) glimpses_.push_back({source, seen});
    if (is_shard_index(draft.source.path)) WEFT_CHECK(read_index(draft, bytes));
    draft.bases = named_bases(draft.source.path, bytes);
    return {};
  }

  // Call it after the last add_next(). Cuts the files, because tensors of one file may lie in another.
  Result<std::vector<File>> files() {
    for (const Glimpse& one : glimpses_)
      WEFT_CHECK(check_source(drafts_[one.source].source, one.seen, drafts_[one.source].seen));
    WEFT_CHECK(join_all_shards());
    WEFT_TRY(auto cuts, cut());
    std::vector<File> files;
    files.reserve(drafts_.size());
    for (std::size_t i = 0; i < drafts_.size(); ++i) files.push_back(file_of(i, cuts));
    for (std::size_t i = 0; i < drafts_.size(); ++i) drafts_[i].ranges = std::move(cuts[i]);
    return files;
  }

 private:
  // The shards of a distributed checkpoint lie in one directory.
  Status join_all_shards() {
    std::map<std::string_view, std::vector<std::size_t>> by_directory;
    for (std::size_t i = 0; i < found_.size(); ++i) {
      const std::string_view path = drafts_[i].source.path;
      if (found_[i].layout.sharded) by_directory[path.substr(0, path.rfind('/') + 1)].push_back(i);
    }
    for (const auto& [directory, numbers] : by_directory) {
      std::vector<ShardedFile> files;
      for (const std::size_t number : numbers)
        files.push_back({drafts_[number].source.path.substr(directory.size()), &found_[number].layout});
      WEFT_CHECK(join_shards(files));
      for (std::size_t i = 1; i < numbers.size(); ++i)
        found_[numbers.front()].files.push_back(static_cast<std::uint32_t>(numbers[i]));
    }
    return {};
  }

  Result<std::vector<std::vector<Range>>> cut() const {
    std::vector<std::vector<Range>> runs(drafts_.size()), cuts(drafts_.size());
    for (const Found& found : found_) {
      for (const FoundTensor& tensor : found.layout.tensors) add_runs(tensor, found.files, runs);
      for (const TensorPart& part : found.layout.cuts)
        cuts[found.files[part.file]].push_back({part.offset, part.length});
    }
    for (std::size_t i = 0; i < runs.size(); ++i) {
      auto ranges =
          cut_file(static_cast<std::uint64_t>(drafts_[i].seen.st_size), std::move(runs[i]), std::move(cuts[i]));
      if (!ranges.ok())
        return Error{ranges.error().code, fmt::format("{}: {}", drafts_[i].source.where, ranges.error().message)};
      runs[i] = *std::move(ranges);
    }
    return runs;
  }

  File file_of(std::size_t number, std::span<const std::vector<Range>> cuts) {
    Found& found = found_[number];
    File file;
    file.path = drafts_[number].source.path;
    file.size = static_cast<std::uint64_t>(drafts_[number].seen.st_size);
    file.execute = execute_bits(drafts_[number].seen.st_mode);
    file.format = std::move(found.layout.format);
    file.metadata = std::move(found.layout.metadata);
    file.hidden = std::move(found.layout.hidden);
    file.hidden_more = found.layout.hidden_more;
    file.extents.reserve(cuts[number].size());
    for (const Range& range : cuts[number]) file.extents.push_back({range.offset, {range.length, {}}});
    file.tensors.reserve(found.layout.tensors.size());
    for (FoundTensor& tensor : found.layout.tensors)
      file.tensors.push_back(place_tensor(std::move(tensor), found.files, cuts));
    return file;
  }

  std::span<Draft> drafts_;
  Formats formats_;
  std::vector<Found> found_;  // by draft
  std::vector<Glimpse> glimpses_;
};

// Returns the sums that the import computes of a source; none of a table.
std::shared_ptr<PlainSums> sums_of(Draft& draft, const File& file) {
  if (file.role == FileRole::published) return std::make_shared<PlainSums>(PlainSums{{file.size}});
  if (file.role != FileRole::bundle) return nullptr;
  return std::make_shared<PlainSums>(PlainSums{std::move(draft.small_sizes)});
}

Status add_file(Import& import, Draft& draft, File& file, Progress& progress) {
  const std::string& where = draft.source.where;
  struct stat opened {};
  WEFT_TRY(Fd fd, open_source(draft.source, opened));
  const bool made_here = draft.source.role != FileRole::published;  // made in memory by this process
  if (made_here) draft.seen = opened;
  WEFT_CHECK(check_source(draft.source, draft.seen, opened));
  if (draft.ranges.empty()) {
    if (file.role == FileRole::published) file.sha256 = sha256({});
    return RecordScan(draft, fd.get()).finish(file);
  }
  progress.phase(fmt::format("reading {}", made_here ? where : draft.source.path));
  const Take take = draft.source.giver == opened.st_uid ? draft.source.take : Take::copy;
  const bool given = take != Take::copy;
  const bool leased = given && !draft.source.await && draft.source.size >= kAssembledFileMin;
  if (leased) draft.lease = ReadLease::take(fd.get());
  if (draft.lease && are_many_open(draft.lease->fd())) draft.lease.reset();
  const std::size_t count = std::exchange(file.extents, {}).size();  // there may be millions: not kept twice
  RecordScan scan(draft, fd.get());
  draft.sums = sums_of(draft, file);
  const ByteUses uses{scan.seen(), draft.sums, draft.source.await};
  WEFT_TRY(auto extents, import.add(fd.get(), where, draft.ranges, take, progress, uses));
  WEFT_CHECK(scan.finish(file));
  WEFT_TRY(struct stat after, stat_fd(fd.get(), where));
  WEFT_CHECK(check_source(draft.source, draft.seen, after, given));
  if (extents.size() != count)
    return Error{Errc::internal, fmt::format("{}: expected {} extents, got {}", where, count, extents.size())};
  file.extents = std::move(extents);
  std::vector<Range>().swap(draft.ranges);
  return {};
}

// Errc::corrupt: a file that arrived has another SHA-256 than it must have.
Status check_expected(const DraftFiles& files) {
  for (std::size_t i = 0; i < files.drafts.size(); ++i) {
    const SourceFile& source = files.drafts[i].source;
    const std::optional<Digest>& got = files.manifest.files[i].sha256;
    if (!source.expected || got == source.expected) continue;
    return Error{Errc::corrupt, fmt::format("{}: expected a file with the SHA-256 {}, got one with {}", source.where,
                                            to_hex(*source.expected), got ? to_hex(*got) : "none")};
  }
  return {};
}

// True if both files are cut at the same places. Another release may have cut the stored file elsewhere.
bool cut_alike(const File& stored, const File& drafted) {
  return std::ranges::equal(stored.extents, drafted.extents, [](const Extent& a, const Extent& b) {
    return a.offset == b.offset && a.id.length == b.id.length;
  });
}

}  // namespace

Result<std::string> read_source(const Draft& draft) {
  const std::string& where = draft.source.where;
  struct stat opened {};
  WEFT_TRY(Fd fd, open_source(draft.source, opened));
  WEFT_CHECK(check_source(draft.source, draft.seen, opened));
  std::string text(static_cast<std::size_t>(opened.st_size), '\0');
  WEFT_CHECK(ArrivedRun(draft.source.await, text.size()).wait({0, text.size()}));
  WEFT_CHECK(read_exact(fd.get(), 0, std::as_writable_bytes(std::span(text)), where));
  return text;
}

Result<Architecture> draft_architecture(const DraftFiles& files) {
  return architecture_of(files.manifest, [&](const File& file) {
    return read_source(files.drafts[static_cast<std::size_t>(&file - files.manifest.files.data())]);
  });
}

Result<Manifest> draft_manifest(const std::vector<std::string>& paths, const std::string& store_path,
                                Progress& progress) {
  WEFT_TRY(auto sources, gather_sources(paths, store_path));
  WEFT_TRY(DraftFiles files, draft_files(std::move(sources), progress));
  WEFT_CHECK(check_shard_indices(files, files.manifest));
  WEFT_TRY(files.manifest.architecture, draft_architecture(files));
  return std::move(files.manifest);
}

Error cancelled_import() {
  return Error{Errc::cancelled, "interrupted"};
}

DraftFiles drafts_of(std::vector<SourceFile> sources) {
  DraftFiles files;
  for (SourceFile& source : sources) {
    if (source.directory)
      files.manifest.directories.push_back(std::move(source.path));
    else if (!source.stored.empty())
      files.stored.push_back(std::move(source));
    else
      files.drafts.emplace_back().source = std::move(source);
  }
  return files;
}

Result<DraftFiles> draft_files(std::vector<SourceFile> sources, Progress& progress, Formats formats) {
  DraftFiles files = drafts_of(std::move(sources));
  progress.phase("reading headers");
  HeaderReading headers(files.drafts, formats);
  for (std::size_t i = 0; i < files.drafts.size(); ++i) {
    if (progress.cancelled()) return cancelled_import();
    WEFT_CHECK(headers.add_next());
  }
  WEFT_TRY(files.manifest.files, headers.files());
  for (File& file : files.manifest.files) hide_unshowable(file);
  return files;
}

Status check_shard_indices(DraftFiles& files, const Manifest& version) {
  for (std::size_t i = 0; i < files.drafts.size(); ++i) {
    WEFT_TRY(const std::string remark, remark_on_index(files.drafts[i], version));
    if (!remark.empty())
      files.manifest.files[i].metadata = {{std::string(kRemark), printable(remark, limits::kMetadataTextMax)}};
  }
  return {};
}

Result<std::uint64_t> add_content(Import& import, DraftFiles& files, MountedFiles& mounted, Progress& progress) {
  progress.total(logical_bytes(files.manifest));
  std::uint64_t known = 0;
  std::vector<File> tables;
  for (std::size_t i = 0; i < files.drafts.size(); ++i) {
    if (progress.cancelled()) return cancelled_import();
    File& file = files.manifest.files[i];
    const bool as_file = file.role == FileRole::published && files.drafts[i].container == nullptr;
    const File* stored = nullptr;
    if (as_file) {
      WEFT_TRY(stored, mounted.find(files.drafts[i].seen));
    }
    if (stored != nullptr && cut_alike(*stored, file)) {
      file.extents = stored->extents;
      file.sha256 = stored->sha256;
      progress.advance(file.size);
      ++known;
    } else {
      WEFT_CHECK(add_file(import, files.drafts[i], file, progress));
      WEFT_CHECK(add_record_table(import, files, files.drafts[i], tables, progress));
    }
  }
  import.finish_sums();
  for (std::size_t i = 0; i < files.drafts.size(); ++i)
    if (const auto& sums = files.drafts[i].sums; sums && files.manifest.files[i].role == FileRole::published)
      files.manifest.files[i].sha256 = sums->digests.front();
  WEFT_CHECK(check_expected(files));
  std::ranges::move(tables, std::back_inserter(files.manifest.files));
  WEFT_CHECK(add_sums(import, files, progress));
  return known;
}

}  // namespace weft
