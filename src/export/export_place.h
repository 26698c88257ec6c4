// The place that an export writes to. export_target.cc has its functions.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "os/beneath.h"
#include "os/sys.h"
#include "weft/content.h"
#include "weft/result.h"

namespace weft {

inline constexpr mode_t kExportDirectoryMode = 0755;
inline constexpr mode_t kExportFileMode = 0644;
// Of the hidden directory in which an export writes: other users cannot reach its entries until they are published.
inline constexpr mode_t kExportStageMode = 0700;
inline constexpr std::string_view kExportStageBegin = ".weft-export-";
inline std::string export_stage_name() {
  return std::string(kExportStageBegin) + random_hex(8);
}

struct MadeDirectory {
  Beneath directory;
  Inode inode;
};
// Makes and opens a directory. If the open fails, removes the directory by its name. That is safe: rmdir removes only
// an empty directory, and a user who has replaced ours can remove the replacement too.
Result<MadeDirectory> make_directory_in(const Beneath& above, const std::string& name, mode_t mode);

// Opens the directory of a path that a user named. Returns it with the path's last component.
Result<std::pair<Beneath, std::string>> parent_and_name(std::string_view path);

// Returns the directory of a path; "" if the path has no slash.
inline std::string_view parent_of(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

inline std::string_view name_in(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

struct ExportedFile {
  std::string_view path;  // as File::path; outlives the place
  std::uint64_t size = 0;
  std::uint8_t execute = 0;           // as File::execute
  std::optional<Digest> sha256 = {};  // plain SHA-256 of the bytes, if it is known
};

// The writer gives each file to reuse(). If that returns false, the writer creates the file, writes all its bytes, and
// calls complete(). Paths come in byte order. The destructor removes what is not published.
class ExportPlace {
 public:
  virtual ~ExportPlace() = default;
  // True if the place has the bytes of the file already, so that the file is done.
  virtual Result<bool> reuse(const ExportedFile& file) = 0;
  virtual Result<Fd> create(const ExportedFile& file) = 0;  // open for writing
  virtual Status complete(const ExportedFile& file, const Fd& written) = 0;
  // Makes a directory and its parents. `path` outlives the place.
  virtual Status make_directory(std::string_view path) = 0;
  // Makes all files durable, then visible.
  virtual Status publish() = 0;
};

}  // namespace weft
