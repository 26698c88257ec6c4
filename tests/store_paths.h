// The files of a store by the plain paths that a test reads and damages them with.
#pragma once

#include <memory>
#include <string>

#include "diskformat/pack_names.h"
#include "diskformat/toc.h"
#include "os/safe_path.h"
#include "testing.h"

namespace weft {

namespace testing {

// A directory as the parts of a store want it.
inline SafePath safe(const std::string& directory) {
  return must(SafePath::open_owned(directory));
}
// "DIR/NAME" by way of DIR.
inline SafePath safe_file(const std::string& path) {
  const auto slash = path.rfind('/');
  return safe(path.substr(0, slash)) / path.substr(slash + 1);
}

}  // namespace testing

inline std::string pack_in(const std::string& directory, PackId pack) {
  return directory + "/" + pack_name(pack) + ".pack";
}
inline std::string toc_in(const std::string& directory, PackId pack) {
  return directory + "/" + pack_name(pack) + ".toc";
}
inline std::string pack_path(const std::string& store_path, PackId pack) {
  return pack_in(store_path + "/packs", pack);
}
inline std::string toc_path(const std::string& store_path, PackId pack) {
  return toc_in(store_path + "/packs", pack);
}
inline std::string lost_toc_path(const std::string& store_path, PackId pack) {
  return toc_path(store_path, pack) + ".lost";
}
inline Result<PackToc> read_toc_of(const std::string& store_path, PackId pack) {
  return read_toc_of(testing::safe(store_path), pack);
}
inline Result<PackToc> read_toc(const std::string& path) {
  return read_toc(testing::safe_file(path));
}
inline Status write_toc(const std::string& path, const PackToc& toc) {
  return write_toc(testing::safe_file(path), toc);
}
inline Status replace_toc(const std::string& path, const PackToc& toc) {
  return replace_toc(testing::safe_file(path), toc);
}

}  // namespace weft
