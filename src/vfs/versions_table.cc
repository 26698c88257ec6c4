#include "vfs/versions_table.h"

#include <fmt/core.h>

#include <vector>

#include "base/text.h"
#include "reading/open_file.h"
#include "vfs/numbers.h"
#include "weft/names.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

constexpr std::string_view kHead = "version\ttime\tbytes\tnew_bytes\ttags\tmetrics\tparents\tmessage\n";

// Escapes a cell: a tab or a line break would end it, and other control characters would control a terminal.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\t')
      out += "\\t";
    else if (c == '\n')
      out += "\\n";
    else if (c == '\r')
      out += "\\r";
    else if (c == '\\')
      out += "\\\\";
    else
      out.push_back(c);
  }
  return printable_lines(out);
}

template <class Items, class Text>
std::string listed(const Items& items, Text text) {
  std::string out;
  for (const auto& item : items) out += (out.empty() ? "" : ",") + cell(text(item));
  return out;
}

std::string line_of(const VersionRow& version, std::uint64_t new_bytes, const std::vector<std::string>& tags) {
  return fmt::format(
      "{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n", version.number, utc_time(version.time_ns), version.logical_bytes, new_bytes,
      listed(tags, [](const std::string& tag) { return tag; }),
      listed(version.metrics, [](const auto& metric) { return fmt::format("{}={}", metric.first, metric.second); }),
      listed(version.parents, [](const ParentRef& parent) { return spec_of(parent.model, parent.number); }),
      cell(version.message));
}

Result<std::string> table_of(Store& store, ModelId model) {
  std::string out(kHead);
  Renewed renewed(store);
  WEFT_CHECK(each_row(store, list_versions(model), [&](const VersionRow& version) -> Status {
    if (version.removed) return {};
    WEFT_TRY(const std::uint64_t new_bytes, owned_bytes(renewed, version.id));
    WEFT_TRY(const auto tags, tags_of(renewed, version));
    out += line_of(version, new_bytes, tags);
    return {};
  }));
  return out;
}

}  // namespace

Result<Attr> VersionsTable::attr_of(ModelId id) {
  WEFT_TRY(const std::string text, table_of(store_, id));
  WEFT_TRY(const auto snapshot, store_.snapshot());
  WEFT_TRY(const ModelRow model, snapshot->model(id));
  return text_attr(ino_of(InoKind::versions_table, id), model.changed_ns, text.size());
}

DirEntry VersionsTable::bare(ModelId model) {
  return bare_entry(std::string(kVersionsTable), ino_of(InoKind::versions_table, model), FileType::regular);
}

Result<Attr> VersionsTable::attr(const MountInode& inode) {
  return attr_of(id_of(inode.ino));
}

Result<std::shared_ptr<OpenFile>> VersionsTable::open(const MountInode& inode) {
  WEFT_TRY(std::string text, table_of(store_, id_of(inode.ino)));
  return open_text(std::move(text), ReadMode::changing);
}

}  // namespace weft
