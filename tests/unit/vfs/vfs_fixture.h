// The tree of a store in a temporary directory, without FUSE.
#pragma once

#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "fakes/node_fixture.h"
#include "weft/programs/vfs.h"

namespace weft::testing {

// Looks up a path without following links. "" is the root.
inline Result<Attr> walk(Vfs& vfs, std::string_view path) {
  Result<Attr> attr = vfs.getattr(kRootIno);
  if (path.empty()) return attr;
  for (const std::string_view name : split(path, '/')) {
    if (!attr.ok()) return attr;
    attr = vfs.lookup(attr->ino, name);
  }
  return attr;
}

inline Ino ino_at(Vfs& vfs, std::string_view path) {
  return must(walk(vfs, path)).ino;
}

inline std::string read_all(OpenFile& file) {
  std::vector<std::byte> bytes(file.size() + 10);
  const std::size_t got = must(file.read(0, bytes));
  CHECK(got == file.size());
  return std::string(as_text(std::span(bytes).first(got)));
}

inline std::string read_ino(Vfs& vfs, Ino ino) {
  const auto file = must(vfs.open(ino));
  return read_all(*file);
}

inline std::string read_path(Vfs& vfs, std::string_view path) {
  return read_ino(vfs, ino_at(vfs, path));
}

// Lists a directory page by page, by name. Checks that no entry comes twice and no two have the same place.
inline std::vector<DirEntry> list_all(Vfs& vfs, Ino dir) {
  std::map<std::string, DirEntry> all;
  std::set<ListPlace> places;
  ListPlace from = 0;
  for (bool last = false; !last;) {
    DirPage page = must(vfs.list(dir, from));
    last = page.last;
    if (page.entries.empty()) CHECK(last);
    for (DirEntry& entry : page.entries) {
      from = entry.place;
      CHECK(from >= kFirstPlace);
      CHECK(from <= kLastPlace);
      CHECK(places.insert(from).second);
      std::string name = entry.name;
      CHECK(all.emplace(std::move(name), std::move(entry)).second);
    }
  }
  std::vector<DirEntry> out;
  for (auto& [name, entry] : all) out.push_back(std::move(entry));
  return out;
}

inline std::vector<std::string> names_in(Vfs& vfs, std::string_view path) {
  std::vector<std::string> names;
  for (const DirEntry& entry : list_all(vfs, ino_at(vfs, path))) names.push_back(entry.name);
  return names;
}

using Names = std::vector<std::string>;

struct VfsFixture : Fixture {
  VfsFixture() { restart(); }
  void restart() { vfs = Vfs::make(*store, VfsOptions{}); }

  // Publishes a model. `seed` determines the content of the first tensor only (write_model).
  void publish_model(const std::string& name, std::uint64_t seed, const std::vector<std::string>& parents = {},
                     const std::vector<std::string>& tags = {}) {
    const std::string source = dir / (name + std::to_string(seed));
    write_model(source, seed);
    ImportOptions options;
    options.paths = {source};
    options.name = name;
    options.parents = parents;
    options.tags = tags;
    must(import_paths(*store, options, no_progress()));
  }
  std::string source_text(const std::string& name, std::uint64_t seed, const std::string& file) const {
    return read_text(dir / (name + std::to_string(seed)) + "/" + file);
  }

  std::unique_ptr<Vfs> vfs;
};

}  // namespace weft::testing
