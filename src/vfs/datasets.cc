#include "vfs/datasets.h"

#include <algorithm>
#include <string>
#include <utility>

#include "reading/open_file.h"
#include "reading/part_file.h"

namespace weft {
namespace {

using Kind = DatasetNode::Kind;

constexpr std::uint64_t kBlockBytes = 512;

class GeneratedFile final : public OpenFile {
 public:
  explicit GeneratedFile(std::shared_ptr<const MadeFile> made) : made_(std::move(made)) {}
  std::uint64_t size() const override { return made_->size; }
  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> out) override {
    if (offset >= made_->size || out.empty()) return std::size_t{0};
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), made_->size - offset));
    made_->read(offset, out.first(count));
    return count;
  }
  int backing_fd() const override { return -1; }

 private:
  const std::shared_ptr<const MadeFile> made_;
};

std::uint64_t number_in(const TreeVersion& version, const MountInode& inode) {
  return inode.ino - version.local.ino_base;
}

// Returns the blocks of a node. A small file has blocks of its own. Other parts are views of a file that counts its
// blocks.
std::uint64_t blocks_of(const Manifest& manifest, const DatasetNode& node, std::uint64_t size) {
  const bool is_small = node.kind == Kind::part && manifest.files[node.file].role == FileRole::bundle;
  return is_small ? (size + kBlockBytes - 1) / kBlockBytes : std::min<std::uint64_t>(size, 1);
}

}  // namespace

void Datasets::trim() {
  sources_.drop_unused(kKeptFor);
  made_.drop_unused(kKeptFor);
}

Result<std::shared_ptr<const MadeFile>> Datasets::made(const Version& version, std::uint64_t number) {
  const Ino ino = version->local.ino_base + number;
  if (auto known = made_.find(ino)) return known;
  WEFT_TRY(MadeFile made, version->dataset->made(number));
  const std::size_t bytes = sizeof made + made.memory_bytes;
  auto out = std::make_shared<const MadeFile>(std::move(made));
  made_.put(ino, out, bytes);
  return out;
}

Result<Attr> Datasets::attr_of(const Version& version, std::uint64_t number, const DatasetNode& node) {
  Attr attr = version_dir_attr(version->row, version->local.ino_base + number);
  attr.lasting_name = number != kPublishedRoot && number != kRecordsRoot;
  if (node.kind == Kind::dir) return attr;
  attr.type = FileType::regular;
  attr.lasting_entries = false;
  attr.size = node.range.length;
  if (node.kind == Kind::made) {
    WEFT_TRY(const auto made, this->made(version, number));
    attr.size = made->size;
  }
  attr.blocks = blocks_of(version->tree->manifest(), node, attr.size);
  return attr;
}

Result<Attr> Datasets::attr(const MountInode& inode) {
  WEFT_TRY(const Version version, versions_.load(inode.row.version));
  const std::uint64_t number = number_in(*version, inode);
  WEFT_TRY(const DatasetNode node, version->dataset->node(number));
  return node.kind == Kind::published ? versions_.attr(inode) : attr_of(version, number, node);
}

Result<Attr> Datasets::lookup(const MountInode& dir, std::string_view name) {
  WEFT_TRY(const Version version, versions_.load(dir.row.version));
  WEFT_TRY(const DatasetEntry entry, version->dataset->lookup(number_in(*version, dir), name));
  if (entry.node.kind != Kind::published) return attr_of(version, entry.number, entry.node);
  const auto node = static_cast<std::uint32_t>(entry.number);
  WEFT_TRY(const std::vector<Attr> attrs, versions_.attrs_of(version, std::span(&node, 1)));
  return attrs.front();
}

Result<DirPage> Datasets::list(const MountInode& dir, ListPlace from) {
  WEFT_TRY(const Version version, versions_.load(dir.row.version));
  const std::uint64_t number = number_in(*version, dir);
  WEFT_TRY(DatasetPage found, version->dataset->list(number, number_of(from), kEntriesPerPage));
  std::vector<std::uint32_t> published;
  for (const DatasetEntry& entry : found.entries)
    if (entry.node.kind == Kind::published) published.push_back(static_cast<std::uint32_t>(entry.number));
  WEFT_TRY(const std::vector<Attr> attrs, versions_.attrs_of(version, published));
  auto next_published = attrs.begin();
  DirPage page{{}, found.last};
  for (DatasetEntry& entry : found.entries) {
    const ListPlace place = place_of(1, entry.behind);
    if (entry.node.kind == Kind::published) {
      page.entries.push_back({std::move(entry.name), *next_published++, true, place});
      continue;
    }
    WEFT_TRY(const Attr attr, attr_of(version, entry.number, entry.node));
    page.entries.push_back({std::move(entry.name), attr, true, place});
  }
  return page;
}

Result<Ino> Datasets::parent(const MountInode& dir) {
  WEFT_TRY(const Version version, versions_.load(dir.row.version));
  const std::uint64_t number = number_in(*version, dir);
  if (number == kPublishedRoot || number == kRecordsRoot)
    return versions_.name_dir(*version, number == kRecordsRoot ? InoKind::records : InoKind::datasets);
  WEFT_TRY(const std::uint64_t parent, version->dataset->parent(number));
  return version->local.ino_base + parent;
}

Result<std::shared_ptr<OpenFile>> Datasets::source(const Version& version, std::uint32_t file) {
  const std::uint64_t key = version->row.id << 32U | file;
  if (const auto known = sources_.find(key)) return known->file;
  const VersionTree& tree = *version->tree;
  const bool published = tree.manifest().files[file].role == FileRole::published;
  auto opened = published ? versions_.open_node({version, tree.node_of_file(file)})
                          : versions_.hidden_files().open(version->row, tree.manifest(), file);
  if (opened.ok()) sources_.put(key, std::make_shared<const Source>(Source{*opened}), 1);
  return opened;
}

Result<std::shared_ptr<OpenFile>> Datasets::open(const MountInode& inode) {
  WEFT_TRY(const Version version, versions_.load(inode.row.version));
  const std::uint64_t number = number_in(*version, inode);
  WEFT_TRY(const DatasetNode node, version->dataset->node(number));
  switch (node.kind) {
    case Kind::dir:
      break;
    case Kind::published:
      return versions_.open(inode);
    case Kind::made: {
      WEFT_TRY(auto made, this->made(version, number));
      return std::shared_ptr<OpenFile>(std::make_shared<GeneratedFile>(std::move(made)));
    }
    case Kind::part: {
      if (node.range.length == 0) return open_text("");
      WEFT_TRY(auto whole, source(version, node.file));
      return open_part(std::move(whole), node.range);
    }
  }
  return is_a_directory(inode.ino);
}

}  // namespace weft
