#include <fcntl.h>

#include <algorithm>
#include <array>

#include "base/limits.h"
#include "base/sha256.h"
#include "catalog/journal.h"
#include "cli/commands/commands.h"
#include "cli/shared/listing_output.h"
#include "diskformat/pack_names.h"
#include "diskformat/record.h"
#include "diskformat/toc.h"
#include "os/sys.h"
#include "weft/model/manifest.h"
#include "weft/store/snapshot.h"

namespace weft {
namespace {

constexpr CommandInfo kDebugInfo = {
    .name = "debug",
    .summary = "print what a file of a store holds",
    .description =
        "WHAT is pack, toc, journal or manifest, and FILE is such a file of a store. debug\n"
        "reads FILE alone, and for a pack also the .toc beside it. It needs no store and\n"
        "no daemon, and it prints the undamaged part of a damaged journal.\n"
        "\n"
        "For a pack, debug reads and hashes each blob. If one is damaged, or if a journal\n"
        "has a gap, the exit status is 1.\n",
    .examples =
        "weft debug toc /var/lib/weft/packs/0123456789abcdef.toc\n"
        "weft debug journal /var/lib/weft/journal/0000000000000001.log\n",
    .json =
        "pack and toc: {pack, size, cached, promoted, merged, boot, blobs: [{offset,\n"
        " length, sha256, chunks, state}]}; journal: {records: [{offset, length,\n"
        " sequence, event}]}; manifest: {sha256, kind, files: [{path, size, format, role,\n"
        " extents: [{offset, length, sha256}], tensors: [{name, dtype, shape, extent,\n"
        " runs}]}]}\n",
};

using Bytes = std::span<const std::byte>;

// Opens a file of a store as a reader would: it may be hostile.
Result<Fd> open_stored(const std::string& path) {
  WEFT_TRY(Fd fd, open_file(path, O_RDONLY | O_NONBLOCK));
  WEFT_TRY(const struct stat st, stat_fd(fd.get(), path));
  if (!S_ISREG(st.st_mode)) return Error{Errc::invalid, fmt::format("{}: expected a regular file", path)};
  return fd;
}

Result<std::vector<std::byte>> read_stored(const std::string& path, std::uint64_t bytes_max) {
  WEFT_TRY(const Fd fd, open_stored(path));
  WEFT_TRY(const struct stat st, stat_fd(fd.get(), path));
  return read_whole(fd.get(), st, bytes_max, path);
}

// Compares the stored bytes of a blob with its digests.
std::string_view state_of(int pack, const PackEntry& entry) {
  if (tree_root(entry.id.length, entry.chunks) != entry.id.root) return "wrong root";
  std::vector<std::byte> bytes(std::min(entry.id.length, kDigestChunk));
  std::uint64_t at = 0;
  for (const Digest& chunk : entry.chunks) {
    const auto piece = std::span(bytes).first(std::min<std::uint64_t>(bytes.size(), entry.id.length - at));
    if (!read_exact(pack, entry.offset + at, piece, "pack").ok() || sha256(piece) != chunk) return "damaged";
    at += piece.size();
  }
  return "whole";
}

ListingOutput blobs_table(const Context& context) {
  return {context, false, {{"OFFSET", Align::right}, {"LENGTH", Align::right}, {"SHA256"}, {"STATE"}}};
}

void write_head(const Context& context, JsonWriter& json, const PackToc& toc) {
  json.begin_object().member("pack", pack_name(toc.pack)).member("size", toc.size);
  json.member("cached", toc.cached).member("promoted", toc.promoted).member("merged", toc.merged);
  json.member("boot", toc.boot).key("blobs").begin_array();
  if (context.json) return;
  context.print("pack {}, {} bytes, {}{}{}{}{}\n", pack_name(toc.pack), toc.size, count_of(toc.entries.size(), "blob"),
                toc.cached ? ", cached" : "", toc.promoted ? ", promoted" : "", toc.merged ? ", merged" : "",
                toc.boot.empty() ? "" : ", boot " + toc.boot);
}

// Prints a table of contents. `pack`: the pack whose blobs to verify; -1: none. Returns the exit status.
int show_blobs(const Context& context, const PackToc& toc, int pack) {
  ListingOutput out = blobs_table(context);
  write_head(context, out.json, toc);
  int status = kExitDone;
  std::size_t rows = 0;
  for (const PackEntry& entry : toc.entries) {
    const std::string_view state = pack < 0 ? "listed" : state_of(pack, entry);
    if (pack >= 0 && state != "whole") status = kExitFailed;
    const std::string root = to_hex(entry.id.root);
    out.table.row({std::to_string(entry.offset), std::to_string(entry.id.length), root, std::string(state)});
    out.json.begin_object().member("offset", entry.offset).member("length", entry.id.length).member("sha256", root);
    out.json.member("chunks", static_cast<std::uint64_t>(entry.chunks.size())).member("state", state).end_object();
    if (++rows % limits::kRowsPerSnapshot == 0) out.print();
  }
  out.json.end_array().end_object();
  out.end();
  return status;
}

Result<int> show_toc(const Context& context, const std::string& path) {
  WEFT_TRY(const auto bytes, read_stored(path, limits::kRecordMax));
  WEFT_TRY(const PackToc toc, decode_toc(bytes, path));
  return show_blobs(context, toc, -1);
}

Result<int> show_pack(const Context& context, const std::string& path) {
  constexpr std::string_view kSuffix = ".pack";
  if (!path.ends_with(kSuffix)) return Error{Errc::invalid, fmt::format("{}: expected a name that ends .pack", path)};
  const std::string toc_path = path.substr(0, path.size() - kSuffix.size()) + ".toc";
  WEFT_TRY(const auto bytes, read_stored(toc_path, limits::kRecordMax));
  WEFT_TRY(const PackToc toc, decode_toc(bytes, toc_path));
  WEFT_TRY(const Fd pack, open_stored(path));
  return show_blobs(context, toc, pack.get());
}

// A record of a journal, or a gap between two.
struct Piece {
  std::uint64_t length = 0;
  std::uint64_t sequence = 0;  // 0: none
  std::string text;
  bool intact = true;
};

// Returns the record at the start of `rest`, for offset `at` of the journal; nothing if there is none.
std::optional<Piece> record_at(Bytes rest, std::uint64_t at, std::string_view where) {
  const auto length = looks_like_event(rest) ? record_length(rest) : std::nullopt;
  if (!length) return {};
  const auto placed = decode_event(rest.first(*length), where);
  if (!placed.ok() && placed.error().code == Errc::unsupported) return Piece{*length, 0, placed.error().message, true};
  if (!placed.ok() || placed->place != at) return {};
  return Piece{*length, event_sequence(placed->event), event_text(placed->event), true};
}

// Returns the next record, or the gap before it.
Piece next_piece(Bytes records, std::uint64_t at, std::string_view where) {
  if (auto record = record_at(records.subspan(at), at, where)) return std::move(*record);
  std::uint64_t end = at + 1;
  while (end < records.size() && !record_at(records.subspan(end), end, where)) ++end;
  return {end - at, 0, "no intact record", false};
}

// A .copy begins with two marks, before the records.
Result<int> show_journal(const Context& context, const std::string& path) {
  WEFT_TRY(const Fd fd, open_stored(path));
  WEFT_TRY(const struct stat st, stat_fd(fd.get(), path));
  WEFT_TRY(const MappedFile file, MappedFile::map(fd.get(), static_cast<std::uint64_t>(st.st_size), path));
  const std::uint64_t marks = path.ends_with(".copy") ? kMarksBytes : 0;
  const Bytes records = file.bytes().subspan(std::min<std::uint64_t>(marks, file.bytes().size()));
  ListingOutput out(context, false,
                    {{"OFFSET", Align::right}, {"LENGTH", Align::right}, {"SEQUENCE", Align::right}, {"EVENT"}});
  out.json.begin_object().key("records").begin_array();
  int status = kExitDone;
  std::size_t rows = 0;
  for (std::uint64_t at = 0; at < records.size();) {
    const Piece piece = next_piece(records, at, path);
    if (!piece.intact) status = kExitFailed;
    out.table.row({std::to_string(at), std::to_string(piece.length),
                   piece.sequence == 0 ? "-" : std::to_string(piece.sequence), piece.text});
    out.json.begin_object().member("offset", at).member("length", piece.length).member("sequence", piece.sequence);
    out.json.member("event", piece.text).end_object();
    at += piece.length;
    if (++rows % limits::kRowsPerSnapshot == 0) out.print();
  }
  out.json.end_array().end_object();
  out.end();
  return status;
}

std::string_view role_name(FileRole role) {
  constexpr std::array<std::string_view, 5> kNames = {"published", "bundle", "file table", "record table", "sums"};
  return kNames[static_cast<std::size_t>(role)];
}

void write_tensor(JsonWriter& json, const Tensor& tensor) {
  const DTypeInfo* const type = dtype_info(tensor.dtype);
  json.begin_object()
      .member("name", tensor.name)
      .member("dtype", type == nullptr ? tensor.descr : type->name)
      .key("shape")
      .begin_array();
  for (const std::uint64_t size : tensor.shape) json.value(size);
  json.end_array().key("extent");
  if (tensor.extent == kNoExtent)
    json.null();
  else
    json.value(static_cast<std::uint64_t>(tensor.extent));
  json.member("runs", static_cast<std::uint64_t>(tensor.runs.size())).end_object();
}

void write_file(JsonWriter& json, const File& file) {
  json.begin_object().member("path", file.path).member("size", file.size).member("format", file.format);
  json.member("role", role_name(file.role)).key("extents").begin_array();
  for (const Extent& extent : file.extents) {
    json.begin_object().member("offset", extent.offset).member("length", extent.id.length);
    json.member("sha256", to_hex(extent.id.root)).end_object();
  }
  json.end_array().key("tensors").begin_array();
  for (const Tensor& tensor : file.tensors) write_tensor(json, tensor);
  json.end_array().end_object();
}

Result<int> show_manifest(const Context& context, const std::string& path) {
  WEFT_TRY(const auto bytes, read_stored(path, limits::kManifestMax));
  auto decoded = decode_manifest(bytes);
  if (!decoded.ok()) return Error{decoded.error().code, fmt::format("{}: {}", path, decoded.error().message)};
  const Manifest& manifest = *decoded;
  const std::string name = to_hex(sha256(bytes));
  ListingOutput out(
      context, false,
      {{"SIZE", Align::right}, {"EXTENTS", Align::right}, {"TENSORS", Align::right}, {"FORMAT"}, {"ROLE"}, {"PATH"}});
  if (!context.json)
    context.print("{} {}, {}, {}\n", kind_name(manifest.kind), name, count_of(manifest.files.size(), "file"),
                  count_of(tensor_count(manifest), "tensor"));
  out.json.begin_object().member("sha256", name).member("kind", kind_name(manifest.kind)).key("files").begin_array();
  for (const File& file : manifest.files) {
    out.table.row({std::to_string(file.size), std::to_string(file.extents.size()), std::to_string(file.tensors.size()),
                   file.format.empty() ? "-" : file.format, std::string(role_name(file.role)), file.path});
    if (context.json) write_file(out.json, file);
    if (context.json) out.print();
  }
  out.json.end_array().end_object();
  out.end();
  return kExitDone;
}

struct Shown {
  std::string_view what;
  Result<int> (*show)(const Context& context, const std::string& path);
};
constexpr std::array<Shown, 4> kShown = {
    {{"pack", show_pack}, {"toc", show_toc}, {"journal", show_journal}, {"manifest", show_manifest}}};

class DebugCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.argument("WHAT", what_, OptionSet::Need::required, "pack, toc, journal or manifest",
                     {"pack", "toc", "journal", "manifest"});
    options.argument("FILE", file_, OptionSet::Need::required, "the file to print");
  }

  Status check_usage() override {
    if (std::ranges::find(kShown, what_, &Shown::what) != kShown.end()) return {};
    return Error{Errc::invalid, fmt::format("expected pack, toc, journal or manifest, got {}", printable(what_))};
  }

  Result<int> run(Context& context) override {
    return std::ranges::find(kShown, what_, &Shown::what)->show(context, file_);
  }

 private:
  std::string what_;
  std::string file_;
};

}  // namespace

constinit const CommandEntry kDebugCommand = {kDebugInfo, make<DebugCommand>};

}  // namespace weft
