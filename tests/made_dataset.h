// Data sets made by hand: their files, tables and manifest, as an importer makes them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dataset/file_table.h"
#include "dataset/record_table.h"
#include "testing.h"
#include "weft/model/manifest.h"

namespace weft::testing {

// Path to bytes. Directories are numbered breadth first, as file tables have them.
inline std::vector<std::byte> file_table_of(const std::map<std::string, std::uint64_t>& files) {
  FileTableMaker maker;
  must(maker.directory(0, ""));
  std::vector<std::string> directories{""};
  for (std::size_t i = 0; i < directories.size(); ++i) {
    std::set<std::string> below;
    for (const auto& [path, bytes] : files) {
      if (!path.starts_with(directories[i])) continue;
      const std::size_t slash = path.find('/', directories[i].size());
      if (slash != path.npos) below.insert(path.substr(directories[i].size(), slash - directories[i].size()));
    }
    for (const std::string& name : below) {
      must(maker.directory(static_cast<std::uint32_t>(i), name));
      directories.push_back(directories[i] + name + "/");
    }
  }
  for (std::uint32_t i = 0; i < directories.size(); ++i)
    for (const auto& [path, bytes] : files)
      if (path.starts_with(directories[i]) && path.find('/', directories[i].size()) == path.npos)
        must(maker.file(i, path.substr(directories[i].size()), bytes));
  return maker.make();
}

struct MadeRecord {
  std::string name;
  std::uint64_t offset = 0, length = 0;
};
struct MadeContainer {
  std::string bytes;
  std::vector<MadeRecord> records;
  bool with_files = true;
  std::vector<std::string> left_out = {};
  std::string format = "tar";
};

struct DatasetSpec {
  std::map<std::string, std::string> small, large;  // path to content
  std::map<std::string, MadeContainer> containers;
  std::size_t bundle_bytes = 64;  // a bundle is full that has so many
};

struct MadeDataset {
  Manifest manifest;                  // without extents
  std::vector<std::string> contents;  // by file
};

inline MadeDataset make_dataset(const DatasetSpec& spec) {
  MadeDataset made;
  made.manifest.kind = VersionKind::dataset;
  const auto add = [&](std::string path, std::string content, FileRole role, std::string format) {
    File file;
    file.path = std::move(path);
    file.size = content.size();
    file.format = std::move(format);
    file.role = role;
    made.manifest.files.push_back(std::move(file));
    made.contents.push_back(std::move(content));
  };
  std::map<std::string, std::pair<std::string, std::string>> published;  // content and format
  for (const auto& [path, content] : spec.large) published[path] = {content, "opaque"};
  for (const auto& [path, container] : spec.containers) published[path] = {container.bytes, container.format};
  for (const auto& [path, file] : published) add(path, file.first, FileRole::published, file.second);

  std::map<std::string, std::uint64_t> sizes;
  for (const auto& [path, content] : spec.small) sizes[path] = content.size();
  if (!sizes.empty()) {
    const std::vector<std::byte> bytes = file_table_of(sizes);
    const FileTable table = must(FileTable::check(bytes));
    std::string bundle;
    for (std::uint64_t i = 0; i < table.files(); ++i) {
      bundle += spec.small.at(table.file_path(i));
      if (bundle.size() >= spec.bundle_bytes) add("", std::exchange(bundle, {}), FileRole::bundle, "opaque");
    }
    if (!bundle.empty()) add("", bundle, FileRole::bundle, "opaque");
    add("", std::string(as_text(bytes)), FileRole::file_table, "opaque");
  }
  for (const auto& [path, container] : spec.containers) {
    RecordTableMaker maker(container.bytes.size());
    for (const MadeRecord& one : container.records) must(maker.record({one.name, one.offset, one.length}));
    for (const std::string& name : container.left_out) must(maker.left_out(name, "a device"));
    add(path, std::string(as_text(must(maker.make(container.with_files)))), FileRole::record_table, "opaque");
  }
  return made;
}

}  // namespace weft::testing
