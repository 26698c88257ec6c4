#include "vfs/versions.h"

#include <fmt/core.h>

#include <algorithm>

#include "reading/open_file.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

constexpr std::uint64_t kBlockBytes = 512;

std::uint64_t view_size(const File& file, const Tensor& tensor) {
  return npy_header(tensor.dtype, tensor.shape, tensor.descr).size() + stored_bytes(file, tensor);
}

std::size_t memory_bytes(const TreeVersion& version) {
  return version.tree->memory_bytes() + version.local.view_inos.size() * sizeof(Ino) +
         version.sizes.size() * sizeof(version.sizes[0]) + sizeof(TreeVersion);
}

Status check_fits(const TreeVersion& version) {
  const VersionTree& tree = *version.tree;
  if (version.row.kind != tree.manifest().kind)
    return Error{Errc::corrupt, fmt::format("{}@{}: expected the manifest of a {}", version.row.model_name,
                                            version.row.number, kind_name(version.row.kind))};
  const std::uint64_t nodes = version.dataset ? version.dataset->numbers.end() : tree.size();
  if (version.local.ino_count == nodes && version.local.view_inos.size() == tensor_count(tree.manifest())) return {};
  return Error{Errc::corrupt,
               fmt::format("{}@{}: expected {} inode numbers and {} views, got {} and {} (run `weft fsck --rebuild`)",
                           version.row.model_name, version.row.number, nodes, tensor_count(tree.manifest()),
                           version.local.ino_count, version.local.view_inos.size())};
}

}  // namespace

std::string TreeNode::where() const {
  return fmt::format("{}@{}: {}", version->row.model_name, version->row.number, node().name);
}

const File& TreeNode::file() const {
  return version->tree->manifest().files[node().file];
}

Ino TreeNode::ino() const {
  const Node& n = node();
  const LocalRow& local = version->local;
  if (n.kind != NodeKind::tensor_view) return local.ino_base + index;
  return local.view_inos[version->tree->tensor_ordinal(n.file, n.tensor)];
}

Result<TreeVersionPointer> Versions::read(VersionId id) {
  auto version = std::make_shared<TreeVersion>();
  {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    WEFT_TRY(version->row, snapshot->version(id));
    WEFT_TRY(version->local, snapshot->local(id));
  }
  WEFT_TRY(auto loaded, load_version(store_, resolver(), version->row));
  version->tree = std::move(loaded.tree);
  if (version->tree->manifest().kind == VersionKind::dataset) {
    // The function may keep the row: neither a version's id nor its row ever changes.
    auto tables = [this, row = version->row, tree = version->tree](std::uint32_t file) {
      return hidden_files_.table(row, tree->manifest(), file);
    };
    version->dataset.emplace(TreeVersion::Dataset{{version->manifest(), version->tree->size()}, std::move(tables)});
  }
  WEFT_CHECK(check_fits(*version));
  version->sizes = std::vector<std::atomic<std::uint64_t>>(version->tree->size());
  return TreeVersionPointer(std::move(version));
}

// Fetches the manifest of a bare version. Takes no lock, because it may last long and other opens go on meanwhile.
Status Versions::resolve(VersionId id) {
  {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    const auto bare = snapshot->is_bare(id);
    if (!bare.ok() || !*bare) return {};  // read() reports any other error
  }
  if (cold_.reads == nullptr) return no_resolver().resolve(id);
  return as_io(cold_.reads->resolve(id));
}

Result<TreeVersionPointer> Versions::load(VersionId id, Ino base) {
  const auto find = [&] {
    auto known = versions_.find(id);
    return known && base != 0 && known->local.ino_base != base ? nullptr : known;
  };
  if (auto known = find()) return known;
  WEFT_CHECK(resolve(id));
  const std::lock_guard lock(loading_);
  if (auto known = find()) return known;
  WEFT_TRY(auto version, read(id));
  versions_.put(id, version, memory_bytes(*version));
  return version;
}

void Versions::trim() {
  versions_.drop_unused(kKeptFor);
  hidden_files_.drop_unused(kKeptFor);
  files_.drop_unused(kKeptFor);
  generated_.drop_unused(kKeptFor);
  places_.drop_unused(kKeptFor);
  if (cold_.reads != nullptr) cold_.reads->trim();
}

Result<TreeNode> Versions::node(const MountInode& inode) {
  const Ino base = inode.row.base;
  WEFT_TRY(auto version, load(inode.row.version, base));
  if (inode.ino < base || inode.ino - base >= version->tree->size()) return no_inode(inode.ino);
  return TreeNode{std::move(version), static_cast<std::uint32_t>(inode.ino - base)};
}

