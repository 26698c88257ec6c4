#include "vfs/dataset_dir.h"

#include <algorithm>
#include <utility>

#include "reading/open_file.h"
#include "reading/part_file.h"

namespace weft {
namespace {

constexpr std::uint64_t kDatasetBlockBytes = 512;

}  // namespace

void DatasetFiles::trim() {
  whole_.drop_unused(kKeptFor);
  made_.drop_unused(kKeptFor);
}

Result<std::shared_ptr<OpenFile>> DatasetFiles::open_part(const TreeVersionPointer& version, const FilePart& part) {
  if (part.range.length == 0) return open_text("");
  const std::uint64_t key = version->row.id << 32U | part.file;
  if (const auto known = whole_.find(key)) return weft::open_part(known->file, part.range);
  WEFT_TRY(auto whole, versions_.open_file(version, part.file));
  whole_.put(key, std::make_shared<const Whole>(Whole{whole}), 1);
  return weft::open_part(std::move(whole), part.range);
}

std::shared_ptr<const MadeFile> DatasetFiles::made(Ino ino, const std::function<MadeFile()>& make) {
  if (auto known = made_.find(ino)) return known;
  auto out = std::make_shared<const MadeFile>(make());
  made_.put(ino, out, sizeof *out + out->memory_bytes);
  return out;
}

Result<DatasetDir::Numbered> DatasetDir::numbered(const MountInode& inode) {
  WEFT_TRY(auto version, files_.versions().load(inode.row.version, inode.row.base));
  const std::uint64_t number = inode.ino - version->local.ino_base;
  return Numbered{std::move(version), number};
}

Attr DatasetDir::Numbered::dir_attr(std::uint64_t of) const {
  Attr attr = version_dir_attr(version->row, ino(of));
  attr.lasting_name = of != kPublishedRoot && of != kRecordsRoot;
  return attr;
}

Attr DatasetDir::Numbered::file_attr(std::uint64_t of, std::uint64_t size) const {
  Attr attr = dir_attr(of);
  attr.type = FileType::regular;
  attr.lasting_entries = false;
  attr.size = size;
  attr.blocks = std::min<std::uint64_t>(size, 1);
  return attr;
}

// A small file has blocks of its own. Another part is a view of a file that counts its blocks.
Attr DatasetDir::Numbered::part_attr(std::uint64_t of, const FilePart& part) const {
  Attr attr = file_attr(of, part.range.length);
  attr.execute = part.execute;
  if (version->manifest().files[part.file].role == FileRole::bundle)
    attr.blocks = (attr.size + kDatasetBlockBytes - 1) / kDatasetBlockBytes;
  return attr;
}

Result<DatasetTablePointer> small_table_of(const TreeVersion& version) {
  const auto tables = files_of(version.manifest(), FileRole::file_table);
  if (tables.empty()) return DatasetTablePointer();
  return version.dataset->tables(static_cast<std::uint32_t>(tables.data() - version.manifest().files.data()));
}

}  // namespace weft
