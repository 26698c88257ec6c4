#include "publish/draft.h"

#include <fmt/core.h>

#include <algorithm>

#include "publish/cut.h"
#include "publish/fd_source.h"
#include "publish/shards.h"

namespace weft {
namespace {

File file_of(const Draft& draft, Layout layout, const Cut& cut) {
  File file;
  file.path = draft.source.path;
  file.size = static_cast<std::uint64_t>(draft.seen.st_size);
  file.format = std::move(layout.format);
  file.metadata = std::move(layout.metadata);
  file.extents.reserve(cut.ranges.size());
  for (const Range& range : cut.ranges) {
    Extent& extent = file.extents.emplace_back();
    extent.offset = range.offset;
    extent.id.length = range.length;
  }
  file.tensors.reserve(layout.tensors.size());
  for (std::size_t i = 0; i < layout.tensors.size(); ++i) {
    TensorExtent& tensor = layout.tensors[i];
    file.tensors.push_back(
        {std::move(tensor.name), tensor.dtype, std::move(tensor.shape), cut.tensor_extent[i], std::move(tensor.descr)});
  }
  return file;
}

std::string base_name(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

// Parses `draft.source` and fills in the rest of it.
Result<File> parse_source(Draft& draft) {
  const std::string& where = draft.source.where;
  WEFT_TRY(Fd fd, open_source(draft.source, draft.seen));
  FdSource bytes(fd.get(), static_cast<std::uint64_t>(draft.seen.st_size), where);
  WEFT_TRY(Layout layout, parse_file(where, base_name(draft.source.path), bytes));
  if (is_shard_index(draft.source.path)) {
    WEFT_TRY(draft.shard_index, parse_safetensors_index(where, bytes));
  }
  draft.bases = named_bases(draft.source.path, bytes);
  auto cut = cut_file(bytes.size(), layout.tensors);
  if (!cut.ok()) return Error{cut.error().code, fmt::format("{}: {}", where, cut.error().message)};
  File file = file_of(draft, std::move(layout), *cut);
  draft.ranges = std::move(cut->ranges);
  return file;
}

Status add_file(Import& import, const Draft& draft, File& file, Progress& progress) {
  const std::string& where = draft.source.where;
  struct stat opened {};
  WEFT_TRY(Fd fd, open_source(draft.source, opened));
  WEFT_CHECK(check_unchanged(where, draft.seen, opened));
  if (draft.ranges.empty()) return {};
  progress.phase(fmt::format("reading {}", draft.source.path));
  const bool given = draft.source.giver == opened.st_uid;
  const Take given_as = draft.source.linked ? Take::share : Take::move;
  WEFT_TRY(auto extents, import.add(fd.get(), where, draft.ranges, given ? given_as : Take::copy, progress));
  WEFT_TRY(struct stat after, stat_fd(fd.get(), where));
  WEFT_CHECK(check_unchanged(where, draft.seen, after, given));
  if (extents.size() != file.extents.size())
    return Error{Errc::internal,
                 fmt::format("{}: expected {} extents, got {}", where, file.extents.size(), extents.size())};
  file.extents = std::move(extents);
  return {};
}

// A program of another release may cut a file at other places.
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
  WEFT_CHECK(check_unchanged(where, draft.seen, opened));
  std::string text(static_cast<std::size_t>(opened.st_size), '\0');
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

Result<DraftFiles> draft_files(std::vector<SourceFile> sources, Progress& progress) {
  DraftFiles files;
  progress.phase("reading headers");
  for (SourceFile& source : sources) {
    if (progress.cancelled()) return cancelled_import();
    Draft& draft = files.drafts.emplace_back();
    draft.source = std::move(source);
    WEFT_TRY(File file, parse_source(draft));
    files.manifest.files.push_back(std::move(file));
  }
  return files;
}

Status check_shard_indices(const DraftFiles& files, const Manifest& version) {
  for (const Draft& draft : files.drafts)
    WEFT_CHECK(check_shards(draft.source.where, draft.source.path, draft.shard_index, version));
  return {};
}

Result<std::uint64_t> add_content(Import& import, DraftFiles& files, MountedFiles& mounted, Progress& progress) {
  progress.total(logical_bytes(files.manifest));
  std::uint64_t known = 0;
  for (std::size_t i = 0; i < files.drafts.size(); ++i) {
    if (progress.cancelled()) return cancelled_import();
    File& file = files.manifest.files[i];
    WEFT_TRY(const File* stored, mounted.find(files.drafts[i].seen));
    if (stored != nullptr && cut_alike(*stored, file)) {
      file.extents = stored->extents;
      progress.advance(file.size);
      ++known;
    } else {
      WEFT_CHECK(add_file(import, files.drafts[i], file, progress));
    }
  }
  return known;
}

}  // namespace weft