// Returns all attributes but those that add_changing() sets.
Attr Versions::fixed_attr(const TreeNode& node) {
  const Node& n = node.node();
  Attr attr = version_dir_attr(node.version->row, node.ino());
  attr.lasting_name = node.index >= kRootCount;
  if (n.kind == NodeKind::dir) return attr;
  attr.type = FileType::regular;
  attr.lasting_entries = false;
  if (n.kind == NodeKind::tensor_view)
    attr.size = view_size(node.file(), node.file().tensors[n.tensor]);
  else if (is_published(n.kind))
    attr.size = node.file().size;
  else
    attr.size = generated_.size(node);
  attr.large = is_published(n.kind) && attr.size >= kStreamedMin;
  if (is_published(n.kind)) attr.execute = node.file().execute;
  attr.blocks = attr.size == 0 ? 0 : 1;
  attr.lasting_attr = n.kind != NodeKind::file && n.kind != NodeKind::tensor_view;
  attr.counted = !attr.lasting_attr;
  return attr;
}

// The link count of a published file is always 1: programs take a file with a second link for an attack. Only views are
// counted.
Status Versions::add_changing(Snapshot& snapshot, const TreeNode& node, Attr& attr) {
  const Node& n = node.node();
  if (n.kind == NodeKind::file && attr.size > 0) {
    WEFT_TRY(const std::uint64_t owned, snapshot.owned_bytes(node.version->row.id, n.file));
    attr.blocks = std::max<std::uint64_t>(1, owned / kBlockBytes + (owned % kBlockBytes != 0 ? 1 : 0));
  }
  if (n.kind == NodeKind::tensor_view) {
    WEFT_TRY(const InodeRow row, snapshot.inode(attr.ino));
    attr.nlink = row.view_links;
    attr.mtime_ns = row.view_time_ns;
  }
  return {};
}

Result<Attr> Versions::attr(const MountInode& inode) {
  WEFT_TRY(const TreeNode found, node(inode));
  return attr_of(found);
}

Result<Attr> Versions::attr_of(const TreeNode& node) {
  Attr attr = fixed_attr(node);
  if (attr.lasting_attr) return attr;
  WEFT_TRY(const auto snapshot, store_.snapshot());
  WEFT_CHECK(add_changing(*snapshot, node, attr));
  return attr;
}

Result<Attr> Versions::lookup(const MountInode& inode, std::string_view name) {
  WEFT_TRY(const TreeNode dir, node(inode));
  if (dir.node().kind != NodeKind::dir) return Error{Errc::not_dir, dir.where() + ": not a directory"};
  const auto child = dir.version->tree->lookup(dir.index, name);
  if (!child) return no_entry(name);
  return attr_of({dir.version, *child});
}

Result<std::vector<Attr>> Versions::attrs_of(const TreeVersionPointer& version, std::span<const std::uint32_t> nodes) {
  std::vector<Attr> attrs;
  if (nodes.empty()) return attrs;
  attrs.reserve(nodes.size());
  for (const std::uint32_t node : nodes)
    attrs.push_back(fixed_attr({version, node}));  // may render, so it precedes the snapshot
  WEFT_TRY(const auto snapshot, store_.snapshot());
  for (std::size_t i = 0; i < nodes.size(); ++i) WEFT_CHECK(add_changing(*snapshot, {version, nodes[i]}, attrs[i]));
  return attrs;
}

// A version's directory never changes, so a place is the number of children before it.
Result<DirPage> Versions::list(const MountInode& inode, ListPlace from) {
  WEFT_TRY(const TreeNode dir, node(inode));
  if (dir.node().kind != NodeKind::dir) return Error{Errc::not_dir, dir.where() + ": not a directory"};
  const auto all = dir.version->tree->children(dir.index);
  const std::size_t begin = std::min<std::uint64_t>(number_of(from), all.size());
  const auto children = all.subspan(begin, std::min(kEntriesPerPage, all.size() - begin));
  WEFT_TRY(const std::vector<Attr> attrs, attrs_of(dir.version, children));
  DirPage page{{}, begin + children.size() == all.size()};
  for (std::size_t i = 0; i < children.size(); ++i)
    page.entries.push_back({dir.version->tree->node(children[i]).name, attrs[i], true, place_of(1, begin + i + 1)});
  return page;
}

Result<Ino> Versions::parent(const MountInode& inode) {
  WEFT_TRY(const TreeNode found, node(inode));
  return parent_of(found);
}

Result<Place> Versions::place(const MountInode& inode) {
  WEFT_TRY(const TreeNode found, node(inode));
  WEFT_TRY(const Ino dir, parent_of(found));
  return Place{dir, found.node().name};
}

Result<Ino> Versions::parent_of(const TreeNode& node) {
  if (node.index >= kRootCount) return node.version->local.ino_base + node.node().parent;
  constexpr InoKind kTrees[kRootCount] = {InoKind::stored, InoKind::layers, InoKind::tensors, InoKind::safetensors};
  return name_dir(*node.version, kTrees[node.index]);
}

Result<Ino> Versions::name_dir(const TreeVersion& version, InoKind tree) {
  WEFT_TRY(const auto snapshot, store_.snapshot());
  WEFT_TRY(const ModelRow model, snapshot->model(version.row.model));
  return ino_of(tree, model.ino);
}

}  // namespace weft
