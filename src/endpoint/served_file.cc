#include "endpoint/served_file.h"

#include <fmt/core.h>

#include <span>
#include <string_view>

#include "base/sha256.h"
#include "weft/names.h"

namespace weft {
namespace {

std::string content_name(const ServedFile& file, const std::string& commit) {
  if (file.sha256) return to_hex(*file.sha256);
  if (!file.git_sha1.empty()) return file.git_sha1;
  const std::string place = fmt::format("{}/{}", commit, file.path);
  return to_hex(sha256(std::as_bytes(std::span(place)))).substr(0, kCommitDigits);
}

std::string object_id(const ServedFile& file, const std::string& commit) {
  return file.git_sha1.empty() ? content_name(file, commit).substr(0, kCommitDigits) : file.git_sha1;
}

// Returns the size of the pointer that git has in place of a file in LFS (https://git-lfs.github.com/spec/v1).
std::uint64_t pointer_size(const ServedFile& file) {
  return fmt::format("version https://git-lfs.github.com/spec/v1\noid sha256:{:064}\nsize {}\n", 0, file.size).size();
}

// `digest`: the name of the digest's member.
void write_lfs(JsonWriter& json, const ServedFile& file, std::string_view digest) {
  if (!file.sha256) return;
  json.key("lfs").begin_object().member(digest, to_hex(*file.sha256)).member("size", file.size);
  json.member("pointerSize", pointer_size(file)).end_object();
}

}  // namespace

std::string etag_of(const ServedFile& file, const std::string& commit) {
  return fmt::format("\"{}\"", content_name(file, commit));
}

void write_row(JsonWriter& json, const ServedFile& file, const std::string& commit) {
  json.begin_object().member("type", file.is_directory ? "directory" : "file");
  json.member("oid", object_id(file, commit)).member("size", file.is_directory ? std::uint64_t{0} : file.size);
  json.member("path", file.path);
  write_lfs(json, file, "oid");
  json.end_object();
}

void write_sibling(JsonWriter& json, const ServedFile& file, const std::string& commit, bool with_digests) {
  json.begin_object().member("rfilename", file.path);
  if (with_digests) {
    json.member("size", file.size).member("blobId", object_id(file, commit));
    write_lfs(json, file, "sha256");
  }
  json.end_object();
}

}  // namespace weft
