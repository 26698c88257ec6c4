#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "dataset/record_layout.h"
#include "dataset/record_table.h"
#include "dataset/table_sections.h"

namespace weft {
namespace {

// A container uses at least kRecordBytesMin bytes for a record. Records of a sub-database repeat its name, so their
// names may be longer than the container, within a bound.
constexpr std::uint64_t kRecordBytesMin = 8;
constexpr std::uint64_t kRecordsSpare = 4096;
constexpr std::uint64_t kNamesSpare = 1U << 20U;

// Returns the name as one line. %XX stands for '%', for characters that steer a terminal, and for bytes that are not
// UTF-8.
std::string line_of(std::string_view name) {
  std::string out;
  while (!name.empty()) {
    const CodePoint next = first_code_point(name);
    const std::string_view bytes = name.substr(0, std::max<std::size_t>(next.length, 1));
    if (next.length == 0 || next.value == '%' || steers_terminal(next.value))
      for (const char c : bytes) out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    else
      out += bytes;
    name.remove_prefix(bytes.size());
  }
  return out;
}

}  // namespace

Status RecordTableMaker::record(const Record& record) {
  name_bytes_ += record.name.size();
  if (rows_.size() >= std::min(limits::kRecordsPerContainerMax, kRecordsSpare + container_bytes_ / kRecordBytesMin) ||
      name_bytes_ > kNamesSpare + 2 * container_bytes_)
    return Error{Errc::unsupported, fmt::format("more records, or longer names, than {} bytes have", container_bytes_)};
  rows_.push_back({record.offset, record.length, std::string(record.name)});
  return {};
}

Status RecordTableMaker::link(std::string_view name, std::string_view target) {
  if (links_.size() >= limits::kRecordsPerContainerMax)
    return Error{Errc::unsupported, fmt::format("more than {} links", limits::kRecordsPerContainerMax)};
  links_.push_back({std::string(name), std::string(target), rows_.empty() ? 0 : rows_.back().offset});
  return {};
}

Status RecordTableMaker::left_out(std::string_view name, std::string_view why) {
  if (left_out_++ < kRecordsSkippedListed)
    skipped_ += fmt::format("{}\t{}\n", line_of(name.substr(0, limits::kRecordNameMax)), why);
  return {};
}

RecordTableMaker::Paths RecordTableMaker::find_paths() {
  Paths paths;
  for (std::uint64_t i = 0; i < rows_.size(); ++i) paths.insert_or_assign(rows_[i].name, i);
  return paths;
}

// Adds links to `paths`. A link may lead to another link: each round resolves one step of the chains.
void RecordTableMaker::add_links(Paths& paths) {
  auto left = std::move(links_);
  for (std::size_t round = 0; round < kRecordLinksChained && !left.empty(); ++round) {
    decltype(left) later;
    for (Link& link : left) {
      const auto found = paths.find(link.target);
      if (found == paths.end()) {
        later.push_back(std::move(link));
        continue;
      }
      const auto own = paths.find(link.name);  // a later record of this name replaces the link
      if (own == paths.end() || rows_[own->second].offset <= link.behind)
        paths.insert_or_assign(std::move(link.name), found->second);
    }
    const bool none_found = later.size() == left.size();
    left = std::move(later);
    if (none_found) break;
  }
  for (const Link& link : left) static_cast<void>(left_out(link.name, "a link to what is no record"));
}

// Leaves out each path that is a directory of another path.
void RecordTableMaker::drop_covered(Paths& paths) {
  for (auto one = paths.begin(); one != paths.end();) {
    const std::string inside = one->first + "/";
    const auto below = paths.lower_bound(inside);
    if (below != paths.end() && below->first.starts_with(inside)) {
      static_cast<void>(left_out(one->first, "a directory has its name"));
      one = paths.erase(one);
    } else {
      ++one;
    }
  }
}

Result<std::vector<std::byte>> RecordTableMaker::make(bool with_files) {
  std::ranges::stable_sort(rows_, {}, &Row::offset);
  Paths paths;
  if (with_files) {
    paths = find_paths();
    add_links(paths);
    drop_covered(paths);
  }
  std::string keys, text;
  for (const Row& row : rows_) keys.append(line_of(row.name)).append("\n");
  for (const auto& [path, row] : paths) text += path;
  if (text.size() > UINT32_MAX) return Error{Errc::unsupported, "names of more than 4 GiB together"};
  const RecordHeader header{container_bytes_, rows_.size(), keys.size(), with_files ? 1U : 0U,
                            paths.size(),     text.size(),  left_out_,   skipped_.size()};
  const RecordSections at = record_sections(header);
  Sections out(at.end);
  out.add(kRecordTableMagic);
  out.add(std::as_bytes(std::span(&header, 1)));
  out.go_to(at.index);
  out.add(record_npy_header(header.rows));
  for (const Row& row : rows_) {
    out.add_number(row.offset);
    out.add_number(row.length);
  }
  out.go_to(at.keys);
  out.add(keys);
  out.go_to(at.path_ends);
  std::uint32_t end = 0;
  for (const auto& [path, row] : paths) out.add_number(end += static_cast<std::uint32_t>(path.size()));
  out.go_to(at.path_rows);
  for (const auto& [path, row] : paths) out.add_number(static_cast<std::uint32_t>(row));
  out.go_to(at.path_text);
  out.add(text);
  out.go_to(at.skipped);
  out.add(skipped_);
  return out.take();
}

}  // namespace weft
