// The small files of a data set on their way into its bundles: read here, with this process's rights, into files in
// memory, which an import takes like any others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "dataset/file_table.h"
#include "os/sys.h"
#include "publish/bundles.h"
#include "weft/result.h"

namespace weft {

// Where the files of a file table lie on disk.
struct SmallFilePlaces {
  std::vector<std::string> paths;  // PATHs of the command line
  std::vector<std::uint32_t> top;  // by directory of the root, from number 1 on: which of the paths it is below
  struct RootFile {
    std::uint32_t path = 0;
    bool is_path = false;  // it is that PATH, and lies not in it
  };
  std::vector<RootFile> root_files;                                           // by file of the root
  std::string directory(const FileTable& table, std::uint64_t number) const;  // not the root
  std::string root_file(std::uint64_t file, const std::string& name) const;
};

// Each bundle once, in order; while one is used the next is read. Threads: one caller.
class BundleReader {
 public:
  // `table` is a file table that this process made.
  BundleReader(std::vector<std::byte> table, SmallFilePlaces places);
  ~BundleReader();
  BundleReader(const BundleReader&) = delete;
  BundleReader& operator=(const BundleReader&) = delete;

  std::span<const std::byte> table_bytes() const { return bytes_; }
  const std::vector<Bundle>& bundles() const { return bundles_; }
  // The bytes of bundles()[number], or of the table. Errc::changed: a file is not as it was found. An error of a file
  // is that of the bundle.
  Result<Fd> open(std::size_t number);
  Result<Fd> open_table() const;

 private:
  Result<Fd> read(std::size_t number);
  Status read_files(const Bundle& bundle, std::uint64_t first, std::uint64_t end, int to);

  const std::vector<std::byte> bytes_;
  const FileTable table_;
  const SmallFilePlaces places_;
  const std::vector<Bundle> bundles_;
  std::future<Result<Fd>> ahead_;  // of bundle ahead_number_
  std::size_t ahead_number_ = 0;
};

}  // namespace weft
