#include "store/placing.h"

#include <fcntl.h>

#include <fmt/core.h>

#include "base/log.h"
#include "base/sha256.h"
#include "placing_generated.h"
#include "store/flat.h"
#include "store/pack_file.h"
#include "store/record.h"
#include "store/toc.h"

namespace weft {
namespace {

constexpr std::size_t kFileBytes = kPlacingMax + (64U << 10U);  // with the record around it

std::string placing_path(const std::string& store_path) {
  return store_path + "/journal/placing";
}

// Blocks that are written once: writing over them changes nothing of the file system.
Result<Fd> open_filled(const std::string& path) {
  WEFT_TRY(Fd fd, open_file(path, O_RDWR | O_CREAT));
  WEFT_TRY(struct stat st, stat_fd(fd.get(), path));
  if (static_cast<std::size_t>(st.st_size) >= kFileBytes) return fd;
  WEFT_CHECK(write_exact(fd.get(), 0, std::vector<std::byte>(kFileBytes), path));
  WEFT_CHECK(sync_file(fd.get(), path));
  WEFT_CHECK(sync_directory(path.substr(0, path.rfind('/'))));
  return fd;
}

Status blank(int fd, const std::string& path) {
  WEFT_CHECK(write_exact(fd, 0, std::vector<std::byte>(kRecordHeader), path));
  return sync_data(fd, path);
}

std::vector<std::byte> encode(const PlacedFiles& files) {
  flat::Builder builder;
  const auto bytes_of = [&builder](const std::vector<std::byte>& bytes) {
    return builder.CreateVector(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  };
  auto pack = bytes_of(files.pack_bytes);
  auto toc = bytes_of(files.toc);
  auto manifest = bytes_of(files.manifest);
  return seal_record(RecordKind::placing,
                     flat::finish(builder, records::CreatePlacing(builder, files.pack, pack, toc, manifest)));
}

std::vector<std::byte> copy(const flatbuffers::Vector<std::uint8_t>* bytes) {
  if (bytes == nullptr) return {};
  const auto all = std::as_bytes(std::span(bytes->data(), bytes->size()));
  return {all.begin(), all.end()};
}

// Nothing when no whole record is there: what was not written to its end was not registered.
Result<std::optional<PlacedFiles>> read_record(const std::string& path) {
  auto bytes = read_file(path, kFileBytes);
  if (!bytes.ok() && bytes.error().code == Errc::not_found) return std::optional<PlacedFiles>();
  if (!bytes.ok()) return std::move(bytes).error();
  const auto length = record_length(*bytes);
  if (!length) return std::optional<PlacedFiles>();
  WEFT_TRY(std::vector<std::byte> payload, open_record(RecordKind::placing, std::span(*bytes).first(*length), path));
  const auto* in = flat::root<records::Placing>(payload);
  if (in == nullptr) return flat::bad(path, "not what is placed");
  return std::optional(PlacedFiles{in->pack(), copy(in->pack_bytes()), copy(in->toc()), copy(in->manifest())});
}

struct PlacedFile {
  std::string path;
  const std::vector<std::byte>* bytes;
};

bool in_place(const PlacedFile& file) {
  auto now = read_file(file.path, file.bytes->size());
  return now.ok() && *now == *file.bytes;
}

Status put_in_place(const std::string& store_path, const PlacedFile& file) {
  const std::string temporary = store_path + "/tmp/placing";
  WEFT_TRY(Fd fd, open_file(temporary, O_WRONLY | O_CREAT | O_TRUNC));
  WEFT_CHECK(write_exact(fd.get(), 0, *file.bytes, temporary));
  WEFT_CHECK(sync_file(fd.get(), temporary));
  WEFT_CHECK(rename_file(temporary, file.path));
  log_info("{}: put in place again", file.path);
  return {};
}

Status sync_in_place(const PlacedFile& file) {
  WEFT_TRY(Fd fd, open_file(file.path, O_RDONLY));
  return sync_file(fd.get(), file.path);
}

// A table of contents that is whole and another says that the pack was changed since: it was durable by then.
bool was_changed(const std::string& path, const std::vector<std::byte>& toc) {
  auto now = read_file(path, UINT32_MAX);
  return now.ok() && *now != toc && decode_toc(*now, path).ok();
}

std::vector<PlacedFile> files_of(const std::string& store_path, const PlacedFiles& files) {
  std::vector<PlacedFile> out;
  const std::string toc = toc_path(store_path, files.pack);
  if (!was_changed(toc, files.toc)) {
    out.push_back({toc, &files.toc});
    out.push_back({pack_path(store_path, files.pack), &files.pack_bytes});
  }
  out.push_back({store_path + "/manifests/" + to_hex(sha256(files.manifest)), &files.manifest});
  return out;
}

}  // namespace

Placing::Placing(const std::string& store_path) : path_(placing_path(store_path)) {}

bool Placing::take() {
  if (taken_.test_and_set()) return false;
  if (fd_.valid()) return true;
  auto fd = open_filled(path_);
  if (fd.ok()) fd_ = std::move(fd).value();
  if (!fd_.valid()) taken_.clear();
  return fd_.valid();
}

Status Placing::write(const PlacedFiles& files) {
  const std::vector<std::byte> record = encode(files);
  if (record.size() > kFileBytes) return Error{Errc::internal, fmt::format("{}: too much to place", path_)};
  WEFT_CHECK(write_exact(fd_.get(), 0, record, path_));
  return sync_data(fd_.get(), path_);
}

Status Placing::clear() {
  WEFT_CHECK(blank(fd_.get(), path_));
  taken_.clear();
  return {};
}

Result<std::vector<std::string>> Placing::missing(const std::string& store_path) {
  std::vector<std::string> missing;
  WEFT_TRY(const std::optional<PlacedFiles> files, read_record(placing_path(store_path)));
  if (!files) return missing;
  for (const PlacedFile& file : files_of(store_path, *files))
    if (!in_place(file)) missing.push_back(file.path);
  return missing;
}

Result<std::vector<std::string>> Placing::finish(const std::string& store_path) {
  std::vector<std::string> placed;
  const std::string path = placing_path(store_path);
  WEFT_TRY(const std::optional<PlacedFiles> files, read_record(path));
  if (!files) return placed;
  for (const PlacedFile& file : files_of(store_path, *files)) {
    const bool whole = in_place(file);
    WEFT_CHECK(whole ? sync_in_place(file) : put_in_place(store_path, file));
    if (!whole) placed.push_back(file.path);
  }
  WEFT_CHECK(sync_directory(store_path + "/packs"));
  WEFT_CHECK(sync_directory(store_path + "/manifests"));
  WEFT_TRY(Fd fd, open_file(path, O_RDWR));
  WEFT_CHECK(blank(fd.get(), path));
  return placed;
}

}  // namespace weft
