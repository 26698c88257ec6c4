// The base of the directories of data sets, and the open files in them. Any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/lru_cache.h"
#include "dataset/dataset_table.h"
#include "dataset/share_file.h"
#include "vfs/subtree.h"
#include "vfs/version_files.h"

namespace weft {

// Opens the files of data sets that are parts of other files, or generated.
class DatasetFiles {
 public:
  explicit DatasetFiles(VersionFiles& versions) : versions_(versions) {}

  VersionFiles& versions() { return versions_; }
  Result<std::shared_ptr<OpenFile>> open_part(const TreeVersionPointer& version, const FilePart& part);
  // Returns the generated file of an inode: the cached one, or the result of `make`.
  std::shared_ptr<const MadeFile> made(Ino ino, const std::function<MadeFile()>& make);
  void trim();

 private:
  static constexpr std::chrono::seconds kKeptFor{10};
  static constexpr std::size_t kWholeMax = 64;  // each holds some descriptors
  static constexpr std::size_t kMadeBytesMax = 16U << 20U;
  struct Whole {
    std::shared_ptr<OpenFile> file;
  };

  VersionFiles& versions_;
  LruCache<Whole> whole_{kWholeMax};        // files, of which others are parts
  LruCache<MadeFile> made_{kMadeBytesMax};  // by inode number: stat and open compute a file once
};

// Returns the file table of a data set; nullptr if the version has no small files.
Result<DatasetTablePointer> small_table_of(const TreeVersion& version);

// One kind of directory of a data set, with the files in it.
class DatasetDir : public Subtree {
 public:
  explicit DatasetDir(DatasetFiles& files) : files_(files) {}
  Result<FileVersions> versions(const MountInode& inode) override { return FileVersions{inode.row.version, 0}; }

 protected:
  // An inode as a number of its version (dataset/dataset_numbers.h).
  struct Numbered {
    TreeVersionPointer version;
    std::uint64_t number = 0;

    Ino ino(std::uint64_t of) const { return version->local.ino_base + of; }
    Attr dir_attr(std::uint64_t of) const;
    Attr file_attr(std::uint64_t of, std::uint64_t size) const;
    Attr part_attr(std::uint64_t of, const FilePart& part) const;
    Result<DatasetTablePointer> small_table() const { return small_table_of(*version); }
  };
  Result<Numbered> numbered(const MountInode& inode);

  DatasetFiles& files_;
};

}  // namespace weft
