// A file or directory of a version as a hub describes it. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/json.h"
#include "weft/content.h"

namespace weft {

struct ServedFile {
  std::string path;  // in the version
  bool is_directory = false;
  std::uint64_t size = 0;
  std::optional<Digest> sha256;
  std::string git_sha1 = {};  // of a file of the upstream: the object id that it lists; else ""
};

// Returns the value of the ETag of a file, with its quotes: the SHA-256, as a hub has it for files in LFS, else the
// object id of the upstream. Clients keep a file under this name, so a file without either gets one that no other
// commit has. `commit`: of the version's content.
std::string etag_of(const ServedFile& file, const std::string& commit);

// Write a file as a row of a listing, and as a member of `siblings` of a repository. weft has no git: without
// git_sha1 the object id is kCommitDigits of the ETag.
void write_row(JsonWriter& json, const ServedFile& file, const std::string& commit);
void write_sibling(JsonWriter& json, const ServedFile& file, const std::string& commit, bool with_digests);

}  // namespace weft
