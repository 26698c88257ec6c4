// Reads the small files of a data set into bundles: with this process's rights, and into files in memory, which an
// import reads like any others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <future>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/file_table.h"
#include "os/sys.h"
#include "publish/bundles.h"
#include "weft/result.h"

namespace weft {

// The places on disk of the files in a file table.
struct SmallFilePlaces {
  std::vector<std::string> paths;  // PATHs of the command line
  struct TopDirectory {
    std::string name;
    std::uint32_t path = 0;  // index into `paths`
  };
  std::vector<TopDirectory> top;  // the directories of the root, by name
  struct RootFile {
    std::uint32_t path = 0;
    bool is_path = false;  // the file is the PATH itself
  };
  std::vector<RootFile> root_files;                                           // by file of the root
  std::string directory(const FileTable& table, std::uint64_t number) const;  // not for the root
  // Returns the index of the PATH that a directory is below: the PATH of its first component.
  std::uint32_t source_of(std::string_view path) const;
  std::string root_file(std::uint64_t file, const std::string& name) const;
};

// Reads each bundle once, in order; reads the next one while one is used. One calling thread.
class BundleReader {
 public:
  // `table` is a file table that this process made.
  BundleReader(std::vector<std::byte> table, SmallFilePlaces places);
  ~BundleReader();
  BundleReader(const BundleReader&) = delete;
  BundleReader& operator=(const BundleReader&) = delete;

  std::span<const std::byte> table_bytes() const { return bytes_; }
  const std::vector<Bundle>& bundles() const { return bundles_; }
  // Returns the bytes of bundles()[number], or of the table. Errc::changed if a file differs from the file that the
  // walk found. The error of a file fails its bundle.
  Result<Fd> open(std::size_t number);
  Result<Fd> open_table() const;

 private:
  Result<Fd> read(std::size_t number);
  Status read_files(const Bundle& bundle, std::uint64_t first, std::uint64_t end, int to);

  const std::vector<std::byte> bytes_;
  const FileTable table_;
  const SmallFilePlaces places_;
  const std::vector<Bundle> bundles_;
  std::future<Result<Fd>> ahead_;  // reads bundle ahead_number_
  std::size_t ahead_number_ = 0;
};

}  // namespace weft
